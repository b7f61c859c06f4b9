"""Where a cluster lives: its VPC, and the load balancer its clients come through."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import StringConstraints, field_validator

from core.cluster.fields import Frozen, ZoneName

VpcId = Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")]
SubnetId = Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]{8,17}$")]
RouteTableId = Annotated[str, StringConstraints(pattern=r"^rtb-[0-9a-f]{8,17}$")]


class ExistingNetwork(Frozen):
    """A VPC that somebody else owns: it is used and never changed.

    Its private subnets must have a way out (NAT) or every endpoint a node needs.
    """

    vpc_id: VpcId
    """The VPC."""
    private_subnet_ids: dict[ZoneName, SubnetId]
    """Availability zone -> the private subnet whose nodes, volumes and targets live there."""
    private_route_table_ids: tuple[RouteTableId, ...] = ()
    """Where the gateway endpoints of S3 and DynamoDB are entered; none named, none made."""


class Network(Frozen):
    """The VPC: one private subnet per availability zone."""

    vpc_cidr: str = "10.40.0.0/16"
    """The VPC's private IPv4 block, /16 to /20; of an existing VPC: the block it has."""
    existing: ExistingNetwork | None = None
    """A VPC you have, in place of a new one."""
    interface_endpoints: bool = False
    """PrivateLink endpoints for every AWS API a node or function calls: none of it leaves through
    NAT. AWS bills each per hour and zone, so small clusters do without.
    """

    @field_validator("vpc_cidr")
    @classmethod
    def _is_a_private_block(cls, value: str) -> str:
        block = ipaddress.ip_network(value)
        if block.version != 4 or not 16 <= block.prefixlen <= 20 or not block.is_private:
            raise ValueError(
                f"{value} must be a private IPv4 block between /16 and /20, such as 10.40.0.0/16"
            )
        return value


def service_cidr(vpc_cidr: str) -> str:
    """Return the block of Kubernetes' Services: one that does not overlap the VPC."""
    usual = ipaddress.ip_network("172.20.0.0/16")
    return "10.100.0.0/16" if usual.overlaps(ipaddress.ip_network(vpc_cidr)) else str(usual)


class LoadBalancer(Frozen):
    """The network load balancer in front of the brokers, inside the VPC."""

    client_cidrs: tuple[str, ...] = ()
    """Networks beside the VPC's own whose clients may connect: peered VPCs, an office."""
    endpoint_principals: tuple[str, ...] = ()
    """Accounts, users or roles, by ARN, that may connect through PrivateLink; none named, no
    endpoint service is made.
    """
    private_zone: str | None = None
    """The private hosted zone in which `kafka.listener.advertised_host` gets its record; without
    one, the name is looked after elsewhere.
    """

    @field_validator("client_cidrs")
    @classmethod
    def _are_blocks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for block in value:
            ipaddress.ip_network(block)
        return value

    @field_validator("endpoint_principals")
    @classmethod
    def _names_principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for principal in value:
            if not principal.startswith("arn:"):
                raise ValueError(
                    f"{principal} is no principal; name an account's, user's or role's ARN, such "
                    f"as arn:aws:iam::111122223333:root (a * would be everybody)"
                )
        return value
