"""The VPC: three subnets per availability zone: private, public, and the control plane's.

Nodes and functions live in the private subnets. The public ones hold one NAT gateway per zone, so
that nodes can pull images and reach AWS, and a zone that fails takes nobody else's way out with it.
The control plane's network interfaces have subnets of their own, which lead nowhere: so a
NetworkPolicy can admit the API server and no pod.
Addresses follow the zone's letter, not its place in a list: adding a zone moves no other.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core import naming
from core.cluster.limits import PRIVATE_BITS, ZONE_BITS, ZONE_LETTERS
from infra.tags import Tags

TYPE = "stillwater:infra:Network"
PUBLIC_BITS = ZONE_BITS + 4
# EKS asks for 6 addresses in each, and AWS keeps 5 for itself (EKS network requirements).
CONTROL_PLANE_PREFIX = 28


@dataclass(frozen=True, slots=True)
class ZoneBlocks:
    """The addresses of one zone; the rest of its eighth stays free for later subnets."""

    private: str
    public: str
    control_plane: str


def zone_blocks(vpc_cidr: str, zone: str) -> ZoneBlocks:
    """Return the subnets of a zone: the first half of its eighth is private, the end public.

    The control plane's is the beginning of the second half.

    >>> zone_blocks("10.40.0.0/16", "us-east-1b")
    ZoneBlocks(private='10.40.32.0/20', public='10.40.62.0/23', control_plane='10.40.48.0/28')
    """
    vpc = ipaddress.IPv4Network(vpc_cidr)
    slots = list(vpc.subnets(ZONE_BITS))
    slot = ZONE_LETTERS.index(naming.zone_suffix(zone))
    private, rest = slots[slot].subnets(PRIVATE_BITS - ZONE_BITS)
    public = list(slots[slot].subnets(PUBLIC_BITS - ZONE_BITS))[-1]
    control_plane = next(rest.subnets(new_prefix=CONTROL_PLANE_PREFIX))
    return ZoneBlocks(str(private), str(public), str(control_plane))


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    prefix: str
    vpc_cidr: str
    availability_zones: Sequence[str]
    eks_cluster: str
    tags: Tags


class Network(pulumi.ComponentResource):
    """A VPC whose every zone can stand alone."""

    vpc_id: pulumi.Output[str]
    private_subnet_ids: Mapping[str, pulumi.Output[str]]
    control_plane_subnet_ids: Mapping[str, pulumi.Output[str]]
    private_route_table_ids: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        vpc = self._vpc()
        self._close_default_group(vpc)
        routes = self._public_routes(vpc)
        way_out = self._way_out(vpc, routes)
        private: dict[str, pulumi.Output[str]] = {}
        control_plane: dict[str, pulumi.Output[str]] = {}
        tables: dict[str, pulumi.Output[str]] = {}
        for zone in args.availability_zones:
            blocks = zone_blocks(args.vpc_cidr, zone)
            nat = self._public_side(zone, vpc, blocks.public, routes, way_out)
            private[zone], tables[zone] = self._private_side(zone, vpc, blocks.private, nat)
            control_plane[zone] = self._control_planes(zone, vpc, blocks.control_plane)
        self.vpc_id = vpc.id
        self.private_subnet_ids = private
        self.control_plane_subnet_ids = control_plane
        self.private_route_table_ids = tables
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": private})

    def _tags(self, role: str, **more: str) -> dict[str, str]:
        return {**self._args.tags.with_name(f"{self._args.prefix}-{role}"), **more}

    def _vpc(self) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=self._args.vpc_cidr,
            enable_dns_support=True,
            # Node names are the instances' private DNS names.
            enable_dns_hostnames=True,
            tags=self._tags("vpc"),
            opts=self._child,
        )

    def _close_default_group(self, vpc: aws.ec2.Vpc) -> None:
        # What forgets to name a security group gets the VPC's own: let it reach nothing.
        aws.ec2.DefaultSecurityGroup(
            f"{self._name}-default-group",
            vpc_id=vpc.id,
            tags=self._tags("default"),
            opts=self._child,
        )

    def _public_routes(self, vpc: aws.ec2.Vpc) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            f"{self._name}-public", vpc_id=vpc.id, tags=self._tags("public"), opts=self._child
        )

    def _way_out(self, vpc: aws.ec2.Vpc, routes: aws.ec2.RouteTable) -> aws.ec2.Route:
        gateway = aws.ec2.InternetGateway(
            f"{self._name}-gateway", vpc_id=vpc.id, tags=self._tags("gateway"), opts=self._child
        )
        return aws.ec2.Route(
            f"{self._name}-public-default",
            route_table_id=routes.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self._child,
        )

    def _public_side(
        self,
        zone: str,
        vpc: aws.ec2.Vpc,
        block: str,
        routes: aws.ec2.RouteTable,
        way_out: aws.ec2.Route,
    ) -> aws.ec2.NatGateway:
        letter = naming.zone_suffix(zone)
        subnet = aws.ec2.Subnet(
            f"{self._name}-{zone}-public",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=block,
            tags=self._tags(
                f"public-{naming.zone_suffix(zone)}", **{"kubernetes.io/role/elb": "1"}
            ),
            opts=self._child,
        )
        association = aws.ec2.RouteTableAssociation(
            f"{self._name}-{zone}-public-routes",
            subnet_id=subnet.id,
            route_table_id=routes.id,
            opts=self._child,
        )
        address = aws.ec2.Eip(
            f"{self._name}-{zone}-nat-address",
            domain="vpc",
            tags=self._tags(f"nat-{letter}"),
            opts=self._child,
        )
        return aws.ec2.NatGateway(
            f"{self._name}-{zone}-nat",
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=self._tags(f"nat-{letter}"),
            # It fails where no internet gateway is attached yet, and at a destroy the gateway
            # stays attached while an address is in use.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[association, way_out]),
        )

    def _control_planes(self, zone: str, vpc: aws.ec2.Vpc, block: str) -> pulumi.Output[str]:
        # Without a route table of its own it has the VPC's main one, which leads nowhere else.
        return aws.ec2.Subnet(
            f"{self._name}-{zone}-control-plane",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=block,
            tags=self._tags(f"control-plane-{naming.zone_suffix(zone)}"),
            opts=self._child,
        ).id

    def _private_side(
        self, zone: str, vpc: aws.ec2.Vpc, block: str, nat: aws.ec2.NatGateway
    ) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        letter = naming.zone_suffix(zone)
        subnet = aws.ec2.Subnet(
            f"{self._name}-{zone}-private",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=block,
            tags=self._tags(
                f"private-{letter}",
                **{
                    "kubernetes.io/role/internal-elb": "1",
                    f"kubernetes.io/cluster/{self._args.eks_cluster}": "shared",
                },
            ),
            opts=self._child,
        )
        table = aws.ec2.RouteTable(
            f"{self._name}-{zone}-private-routes",
            vpc_id=vpc.id,
            tags=self._tags(f"private-{letter}"),
            opts=self._child,
        )
        route = aws.ec2.Route(
            f"{self._name}-{zone}-private-default",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=nat.id,
            opts=self._child,
        )
        association = aws.ec2.RouteTableAssociation(
            f"{self._name}-{zone}-private-association",
            subnet_id=subnet.id,
            route_table_id=table.id,
            opts=self._child,
        )
        # Whoever uses the subnet waits for its way out, or its first image pull fails.
        reachable = pulumi.Output.all(subnet.id, route.id, association.id)
        return reachable.apply(lambda ids: str(ids[0])), table.id
