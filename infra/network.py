"""Builds where a cluster stands: a VPC, ours or somebody else's, subnets, ways to AWS's APIs.

Nodes and functions live in a private subnet per zone. The public ones hold one NAT gateway per
zone, so that a zone that fails takes nobody else's way out with it. The control plane's network
interfaces have subnets of their own, which lead nowhere: so a NetworkPolicy can admit the API
server and no pod. Addresses follow the zone's letter, not its place in a list: adding a zone moves
no other. Gateway endpoints of S3 and DynamoDB cost nothing and are always made; the others are
billed by the hour and made when the spec asks for them.

Nothing of somebody else's VPC is changed, so what would fail hours later is looked at first: a
subnet in another zone than the spec says would have its brokers wait for ever for a volume.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec, ExistingNetwork
from core.cluster.limits import PRIVATE_BITS, ZONE_BITS, ZONE_LETTERS
from core.ground import naming
from core.ground.errors import InvalidInput
from infra.tags import cluster_tags

NETWORK_TYPE = "stillwater:infra:Network"
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
class Site:
    """What the rest of the program needs of the network."""

    vpc_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]
    # Of somebody else's network: the private ones, which the control plane shares with pods.
    control_plane_subnet_ids: Mapping[str, pulumi.Input[str]]
    # Keyed by what does not change: a zone of ours, the id of a given table.
    route_table_ids: Mapping[str, pulumi.Input[str]]


class Network(pulumi.ComponentResource):
    """A VPC whose every zone can stand alone."""

    site: Site

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(NETWORK_TYPE, name, None, opts)
        self._name, self._spec = name, spec
        self._child = pulumi.ResourceOptions(parent=self)
        vpc = self._vpc()
        self._close_default_group(vpc)
        routes = aws.ec2.RouteTable(
            f"{name}-public", vpc_id=vpc.id, tags=self._tags("public"), opts=self._child
        )
        way_out = self._way_out(vpc, routes)
        private: dict[str, pulumi.Output[str]] = {}
        control_plane: dict[str, pulumi.Output[str]] = {}
        tables: dict[str, pulumi.Output[str]] = {}
        for zone in spec.availability_zones:
            blocks = zone_blocks(spec.network.vpc_cidr, zone)
            nat = self._public_side(zone, vpc, blocks.public, routes, way_out)
            private[zone], tables[zone] = self._private_side(zone, vpc, blocks.private, nat)
            # Without a route table of its own it has the VPC's main one, which leads nowhere else.
            control_plane[zone] = self._subnet(zone, vpc, "control-plane", blocks.control_plane).id
        self.site = Site(
            vpc_id=vpc.id,
            private_subnet_ids=private,
            control_plane_subnet_ids=control_plane,
            route_table_ids=tables,
        )
        self.register_outputs({"vpc_id": vpc.id, "private_subnet_ids": private})

    def _tags(self, role: str) -> dict[str, str]:
        return cluster_tags(self._spec).name_tags(f"{self._spec.prefix}-{role}")

    def _subnet(
        self, zone: str, vpc: aws.ec2.Vpc, role: str, block: str, **tags: str
    ) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            f"{self._name}-{zone}-{role}",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=block,
            tags={**self._tags(f"{role}-{naming.zone_suffix(zone)}"), **tags},
            opts=self._child,
        )

    def _vpc(self) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            f"{self._name}-vpc",
            cidr_block=self._spec.network.vpc_cidr,
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
        subnet = self._subnet(zone, vpc, "public", block, **{"kubernetes.io/role/elb": "1"})
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

    def _private_side(
        self, zone: str, vpc: aws.ec2.Vpc, block: str, nat: aws.ec2.NatGateway
    ) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        read_by_others = {
            "kubernetes.io/role/internal-elb": "1",
            f"kubernetes.io/cluster/{self._spec.prefix}": "shared",
        }
        subnet = self._subnet(zone, vpc, "private", block, **read_by_others)
        table = aws.ec2.RouteTable(
            f"{self._name}-{zone}-private-routes",
            vpc_id=vpc.id,
            tags=self._tags(f"private-{naming.zone_suffix(zone)}"),
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


ENDPOINTS_TYPE = "stillwater:infra:Endpoints"
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


class Endpoints(pulumi.ComponentResource):
    """Gateway endpoints in every private route table; interface endpoints in every zone."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        network: Site,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(ENDPOINTS_TYPE, name, None, opts)
        self._name, self._spec, self._network = name, spec, network
        self._child = pulumi.ResourceOptions(parent=self)
        if network.route_table_ids:
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
        return cluster_tags(self._spec).name_tags(f"{self._spec.prefix}-{role}")

    def _gateway(self, service: str) -> None:
        endpoint = aws.ec2.VpcEndpoint(
            f"{self._name}-{service}",
            vpc_id=self._network.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Gateway",
            tags=self._tags(service),
            opts=self._child,
        )
        # Not a list on the endpoint: a zone that is added only adds.
        for key, table_id in self._network.route_table_ids.items():
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
            vpc_id=self._network.vpc_id,
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
            vpc_id=self._network.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Interface",
            # Callers keep using the API's public name.
            private_dns_enabled=True,
            subnet_ids=list(self._network.private_subnet_ids.values()),
            security_group_ids=[group.id],
            tags=self._tags(service),
            opts=self._child,
        )


def site(
    spec: ClusterSpec, provider: pulumi.ProviderResource, opts: pulumi.ResourceOptions
) -> Site:
    """Return the spec's existing network, looked at, or build one."""
    existing = spec.network.existing
    if existing is not None:
        problems = list(_problems(existing, spec.network.blocks, provider))
        if problems:
            raise InvalidInput(problems)
        private = {zone: existing.private_subnet_ids[zone] for zone in spec.availability_zones}
        return Site(
            vpc_id=existing.vpc_id,
            private_subnet_ids=private,
            control_plane_subnet_ids=private,
            route_table_ids={each: each for each in existing.private_route_table_ids},
        )
    return Network("network", spec, opts=opts).site


def _problems(
    existing: ExistingNetwork, blocks: Sequence[str], provider: pulumi.ProviderResource
) -> Iterator[str]:
    opts = pulumi.InvokeOptions(provider=provider)
    vpc = aws.ec2.get_vpc(id=existing.vpc_id, opts=opts)
    if vpc.cidr_block != blocks[0]:
        yield (
            f"network.vpc_cidr is {blocks[0]}, but the VPC {existing.vpc_id} has {vpc.cidr_block}; "
            f"write the VPC's own."
        )
    if not (vpc.enable_dns_hostnames and vpc.enable_dns_support):
        yield (
            f"The VPC {existing.vpc_id} gives its instances no DNS names, by which nodes are "
            f"known; enable DNS hostnames and DNS support on it."
        )
    for zone, subnet_id in existing.private_subnet_ids.items():
        subnet = aws.ec2.get_subnet(id=subnet_id, opts=opts)
        if subnet.vpc_id != existing.vpc_id:
            yield (
                f"The subnet {subnet_id} is in {subnet.vpc_id}, not in {existing.vpc_id}; name one "
                f"of that VPC."
            )
        elif subnet.availability_zone != zone:
            yield (
                f"The subnet {subnet_id} is in {subnet.availability_zone}, but network.existing "
                f"names it for {zone}; a broker there would never reach its volume."
            )
        elif not _lies_in(subnet.cidr_block, blocks):
            yield (
                f"The subnet {subnet_id} is {subnet.cidr_block}, outside the blocks of the spec "
                f"({', '.join(blocks)}). The load balancer would refuse its clients; add its block "
                "to network.secondary_cidrs."
            )


def _lies_in(block: str, blocks: Sequence[str]) -> bool:
    subnet = ipaddress.IPv4Network(block)
    return any(subnet.subnet_of(ipaddress.IPv4Network(each)) for each in blocks)
