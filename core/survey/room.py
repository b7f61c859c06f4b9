"""Judges whether AWS has room for one machine more beside Kafka's: addresses, vCPUs, disks.

A rotation starts the replacement before the old machine goes. Sources: Amazon VPC's subnets, the
VPC CNI, Service Quotas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.instances import vcpu_quota
from core.quantities import GIB_PER_TIB
from core.survey.account_facts import AccountQuota, Subnet
from core.survey.facts import Surveyed, machine_of, nodes_of, pool_names
from core.survey.finding import Finding, listing, not_judged, producer_may_stall, worth_knowing
from core.survey.node_facts import Instance, Node
from core.unknown import Unknown, mapping_of, of

# The VPC CNI's image by what it is for (cli.survey.controllers).
VPC_CNI = "the VPC CNI"
# A machine takes an address of its own and, by the VPC CNI, one per pod; more, as it takes them
# before they are asked for, and a prefix of 16 where it is told to.
COMFORTABLE = 16
# Of addresses taken by prefix, a machine's own and one block of 16; and what leaves room for two.
PREFIX, COMFORTABLE_BY_PREFIX = 17, 34
# What a root volume takes where nobody says otherwise.
ROOT_GIB = 20


def addresses(seen: Surveyed) -> Iterator[Finding]:
    """Find zones whose subnets have no addresses left for a machine and its broker."""
    if isinstance(seen.subnets, Unknown):
        return
    for title, held, subnets in places(seen, seen.subnets):
        wanted = _addresses_of_a_machine(held, seen)
        for zone in sorted({subnet.zone for subnet in subnets.values()}):
            there = {name: s for name, s in subnets.items() if s.zone == zone}
            free = sum(subnet.free_addresses for subnet in there.values())
            if free < (COMFORTABLE if wanted < PREFIX else COMFORTABLE_BY_PREFIX):
                yield _short(title, zone, sorted(there), free, wanted)
    yield from _nowhere(seen, seen.subnets)
    yield from _custom_networking(seen)


def _nowhere(seen: Surveyed, known: Mapping[str, Subnet]) -> Iterator[Finding]:
    """Find groups that start machines in subnets that are gone, or nobody knows where."""
    for group in mapping_of(seen.groups).values():
        if gone := group.subnets - set(known):
            yield producer_may_stall(
                "subnet-gone",
                group.title,
                f"it starts nodes in {listing(gone)}, which EC2 does not know: a start there fails",
                "name subnets that exist",
            )
        if not group.subnets:
            yield not_judged(
                "subnet-unknown",
                group.title,
                "it names no subnets: how many addresses are free where it starts nodes is not "
                "known",
                "name the subnets of its zones in it",
            )


def places(
    seen: Surveyed, known: Mapping[str, Subnet]
) -> Iterator[tuple[str, list[Node], dict[str, Subnet]]]:
    """Yield what starts machines, its nodes, and the subnets of their zones it starts them in."""
    grouped: set[str] = set()
    for group in mapping_of(seen.groups).values():
        nodes = nodes_of(group, seen)
        grouped |= {node.name for node in nodes}
        zones = {node.zone for node in nodes}
        mine = {
            name: subnet
            for name, subnet in known.items()
            if name in group.subnets and (subnet.zone in zones or not zones)
        }
        yield group.title, nodes, mine
    free = [node for node in mapping_of(seen.nodes).values() if node.name not in grouped]
    for pool in pool_names(seen):
        pooled = [node for node in free if node.node_pool == pool]
        stand = {machine.subnet for n in pooled if (machine := machine_of(n, seen))}
        zones = {node.zone for node in pooled}
        named = _named_by_class(pool, seen) or stand
        mine = {n: s for n, s in known.items() if n in named and s.zone in zones}
        yield f"NodePool {pool}", pooled, mine


def _named_by_class(pool: str, seen: Surveyed) -> set[str]:
    """Return the subnets in which a NodePool's class starts nodes; none where nobody says so."""
    described = mapping_of(seen.node_pools).get(pool)
    known = described and mapping_of(seen.node_classes).get(described.node_class or "")
    return set(known.subnets) if known else set()


def _addresses_of_a_machine(nodes: list[Node], seen: Surveyed) -> int:
    """Return how many addresses a machine takes at the least before a broker runs on it."""
    plugin = [each for each in of(seen.essentials) if each.what == VPC_CNI]
    prefixed = any(each.by_prefix and not each.elsewhere for each in plugin)
    own = any(node.auto_mode for node in nodes)
    plane = seen.control_plane
    ipv6 = not isinstance(plane, Unknown) and plane.ipv6
    by_plugin = own or any(not each.elsewhere for each in plugin)
    # Where the plugin was not seen, nothing says that pods take none.
    unseen = isinstance(seen.essentials, Unknown) or not plugin
    if ipv6 or not (by_plugin or unseen):
        return 1
    return PREFIX if prefixed else 2


def _short(title: str, zone: str, subnets: list[str], free: int, wanted: int) -> Finding:
    said = f"{listing(subnets)} in {zone} {'has' if len(subnets) == 1 else 'have'} {free} free "
    said += "address" if free == 1 else "addresses"
    if free < wanted:
        return producer_may_stall(
            "subnet-full",
            title,
            f"{said}, and a replacement with its broker takes {wanted} at the least"
            + (", 16 of them in one block" if wanted == PREFIX else "")
            + ": it cannot start, or its broker stays pending",
            f"free addresses there, or give it another subnet of {zone}, before any node leaves",
        )
    return worth_knowing(
        "subnet-tight",
        title,
        f"{said}: enough for one machine, unless "
        + (
            "no 16 of them are one block"
            if wanted == PREFIX
            else "it takes addresses ahead of its pods, as the VPC CNI does with 15 or more"
        )
        + ", or something else there grows first",
        f"free addresses there, or give it another subnet of {zone}",
    )


def _custom_networking(seen: Surveyed) -> Iterator[Finding]:
    named = [e.title for e in of(seen.essentials) if e.what == VPC_CNI and e.elsewhere]
    if named:
        yield not_judged(
            "subnet-elsewhere",
            listing(named),
            "it gives pods addresses of other subnets (custom networking, ENIConfig): how many "
            "are free there was not judged",
            "see that the subnets that the ENIConfigs name have addresses free, in every zone",
        )


def machines(seen: Surveyed) -> Iterator[Finding]:
    """Find families of machines of which the account may have no more."""
    if isinstance(seen.machine_quotas, Unknown):
        return
    instances = mapping_of(seen.instances)
    largest: dict[str, Instance] = {}
    for instance in instances.values():
        name = vcpu_quota(instance.type)
        if name is None or instance.lifecycle is not None:
            continue
        if name not in largest or instance.vcpus > largest[name].vcpus:
            largest[name] = instance
    odd = [
        name
        for name, each in instances.items()
        if each.lifecycle is None and not (each.vcpus and vcpu_quota(each.type))
    ]
    if odd:
        yield not_judged(
            "quota-unknown",
            "quotas of machines",
            f"of {listing(odd)} EC2 names no type or vCPUs that a quota is known for: whether one "
            f"more may start is not known",
            "look at the quotas of EC2 in Service Quotas yourself",
        )
    for name, instance in sorted(largest.items()):
        quota = seen.machine_quotas.get(name)
        if quota is not None and instance.vcpus and quota.left < instance.vcpus:
            yield producer_may_stall(
                "quota-machines",
                f"quota {name}",
                f"{quota.used:g} of {quota.limit:g} vCPUs are used, which leaves room for 0 "
                f"machines of type {instance.type} ({instance.vcpus} vCPUs): no replacement starts "
                f"before an old one has gone",
                _quota_remedy(quota),
            )


def disks(seen: Surveyed) -> Iterator[Finding]:
    """Find an account that may have no more gp3 than it has."""
    quota = seen.disk_quota
    if not isinstance(quota, Unknown) and quota.left * GIB_PER_TIB < ROOT_GIB:
        yield producer_may_stall(
            "quota-disks",
            f"quota {quota.name}",
            f"{quota.used:.2f} of {quota.limit:g} TiB are used: a replacement gets no root volume "
            f"of gp3, and no volume of Kafka's grows",
            _quota_remedy(quota),
        )


def _quota_remedy(quota: AccountQuota) -> str:
    return f"ask for more of {quota.name!r} ({quota.service}) in Service Quotas, which takes days"
