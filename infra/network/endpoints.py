"""Ways to AWS's APIs that leave the VPC neither through NAT nor over the internet.

S3 and DynamoDB have gateway endpoints, which cost nothing: image layers and the ledger always go
through them. The others are network interfaces in every zone, billed by the hour, and made only
when the spec asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from infra.tags import Tags

TYPE = "stillwater:infra:Endpoints"
GATEWAYS = ("dynamodb", "s3")
# Who in the cluster calls it.
INTERFACES: Mapping[str, str] = {
    "autoscaling": "functions, node termination handler, cluster autoscaler",
    "ec2": "volume driver, network plugin, functions",
    "ecr.api": "nodes that pull images",
    "ecr.dkr": "nodes that pull images",
    "eks": "nodes that join, Karpenter",
    "eks-auth": "the pod identity agent",
    "elasticloadbalancing": "load balancer controller",
    "logs": "functions",
    "monitoring": "functions that put metrics",
    "secretsmanager": "functions that talk to Slack",
    "sns": "functions that call a person",
    "sqs": "functions, node termination handler, Karpenter",
    "sts": "everything with a role",
}
HTTPS = 443


@dataclass(frozen=True, kw_only=True)
class EndpointsArgs:
    spec: ClusterSpec
    vpc_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]
    # A name that stays (a zone, a given id) -> the route table whose subnets use the gateways.
    route_table_ids: Mapping[str, pulumi.Input[str]]


class Endpoints(pulumi.ComponentResource):
    """Gateway endpoints in every private route table; interface endpoints in every zone."""

    def __init__(
        self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args, self._spec = name, args, args.spec
        self._child = pulumi.ResourceOptions(parent=self)
        if args.route_table_ids:
            for service in GATEWAYS:
                self._gateway(service)
        if self._spec.network.interface_endpoints:
            group = self._reachable_from_the_vpc()
            for service in INTERFACES:
                self._interface(service, group)
        self.register_outputs({})

    def _service(self, service: str) -> str:
        return f"com.amazonaws.{self._spec.region}.{service}"

    def _tags(self, role: str) -> dict[str, str]:
        return Tags.of(self._spec).with_name(f"{self._spec.prefix}-{role}")

    def _gateway(self, service: str) -> None:
        endpoint = aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._args.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Gateway",
            tags=self._tags(service),
            opts=self._child,
        )
        # Not a list on the endpoint: a zone that is added only adds.
        for key, table_id in self._args.route_table_ids.items():
            aws.ec2.VpcEndpointRouteTableAssociation(
                f"{self._name}-{key}-{service}",
                vpc_endpoint_id=endpoint.id,
                route_table_id=table_id,
                opts=self._child,
            )

    def _reachable_from_the_vpc(self) -> aws.ec2.SecurityGroup:
        group = aws.ec2.SecurityGroup(
            f"{self._name}-callers",
            name=f"{self._spec.prefix}-endpoints",
            description="HTTPS from inside the VPC to AWS APIs",
            vpc_id=self._args.vpc_id,
            tags=self._tags("endpoints"),
            opts=self._child,
        )
        primary, *others = self._spec.network.blocks
        names = {"the-vpc": primary, **{block.replace("/", "-"): block for block in others}}
        for source, block in names.items():
            aws.vpc.SecurityGroupIngressRule(
                f"{self._name}-from-{source}",
                security_group_id=group.id,
                description="HTTPS from the VPC",
                ip_protocol="tcp",
                from_port=HTTPS,
                to_port=HTTPS,
                cidr_ipv4=block,
                opts=self._child,
            )
        return group

    def _interface(self, service: str, group: aws.ec2.SecurityGroup) -> None:
        aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._args.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Interface",
            # Callers keep using the API's public name.
            private_dns_enabled=True,
            subnet_ids=list(self._args.private_subnet_ids.values()),
            security_group_ids=[group.id],
            tags=self._tags(service),
            opts=self._child,
        )
