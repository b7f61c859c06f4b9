"""The functions' way to the API server and, through the load balancer, to the brokers.

Their security group accepts nothing: what it may reach, others must allow. The load balancer does,
for every client of its VPC.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

TYPE = "stillwater:infra:HandlerNetwork"
HTTPS = 443
ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class HandlerNetworkArgs:
    prefix: str
    vpc_id: pulumi.Input[str]
    cluster_security_group_id: pulumi.Input[str]
    load_balancer_security_group_id: pulumi.Input[str]
    # Ports of the load balancer, first to last.
    advertised_ports: tuple[int, int]


class HandlerNetwork(pulumi.ComponentResource):
    """A security group that reaches the API server, the brokers and AWS, and is reached by none."""

    security_group_id: pulumi.Output[str]

    def __init__(
        self, name: str, args: HandlerNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            name=f"{args.prefix}-handlers",
            description="Functions that speak to the API server and the brokers",
            vpc_id=args.vpc_id,
            opts=child,
        )
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-https",
            security_group_id=group.id,
            description="AWS, Slack and the API server",
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            # AWS's APIs and Slack have no addresses that a rule could name.
            cidr_ipv4=ANYWHERE,
            opts=child,
        )
        first, last = args.advertised_ports
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-to-kafka",
            security_group_id=group.id,
            description="Brokers through the load balancer",
            ip_protocol="tcp",
            from_port=first,
            to_port=last,
            referenced_security_group_id=args.load_balancer_security_group_id,
            opts=child,
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-cluster-from-https",
            security_group_id=args.cluster_security_group_id,
            description="Functions of Stillwater to the API server",
            referenced_security_group_id=group.id,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
            opts=child,
        )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})
