"""Decides whether networks, ports and DNS names of a spec are such as AWS takes, and few enough.

Sources: RFC 6890, the VPC user guide on CIDR blocks and on EC2's own host names, EKS's
VpcConfigRequest, the quota of rules in a security group, Route 53's CreateHostedZone (no top-level
domain, nothing under amazonaws.com), the Kubernetes DNS specification (cluster.local). It also
counts what a spec takes of an account, which core.checks.new_cluster compares.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.cluster.limits import PRIVATE_BITS
from core.cluster.operation import memory_mib
from core.cluster.spec import ClusterSpec
from core.ground import instances, naming
from core.ground.placement import GIB_PER_TIB

BOOTSTRAP: None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One port of the load balancer and the Kubernetes Service whose pods it leads to."""

    # Names the route's resources, zone and pool first, so that adding either adds only its own.
    key: str
    node_id: int | None
    port: int
    service: str
    binding: str
    # Nobody runs under this id yet, so that its Service may be missing.
    spare: bool = False


def routes(spec: ClusterSpec) -> list[Route]:
    """Return the bootstrap's route and every broker id's, spare ones included."""
    listener = spec.kafka.listener
    bootstrap = Route(
        "bootstrap",
        BOOTSTRAP,
        listener.bootstrap_port,
        naming.listener_bootstrap_service(spec.name, listener.name, listener.port),
        naming.target_group_binding(spec.name, BOOTSTRAP),
    )
    return [bootstrap, *_broker_routes(spec)]


def _broker_routes(spec: ClusterSpec) -> list[Route]:
    listener = spec.kafka.listener
    found = []
    for pool in spec.pools:
        if not pool.role.is_broker:
            continue
        prepared = pool.nodes_per_zone + pool.spare_nodes_per_zone
        for zone, ids in spec.node_ids_of(pool).items():
            node_pool = naming.kafka_node_pool(pool.name, zone)
            found += [
                Route(
                    f"{zone}-{pool.name}-{node_id}",
                    node_id,
                    naming.advertised_port(listener.first_advertised_port, node_id),
                    naming.listener_broker_service(
                        spec.name, node_pool, node_id, listener.name, listener.port
                    ),
                    naming.target_group_binding(spec.name, node_id),
                    spare=node_id not in ids[: pool.nodes_per_zone],
                )
                for node_id in ids[:prepared]
            ]
    return found


# Of the generic ones, those that people have; every country's has two letters.
_TOP_LEVEL = (
    "aero app arpa aws biz bot cloud co com coop dev edu gov info int io jobs mil mobi museum name "
    "net online org page pro shop site store tech tel travel xyz"
)
TOP_LEVEL = frozenset(_TOP_LEVEL.split())
OF_AWS = ("amazonaws.com", "amazonaws.com.cn", "api.aws", "on.aws", "aws.dev")
OF_THE_CLUSTER = ("cluster.local", "svc")


def domain_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each name that would be refused, or answered by somebody else."""
    zone = spec.load_balancer.private_zone
    named = {"kafka.listener.advertised_host": spec.kafka.listener.advertised_host}
    if zone is not None:
        named = {"load_balancer.private_zone": zone, **named}
    for key, name in named.items():
        why = _why(name.lower(), spec.region)
        if why is not None:
            yield (
                f"{key} is {name}, and {why}; choose a domain of your own, such as kafka.internal."
            )
            # The other of the two stands in the same domain.
            return
    if zone is not None and (zone.lower() in TOP_LEVEL or re.fullmatch(r"[a-zA-Z]{2}", zone)):
        yield (
            f"load_balancer.private_zone is {zone}, a top-level domain, for which Route 53 makes "
            f"no hosted zone; name one below it."
        )


def _why(name: str, region: str) -> str | None:
    of_ec2 = ("ec2.internal", f"{region}.compute.internal", "compute.internal")
    for domains, why in (
        (OF_AWS, "names under {0} are AWS's: Route 53 makes no zone of them"),
        (
            OF_THE_CLUSTER,
            "{0} belongs to the cluster's own DNS, and nothing answers for it outside",
        ),
        (of_ec2, "{0} is where EC2 names its instances: a zone of it hides the nodes' own names"),
    ):
        for domain in domains:
            if f".{name}".endswith(f".{domain}"):
                return why.format(domain)
    return None


# How core.checks.new_cluster calls the quota that most families share.
STANDARD = "vcpus_standard"
# Free addresses in each subnet that a network load balancer asks for as it is made, and EKS for its
# control plane's interfaces (NLB user guide; EKS network requirements).
ADDRESSES_OF_BALANCER, ADDRESSES_OF_CONTROL_PLANE = 8, 6
# A node's own and that of its first pod: the least with which a broker runs.
ADDRESSES_OF_NODE = 2


def quotas_of(spec: ClusterSpec) -> dict[str, float]:
    """Return how much of each quota a cluster takes, one replacement per pool among it."""
    wanted: Counter[str] = Counter()
    known = instances.table().types
    zones = len(spec.availability_zones)
    machines = [(pool.instance_type, spec.nodes_of(pool) + 1) for pool in spec.pools]
    machines.append(
        (spec.kubernetes.system_instance_type, spec.kubernetes.system_nodes_per_zone * zones)
    )
    for name, number in machines:
        if name in known and instances.vcpu_quota(name) == instances.STANDARD_QUOTA:
            wanted[STANDARD] += number * known[name].vcpus
    gib = sum(
        spec.nodes_of(pool) * sum(volume.size_gib for volume in pool.volumes) for pool in spec.pools
    )
    groups = sum(len(spec.zones_of(pool)) for pool in spec.pools) + zones
    ours = spec.network.existing is None
    return {
        **wanted,
        "gp3_tib": gib / GIB_PER_TIB,
        "elastic_ips": zones if ours else 0,
        "vpcs": 1 if ours else 0,
        "nlbs": 1,
        "listeners_per_nlb": len(routes(spec)),
        "target_groups": len(routes(spec)),
        "auto_scaling_groups": groups if spec.node_provisioner == "asg" else zones,
        "eks_clusters": 1,
        "kms_keys": 2,
        "rules": 24,
    }


# What an account begins with: the quota pages of EC2, EBS, VPC and Elastic Load Balancing. Of
# machines it begins with so few that everybody has had them raised.
BEGINS_WITH: Mapping[str, tuple[float, str]] = {
    "elastic_ips": (5, "Elastic IP addresses, one for each zone's way out"),
    "gp3_tib": (50, "TiB of gp3 volumes"),
}
# "New AWS accounts have reduced concurrency and memory quotas" (Lambda's quotas page).
MEMORY_OF_A_NEW_ACCOUNT_MIB = 3008


def beyond_what_accounts_begin_with(spec: ClusterSpec) -> Iterator[str]:
    """Warn of a cluster that takes more than an account that was never raised may have."""
    wanted = quotas_of(spec)
    for name, (quota, what) in BEGINS_WITH.items():
        if wanted.get(name, 0) > quota:
            yield (
                f"The cluster takes {wanted[name]:g} {what}, and an account begins with {quota:g}: "
                "`up` stops there unless the quota was raised. `stillwater preflight` shows "
                "yours, and Service Quotas raises it, which may take days."
            )
    memory = memory_mib(spec)
    if memory > MEMORY_OF_A_NEW_ACCOUNT_MIB:
        yield (
            f"functions.memory_mib is {memory}, and a function of a new account has "
            f"{MEMORY_OF_A_NEW_ACCOUNT_MIB} at most. `up` stops there until AWS raises that; lower "
            "it, or ask AWS's support."
        )


def subnets_of(spec: ClusterSpec) -> dict[str, int]:
    """Return how many free addresses each subnet of somebody else's VPC must have at the least.

    With a replacement per pool; a VPC of ours is made large enough.
    """
    existing = spec.network.existing
    if existing is None:
        return {}
    found: Counter[str] = Counter()
    for zone in spec.availability_zones:
        pools = [pool for pool in spec.pools if zone in spec.zones_of(pool)]
        nodes = sum(pool.nodes_per_zone + 1 for pool in pools)
        nodes += spec.kubernetes.system_nodes_per_zone
        found[existing.private_subnet_ids[zone]] += (
            ADDRESSES_OF_BALANCER + ADDRESSES_OF_CONTROL_PLANE + ADDRESSES_OF_NODE * nodes
        )
    return dict(found)


def instance_types_of(spec: ClusterSpec) -> dict[str, frozenset[str]]:
    """Return each instance type with the zones it must be offered in."""
    found: dict[str, frozenset[str]] = {}
    everywhere = frozenset(spec.availability_zones)
    for pool in spec.pools:
        zones = frozenset(spec.zones_of(pool))
        found[pool.instance_type] = found.get(pool.instance_type, frozenset()) | zones
    system = spec.kubernetes.system_instance_type
    return {**found, system: found.get(system, frozenset()) | everywhere}


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
        yield from _reserved_problems(key, block)
    if len(named) > MOST_BLOCKS_OF_A_VPC:
        yield (
            f"network.secondary_cidrs names {len(named) - 1} blocks, and a VPC has "
            f"{MOST_BLOCKS_OF_A_VPC} with its first at most; name those it has."
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
    yield from _vpc_problems(spec)
    if spec.network.existing is not None:
        return
    block = ipaddress.ip_network(spec.network.vpc_cidr)
    free = block.num_addresses // 2**PRIVATE_BITS - KEPT_OF_A_SUBNET
    most, zone = max((_kept_in(spec, zone), zone) for zone in spec.availability_zones)
    if most > free:
        yield (
            f"network.vpc_cidr is {block}, which leaves the private subnet of each zone {free} "
            f"addresses. The resources in {zone}, with a replacement for each pool, need {most}, "
            "two whole interfaces for every node. A replacement might find none; name a larger "
            "block, up to /16, before the first `up`."
        )


def _vpc_problems(spec: ClusterSpec) -> Iterator[str]:
    blocks = [ipaddress.IPv4Network(block) for block in spec.network.blocks]
    if len(blocks) > BLOCKS_OF_A_VPC:
        yield (
            f"network.secondary_cidrs makes {len(blocks)} blocks of one VPC, and AWS's quota is "
            f"{BLOCKS_OF_A_VPC} unless it was raised; name those that `aws ec2 describe-vpcs` does."
        )
    for block in blocks:
        if block.overlaps(DOCKERS_BLOCK):
            yield (
                f"network.vpc_cidr or secondary_cidrs has {block}, which overlaps {DOCKERS_BLOCK}. "
                "Docker, Cloud9 and SageMaker use that block themselves and cannot reach a VPC "
                "there; choose another block."
            )
    private = {block: next((k for k in KINDS if block.overlaps(k)), None) for block in blocks}
    first = private[blocks[0]]
    for block in blocks[1:]:
        if first is not None and private[block] not in (first, None):
            yield (
                f"network.secondary_cidrs names {block} and {blocks[0]}. A VPC whose first block "
                f"is of {first} takes none of {private[block]}; take those of `aws ec2 "
                "describe-vpcs`."
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


def _reserved_problems(key: str, block: _Block) -> Iterator[str]:
    if any(block.version == 4 and block.overlaps(each) for each in _NOBODYS) and block.prefixlen:
        yield (
            f"{key} names {block}, which is reserved for hosts themselves, links or multicast; "
            "name a private block, such as 10.40.0.0/16."
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
        yield from _reserved_problems("load_balancer.client_cidrs", block)
        seen.setdefault(block, "load_balancer.client_cidrs")


def _rules(spec: ClusterSpec) -> Iterator[str]:
    """Refuse more rules than the load balancer's group takes: per network, one per port range."""
    networks = len(spec.network.blocks) + len(spec.load_balancer.client_cidrs)
    ranges = 1 + sum(pool.role.is_broker for pool in spec.pools)
    if networks * ranges > RULES_PER_GROUP:
        yield (
            f"load_balancer.client_cidrs and the VPC's blocks are {networks} networks. With "
            f"{ranges} ranges of ports they need {networks * ranges} rules, and a security group "
            f"takes {RULES_PER_GROUP}; join networks or pools, to {RULES_PER_GROUP // ranges} "
            "networks or fewer."
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
                f"kubernetes.public_access_cidrs names {written}. EKS refuses private networks "
                "there; name public addresses, or use the private API server inside the VPC."
            )
    for written, times in Counter(blocks).items():
        if times > 1:
            yield f"kubernetes.public_access_cidrs names {written} {times} times; name it once."
    if len(blocks) > MOST_PUBLIC_CIDRS:
        yield (
            f"kubernetes.public_access_cidrs names {len(blocks)} networks and EKS takes "
            f"{MOST_PUBLIC_CIDRS}; join some."
        )
