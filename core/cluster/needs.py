"""Counts what a ClusterSpec takes of an account before it stands: core.preflight compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from core import instances
from core.cluster.function_memory import memory_mib
from core.cluster.routes import routes
from core.cluster.spec import ClusterSpec
from core.quantities import GIB_PER_TIB

# How core.preflight.quotas calls the quota that most families share.
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
                f"`up` stops there unless the quota was raised; `stillwater preflight` says what "
                f"yours has, and Service Quotas raises it, which may take days."
            )
    memory = memory_mib(spec)
    if memory > MEMORY_OF_A_NEW_ACCOUNT_MIB:
        yield (
            f"functions.memory_mib is {memory}, and a function of a new account has "
            f"{MEMORY_OF_A_NEW_ACCOUNT_MIB} at the most, which AWS raises as the account is used: "
            f"`up` stops there until then; lower it, or ask AWS's support."
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
