"""The functions' way to the API server and the brokers.

Their security group accepts nothing: what it may reach, others must allow.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    vpc_cidr: str
    cluster_security_group_id: pulumi.Input[str]
    # Ports of the load balancer, first to last, and the port the brokers themselves listen on.
    advertised_ports: tuple[int, int]
    listener_port: int


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
        first, last = args.advertised_ports
        out: Mapping[str, tuple[int, int, str, str]] = {
            "https": (HTTPS, HTTPS, ANYWHERE, "AWS and the API server"),
            "kafka": (first, last, args.vpc_cidr, "Brokers through the load balancer"),
        }
        for key, (from_port, to_port, block, description) in out.items():
            aws.vpc.SecurityGroupEgressRule(
                f"{name}-to-{key}",
                security_group_id=group.id,
                description=description,
                ip_protocol="tcp",
                from_port=from_port,
                to_port=to_port,
                cidr_ipv4=block,
                opts=child,
            )
        # The load balancer keeps the client's address, so brokers see the function itself.
        for key, port in (("https", HTTPS), ("kafka", args.listener_port)):
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-cluster-from-{key}",
                security_group_id=args.cluster_security_group_id,
                description=f"Stillwater's functions, {key}",
                referenced_security_group_id=group.id,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                opts=child,
            )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})
