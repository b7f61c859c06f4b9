"""Describes a cluster's VPC, and the load balancer its clients come through."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from core.cluster.fields import (
    EachOnce,
    Frozen,
    HostName,
    RouteTableId,
    SubnetId,
    VpcId,
    ZoneName,
    address_block,
)
from core.ground.errors import InvalidInput

# What ModifyVpcEndpointServicePermissions takes: an account, a user or a role; none with a path.
_PRINCIPAL = re.compile(r"arn:aws:iam::\d{12}:(root|(user|role)/[\w+=,.@-]{1,64})", re.ASCII)
# EKS takes private blocks alone; the first is its own default.
SERVICE_BLOCKS = ("172.20.0.0/16", "10.100.0.0/16", "192.168.0.0/16", "172.31.0.0/16")


def _vpc_block(value: str) -> str:
    block = address_block(value)
    if block.version != 4 or not 16 <= block.prefixlen <= 28:
        raise ValueError(f"{value} must be an IPv4 block between /16 and /28, as AWS gives a VPC")
    return value


def _address_block_text(value: str) -> str:
    return str(address_block(value))


def _principal(value: str) -> str:
    if _PRINCIPAL.fullmatch(value) is None:
        raise ValueError(
            f"{value} is not a principal; name the ARN of an account, user or role without a path, "
            "such as arn:aws:iam::111122223333:root"
        )
    return value


VpcBlock = Annotated[str, AfterValidator(_vpc_block)]
Block = Annotated[str, AfterValidator(_address_block_text)]
Principal = Annotated[str, AfterValidator(_principal)]


class ExistingNetwork(Frozen):
    """A VPC of another owner: it is used and never changed.

    Its private subnets must have a way out (NAT) or every endpoint a node needs.
    """

    vpc_id: VpcId
    """The VPC."""
    private_subnet_ids: dict[ZoneName, SubnetId]
    """Availability zone -> the private subnet whose nodes, volumes, targets and interfaces of the
    control plane live there.
    """
    private_route_table_ids: Annotated[tuple[RouteTableId, ...], EachOnce] = ()
    """Where the gateway endpoints of S3 and DynamoDB are entered; none named, none made."""


class Network(Frozen):
    """The VPC: one private subnet per availability zone."""

    vpc_cidr: VpcBlock = "10.40.0.0/16"
    """The VPC's private IPv4 block, /16 to /20; of an existing VPC: the block it has, /16 to
    /28.
    """
    secondary_cidrs: Annotated[tuple[VpcBlock, ...], EachOnce] = ()
    """Further blocks of an existing VPC whose subnets hold clients or nodes."""
    existing: ExistingNetwork | None = None
    """A VPC you have, in place of a new one."""
    interface_endpoints: bool = False
    """PrivateLink endpoints for every AWS API a node or function calls: none of it leaves through
    NAT, but questions to a `metrics.prometheus` of AWS. AWS bills each per hour and zone.
    """

    @property
    def blocks(self) -> tuple[str, ...]:
        """Every block of the VPC, the primary first."""
        return (self.vpc_cidr, *self.secondary_cidrs)

    @model_validator(mode="after")
    def _blocks_of_somebody_elses(self) -> Self:
        if self.secondary_cidrs and self.existing is None:
            raise ValueError(
                "secondary_cidrs are of a VPC you have, and network.existing is not set; leave "
                "them out, or name the VPC"
            )
        if self.vpc_cidr in self.secondary_cidrs:
            raise ValueError(
                f"secondary_cidrs names {self.vpc_cidr}, which is vpc_cidr; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _can_be_divided(self) -> Self:
        """Refuse what a VPC of ours cannot be; one that exists has the block it has."""
        block = ipaddress.ip_network(self.vpc_cidr)
        if self.existing is None and (block.prefixlen > 20 or not block.is_private):
            raise ValueError(
                f"vpc_cidr {self.vpc_cidr} must be a private IPv4 block between /16 and /20, such "
                f"as 10.40.0.0/16"
            )
        return self


def service_cidr(blocks: Sequence[str]) -> str:
    """Return the block of Kubernetes' Services: one that overlaps none of the VPC's.

    The usual two come first: the block of a cluster never changes.
    """
    taken = [ipaddress.ip_network(block) for block in blocks]
    for candidate in SERVICE_BLOCKS:
        if not any(ipaddress.ip_network(candidate).overlaps(block) for block in taken):
            return candidate
    problem = (
        f"The VPC's blocks {', '.join(blocks)} leave no room for Kubernetes Services among "
        f"{', '.join(SERVICE_BLOCKS)}; leave out of network.secondary_cidrs what holds neither "
        f"clients nor nodes."
    )
    raise InvalidInput([problem])


class LoadBalancer(Frozen):
    """The network load balancer in front of the brokers, inside the VPC."""

    client_cidrs: tuple[Block, ...] = ()
    """Further networks whose clients may connect: peered VPCs, an office."""
    endpoint_principals: Annotated[tuple[Principal, ...], EachOnce] = ()
    """Accounts, users or roles, by ARN, that may connect through PrivateLink; none named, no
    endpoint service is made.
    """
    private_zone: HostName | None = None
    """The private hosted zone in which `kafka.listener.advertised_host` gets its record; without
    one, the name is looked after elsewhere.
    """
