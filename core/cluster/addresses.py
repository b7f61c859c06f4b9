"""Decides whether the networks that a spec names are such as AWS takes, and few enough.

Sources: RFC 6890 (addresses that no machine has), the VPC user guide on CIDR blocks, EKS's
VpcConfigRequest, and the quota of rules in a security group, which our accounts start with.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter
from collections.abc import Iterator

from core import instances
from core.cluster.limits import PRIVATE_BITS
from core.cluster.needs import ADDRESSES_OF_BALANCER, ADDRESSES_OF_CONTROL_PLANE
from core.cluster.spec import ClusterSpec

# EKS: at most so many blocks, none of them private (VpcConfigRequest.publicAccessCidrs).
MOST_PUBLIC_CIDRS = 40
# Rules of one direction in one security group, by default.
RULES_PER_GROUP = 60
# Of every subnet, AWS keeps the first four addresses and the last (VPC user guide).
KEPT_OF_A_SUBNET = 5
# VPC quotas: blocks of a VPC, by default and at the very most.
BLOCKS_OF_A_VPC, MOST_BLOCKS_OF_A_VPC = 5, 50
# Nobody's own: this network, loopback, link-local, multicast and what follows it.
_NOBODYS = tuple(
    ipaddress.IPv4Network(block)
    for block in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")
)
_PRIVATE = (
    *_NOBODYS,
    *(
        ipaddress.IPv4Network(block)
        for block in (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
            # Reserved as well, for protocols and for measuring (RFC 6890).
            *("192.0.0.0/24", "198.18.0.0/15"),
        )
    ),
)
# VPC user guide, "VPC CIDR blocks": services of AWS's use it, too.
DOCKERS_BLOCK = ipaddress.IPv4Network("172.17.0.0/16")
# Of one of these a VPC has its private blocks, and of no second one (VPC user guide, "IPv4 CIDR
# block association restrictions").
KINDS = tuple(
    ipaddress.IPv4Network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.19.0.0/16")
)
_Block = ipaddress.IPv4Network | ipaddress.IPv6Network


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each network that AWS would refuse."""
    yield from _blocks(spec)
    yield from _clients(spec)
    yield from _rules(spec)
    yield from _public_access(spec)


def _blocks(spec: ClusterSpec) -> Iterator[str]:
    keys = ["network.vpc_cidr", *["network.secondary_cidrs"] * len(spec.network.secondary_cidrs)]
    named = list(zip(keys, map(ipaddress.ip_network, spec.network.blocks), strict=True))
    for key, block in named:
        yield from _of_nobody(key, block)
    if len(named) > MOST_BLOCKS_OF_A_VPC:
        yield (
            f"network.secondary_cidrs names {len(named) - 1} blocks, and a VPC has "
            f"{MOST_BLOCKS_OF_A_VPC} with its first at the very most; name those it has."
        )
    for (_, one), (key, other) in itertools.combinations(named, 2):
        if one.overlaps(other):
            yield (
                f"{key} names {other}, which overlaps {one} of the same VPC, and no VPC has "
                f"addresses twice; name each block as `aws ec2 describe-vpcs` does."
            )


def doubts(spec: ClusterSpec) -> Iterator[str]:
    """Warn of blocks that AWS advises against, and of a VPC of ours that the nodes use up.

    The last address gone, no instance can be launched there: no replacement either.
    """
    yield from _of_others(spec)
    if spec.network.existing is not None:
        return
    block = ipaddress.ip_network(spec.network.vpc_cidr)
    free = block.num_addresses // 2**PRIVATE_BITS - KEPT_OF_A_SUBNET
    most, zone = max((_kept_in(spec, zone), zone) for zone in spec.availability_zones)
    if most > free:
        yield (
            f"network.vpc_cidr is {block}, which leaves the private subnet of each zone {free} "
            f"addresses, and what stands in {zone}, with a replacement for each pool, keeps "
            f"{most}, since the network plugin takes those of two whole interfaces for every node: "
            f"a replacement might find none; name a larger block, up to /16, before the first `up`."
        )


def _of_others(spec: ClusterSpec) -> Iterator[str]:
    blocks = [ipaddress.IPv4Network(block) for block in spec.network.blocks]
    if len(blocks) > BLOCKS_OF_A_VPC:
        yield (
            f"network.secondary_cidrs makes {len(blocks)} blocks of one VPC, and AWS's quota is "
            f"{BLOCKS_OF_A_VPC} unless it was raised; name those that `aws ec2 describe-vpcs` does."
        )
    for block in blocks:
        if block.overlaps(DOCKERS_BLOCK):
            yield (
                f"network.vpc_cidr or secondary_cidrs has {block}, which overlaps {DOCKERS_BLOCK}: "
                f"Docker and services of AWS's (Cloud9, SageMaker) use that inside themselves and "
                f"cannot reach a VPC there; choose another block."
            )
    private = {block: next((k for k in KINDS if block.overlaps(k)), None) for block in blocks}
    first = private[blocks[0]]
    for block in blocks[1:]:
        if first is not None and private[block] not in (first, None):
            yield (
                f"network.secondary_cidrs names {block} beside {blocks[0]}, and a VPC whose first "
                f"block is of {first} takes none of {private[block]}; look at what `aws ec2 "
                f"describe-vpcs` says of it."
            )


def _kept_in(spec: ClusterSpec, zone: str) -> int:
    """Return how many addresses of a zone's private subnet are taken when all is there."""
    known = instances.table().types
    nodes = [
        (pool.instance_type, pool.nodes_per_zone + 1)
        for pool in spec.pools
        if zone in spec.zones_of(pool)
    ]
    system = spec.kubernetes
    nodes.append((system.system_instance_type, system.system_nodes_per_zone))
    kept = sum(known[name].kept_addresses * count for name, count in nodes if name in known)
    return kept + ADDRESSES_OF_BALANCER + ADDRESSES_OF_CONTROL_PLANE


def _of_nobody(key: str, block: _Block) -> Iterator[str]:
    if any(block.version == 4 and block.overlaps(each) for each in _NOBODYS) and block.prefixlen:
        yield (
            f"{key} names {block}, which is set aside for hosts themselves, links or multicast, "
            f"so that no machine has an address there; name a private block, such as 10.40.0.0/16."
        )


def _clients(spec: ClusterSpec) -> Iterator[str]:
    seen = {ipaddress.ip_network(spec.network.vpc_cidr): "network.vpc_cidr"}
    seen |= {ipaddress.ip_network(b): "network.secondary_cidrs" for b in spec.network.blocks[1:]}
    for written in spec.load_balancer.client_cidrs:
        block = ipaddress.ip_network(written)
        if block.version == 6:
            yield (
                f"load_balancer.client_cidrs names {written}, and the load balancer has IPv4 "
                f"addresses alone; take it out."
            )
        elif block in seen:
            yield (
                f"load_balancer.client_cidrs names {written}, which {seen[block]} has already, and "
                f"EC2 refuses the same rule twice; take it out."
            )
        yield from _of_nobody("load_balancer.client_cidrs", block)
        seen.setdefault(block, "load_balancer.client_cidrs")


def _rules(spec: ClusterSpec) -> Iterator[str]:
    """Refuse more rules than the load balancer's group takes: per network, one per port range."""
    networks = len(spec.network.blocks) + len(spec.load_balancer.client_cidrs)
    ranges = 1 + sum(pool.role.is_broker for pool in spec.pools)
    if networks * ranges > RULES_PER_GROUP:
        yield (
            f"load_balancer.client_cidrs and the VPC's blocks are {networks} networks, and with "
            f"{ranges} ranges of ports (the bootstrap's and each broker pool's) they need "
            f"{networks * ranges} rules where a security group takes {RULES_PER_GROUP}; join "
            f"networks or pools, to {RULES_PER_GROUP // ranges} networks or fewer."
        )


def _public_access(spec: ClusterSpec) -> Iterator[str]:
    blocks = spec.kubernetes.public_access_cidrs
    for written in blocks:
        block = ipaddress.ip_network(written)
        if block.version == 6:
            yield (
                f"kubernetes.public_access_cidrs names {written}, and this cluster's API server "
                f"has IPv4 addresses alone; take it out."
            )
        elif any(block.overlaps(private) for private in _PRIVATE):
            yield (
                f"kubernetes.public_access_cidrs names {written}, and EKS refuses private "
                f"networks there: name the public address they call from, or reach the private "
                f"API server from inside the VPC."
            )
    for written, times in Counter(blocks).items():
        if times > 1:
            yield f"kubernetes.public_access_cidrs names {written} {times} times; name it once."
    if len(blocks) > MOST_PUBLIC_CIDRS:
        yield (
            f"kubernetes.public_access_cidrs names {len(blocks)} networks and EKS takes "
            f"{MOST_PUBLIC_CIDRS}; join some."
        )
