"""Builds where a cluster stands: a VPC and one private subnet per zone, ours or somebody else's.

Nothing of somebody else's is changed, so what would fail hours later is looked at first: a subnet
that lies in another zone than the spec says would have its brokers wait for ever for a volume.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec, ExistingNetwork
from core.errors import InvalidInput
from infra.network.vpc import Network, NetworkArgs
from infra.tags import Tags


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the rest of the program needs of the network."""

    vpc_id: pulumi.Input[str]
    private_subnet_ids: Mapping[str, pulumi.Input[str]]
    # Of somebody else's network: the private ones, which the control plane shares with pods.
    control_plane_subnet_ids: Mapping[str, pulumi.Input[str]]
    # Keyed by what does not change: a zone of ours, the id of a given table.
    route_table_ids: Mapping[str, pulumi.Input[str]]


def site(
    spec: ClusterSpec, tags: Tags, provider: pulumi.ProviderResource, opts: pulumi.ResourceOptions
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
    network = Network(
        "network",
        NetworkArgs(
            prefix=spec.prefix,
            vpc_cidr=spec.network.vpc_cidr,
            availability_zones=spec.availability_zones,
            eks_cluster=spec.prefix,
            tags=tags,
        ),
        opts=opts,
    )
    return Site(
        vpc_id=network.vpc_id,
        private_subnet_ids=network.private_subnet_ids,
        control_plane_subnet_ids=network.control_plane_subnet_ids,
        route_table_ids=network.private_route_table_ids,
    )


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
                f"The subnet {subnet_id} is {subnet.cidr_block}, outside the blocks that the spec "
                f"names ({', '.join(blocks)}), and the load balancer would turn its "
                f"clients away; add the VPC's block of it to network.secondary_cidrs."
            )


def _lies_in(block: str, blocks: Sequence[str]) -> bool:
    subnet = ipaddress.IPv4Network(block)
    return any(subnet.subnet_of(ipaddress.IPv4Network(each)) for each in blocks)
