"""Judges whether AWS has room and a way for one machine more, and how EBS describes Kafka's disks.

A rotation starts the replacement before the old machine goes. Sources: Amazon VPC's subnets and
route tables; the VPC CNI; Service Quotas; EKS's private clusters; EBS's volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.checks.facts import ClusterFacts, Disk, WayOut, machine_of, node_of, nodes_of, pool_names
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.instances import vcpu_quota
from core.ground.placement import GIB_PER_TIB
from core.model.account import Subnet, VpcEndpoint
from core.model.nodes import Instance, Node

# The VPC CNI, as cli/survey/known.toml calls what its image is for.
VPC_CNI = "the VPC CNI"
# A machine takes an address of its own and, by the VPC CNI, one per pod; more, as it takes them
# before they are asked for, and a prefix of 16 where it is told to.
COMFORTABLE = 16
# Of addresses taken by prefix, a machine's own and one block of 16; and what leaves room for two.
PREFIX, COMFORTABLE_BY_PREFIX = 17, 34
# What a root volume takes where nobody says otherwise.
ROOT_GIB = 20


@rule("subnets")
def addresses(seen: ClusterFacts) -> Iterator[Finding]:
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
    named = [e.title for e in known_items(seen.essentials) if e.what == VPC_CNI and e.elsewhere]
    if named:
        yield not_judged(
            "subnet-elsewhere",
            listing(named),
            "it gives pods addresses of other subnets (custom networking, ENIConfig): how many "
            "are free there was not judged",
            "see that the subnets that the ENIConfigs name have addresses free, in every zone",
        )


def _nowhere(seen: ClusterFacts, known: Mapping[str, Subnet]) -> Iterator[Finding]:
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
    seen: ClusterFacts, known: Mapping[str, Subnet]
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


def _named_by_class(pool: str, seen: ClusterFacts) -> set[str]:
    """Return the subnets in which a NodePool's class starts nodes; none where nobody says so."""
    described = mapping_of(seen.node_pools).get(pool)
    known = described and mapping_of(seen.node_classes).get(described.node_class or "")
    return set(known.subnets) if known else set()


def _addresses_of_a_machine(nodes: list[Node], seen: ClusterFacts) -> int:
    """Return how many addresses a machine takes at the least before a broker runs on it."""
    plugin = [each for each in known_items(seen.essentials) if each.what == VPC_CNI]
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
            f"{said}, and a replacement with its broker takes {wanted} at least"
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


@rule("machine_quotas")
def machines(seen: ClusterFacts) -> Iterator[Finding]:
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
                f"machines of type {instance.type} ({instance.vcpus} vCPUs). No replacement starts "
                "before an old machine has gone",
                f"ask for more of {quota.of.name!r} ({quota.of.service}) in Service Quotas, which "
                f"takes days",
            )


@rule("disk_quota")
def disks(seen: ClusterFacts) -> Iterator[Finding]:
    """Find an account that may have no more gp3 than it has."""
    quota = seen.disk_quota
    if not isinstance(quota, Unknown) and quota.left * GIB_PER_TIB < ROOT_GIB:
        yield producer_may_stall(
            "quota-disks",
            f"quota {quota.of.name}",
            f"{quota.used:.2f} of {quota.limit:g} TiB are used: a replacement gets no root volume "
            f"of gp3, and no volume of Kafka's grows",
            f"ask for more of {quota.of.name!r} ({quota.of.service}) in Service Quotas, which "
            f"takes days",
        )


# What a node asks before it runs a broker: itself, its images, who its pods are.
ASKED_BY_NODES = ("ec2", "ecr.api", "ecr.dkr", "s3")
INTERNET_GATEWAY = "igw-"
IDENTITY = ("sts", "eks-auth")
SUBJECT = "subnets of Kafka's nodes"


@rule("ways_out")
def ways_out(seen: ClusterFacts) -> Iterator[Finding]:
    """Find subnets from which a node that starts there reaches nobody, or only by one zone."""
    if isinstance(seen.subnets, Unknown) or isinstance(seen.ways_out, Unknown):
        return
    every = {n: s for _, _, subnets in places(seen, seen.subnets) for n, s in subnets.items()}
    if unseen := set(every) - set(seen.ways_out):
        yield not_judged(
            "route-unseen",
            SUBJECT,
            f"EC2 lists no route table of {listing(unseen)}: the way out of a node that starts "
            "there was not judged",
            "look at its route table in the account that owns the VPC",
        )
    mine = {name: subnet for name, subnet in every.items() if name in seen.ways_out}
    ways = {name: seen.ways_out[name] for name in mine}
    if gone := {f"{name} (to {way.target})" for name, way in ways.items() if way.gone}:
        yield producer_may_stall(
            "route-gone",
            SUBJECT,
            f"the default route of {listing(gone)} leads to a target that is gone: a node that "
            "starts there fetches no image and does not join",
            "give the route table a NAT gateway that is there",
        )
    yield from _endpoint_findings(mine, ways, seen)
    yield from _one_nat(mine, ways)


@rule("function_subnets", "subnets", "ways_out")
def functions(seen: ClusterFacts) -> Iterator[Finding]:
    """Find subnets from which functions of ours do not reach what they call.

    A function in a VPC has no address of its own outside it: an internet gateway is no way out.
    """
    if isinstance(seen.subnets, Unknown) or isinstance(seen.ways_out, Unknown):
        return
    names = known_items(seen.function_subnets)
    subject = "subnets of the functions"
    if lost := set(names) - set(seen.subnets):
        yield producer_may_stall(
            "function-subnets",
            subject,
            f"EC2 does not know {listing(lost)}: a function cannot stand there",
            "name subnets that exist in `subnets`",
        )
    known = {name: seen.ways_out[name] for name in names if name in seen.ways_out}
    if gone := {f"{name} (to {way.target})" for name, way in known.items() if way.gone}:
        yield producer_may_stall(
            "function-route",
            subject,
            f"the default route of {listing(gone)} leads to a target that is gone: functions there "
            "reach nothing",
            "give the route table a NAT gateway that is there",
        )
    alone = {
        name: way
        for name, way in known.items()
        if way.target is None or way.target.startswith(INTERNET_GATEWAY)
    }
    if isinstance(seen.vpc_endpoints, Unknown):
        return
    wanted = tuple(sorted(known_items(seen.function_services)))
    missing = {
        each
        for name, way in alone.items()
        for each in lacking(seen.subnets[name], way, seen.vpc_endpoints, wanted)
    }
    if missing:
        yield producer_may_stall(
            "function-endpoints",
            subject,
            f"from {listing(alone)} functions reach no NAT gateway, and no endpoint for "
            f"{', '.join(sorted(missing))}: they see and do nothing",
            "name private subnets behind a NAT gateway in `subnets`, or make these endpoints",
        )


def lacking(
    subnet: Subnet, way: WayOut, found: tuple[VpcEndpoint, ...], wanted: tuple[str, ...]
) -> list[str]:
    """Return the services that nobody reaches from a subnet, of those that are wanted."""
    have = {
        each.service
        for each in found
        if each.available
        and each.vpc == subnet.vpc
        and (each.tables is None or way.table in each.tables)
    }
    return [service for service in wanted if service not in have]


def _endpoint_findings(
    subnets: Mapping[str, Subnet], ways: Mapping[str, WayOut], seen: ClusterFacts
) -> Iterator[Finding]:
    """Find subnets without a default route, and the endpoints that they lack in its place."""
    alone = {name: way for name, way in ways.items() if way.target is None}
    if isinstance(seen.vpc_endpoints, Unknown) or not alone:
        return
    found, plane = seen.vpc_endpoints, seen.control_plane
    if not isinstance(plane, Unknown) and plane.private is False:
        yield producer_may_stall(
            "api-server-far",
            SUBJECT,
            f"{listing(alone)} has no default route. The API server of EKS cluster {plane.name} "
            "has no address in the VPC, so a node that starts there does not join",
            "enable private access of the cluster's endpoint",
        )
    missing = {
        each
        for name, way in alone.items()
        for each in (
            *lacking(subnets[name], way, found, ASKED_BY_NODES),
            *_nameless(subnets[name], way, found),
        )
    }
    if missing:
        yield _missing_endpoints(alone, missing, found)
        return
    users = {
        service: who
        for service, who in _asked_beside(seen).items()
        if any(lacking(subnets[name], way, found, (service,)) for name, way in alone.items())
    }
    if users:
        yield worth_knowing(
            "endpoints-beside",
            SUBJECT,
            f"from {listing(alone)} no address reaches "
            + listing(f"{service} ({who})" for service, who in users.items())
            + ": who needs that must not come to run there",
            "make these endpoints too, or keep those who need them elsewhere",
        )


def _missing_endpoints(
    alone: Mapping[str, WayOut], missing: set[str], found: tuple[VpcEndpoint, ...]
) -> Finding:
    # Who has none of them may have a proxy, of which nothing is known here.
    designed = any(each.service in (*ASKED_BY_NODES, *IDENTITY) for each in found)
    return Finding(
        "endpoints-missing",
        Weight.PRODUCER if designed else Weight.UNKNOWN,
        SUBJECT,
        f"{listing(alone)} has no default route, and its VPC no endpoint for {listing(missing)}: "
        + (
            "a node that starts there fetches no image, or does not join"
            if designed
            else "how a node that starts there comes to its images is not known"
        ),
        "make the endpoints that EKS asks of private clusters, or a default route",
    )


def _nameless(subnet: Subnet, way: WayOut, found: tuple[VpcEndpoint, ...]) -> list[str]:
    """Return what is lacking of the two by which pods get a role, of which one is enough."""
    missing = lacking(subnet, way, found, IDENTITY)
    return [IDENTITY[0]] if len(missing) == len(IDENTITY) else []


def _asked_beside(seen: ClusterFacts) -> dict[str, str]:
    """Return what else is asked for, and by whom."""
    handlers = [each.title for each in known_items(seen.handlers) if each.queue_mode]
    scalers = [each.title for each in known_items(seen.autoscalers)]
    queued = handlers + [each.title for each in known_items(seen.node_provisioners) if each.queue]
    balancing = [each.title for each in known_items(seen.balancer_controllers)]
    asked = {"sqs": queued, "autoscaling": handlers + scalers, "elasticloadbalancing": balancing}
    return {service: listing(who) for service, who in asked.items() if who}


def _one_nat(subnets: Mapping[str, Subnet], ways: Mapping[str, WayOut]) -> Iterator[Finding]:
    """Name zones whose nodes go out by the NAT gateway of another zone alone."""
    by_zone = {
        subnets[name].zone: way.nat_zone
        for name, way in ways.items()
        if way.nat_zone and name in subnets
    }
    across = {zone: nat for zone, nat in by_zone.items() if zone != nat}
    if across and len(set(by_zone.values())) == 1 and len(by_zone) > 1:
        nat = next(iter(across.values()))
        yield worth_knowing(
            "nat-one-zone",
            SUBJECT,
            f"subnets in {listing(across)} go out by a NAT gateway in {nat}: while that zone is "
            f"away, no node starts in the others either",
            "give each zone a NAT gateway of its own, or use one of the whole region",
        )


EBS_IDS = "vol-"
IMPAIRED = "impaired"
# States of an attachment that ends.
NOT_OFF = ("detaching", "busy")


@rule("disks")
def impaired_disks(seen: ClusterFacts) -> Iterator[Finding]:
    """Find disks that are gone, broken, open to two machines, or under somebody else's key."""
    if isinstance(seen.disks, Unknown):
        return
    held = {
        volume.handle: volume.title
        for volume in known_items(seen.volumes)
        if volume.handle and volume.handle.startswith(EBS_IDS)
    }
    if gone := [claim for handle, claim in held.items() if handle not in seen.disks]:
        yield broker_may_die(
            "volume-gone",
            "volumes of Kafka",
            f"EBS knows no volume of {listing(gone)}: they were deleted, or are of another account "
            f"or region, and a broker that restarts finds no data",
            "look for their ids in EBS, and restore them from a snapshot before their pods restart",
        )
    known = {claim: seen.disks[handle] for handle, claim in held.items() if handle in seen.disks}
    if broken := [claim for claim, disk in known.items() if disk.state == "error"]:
        yield broker_may_die(
            "volume-error",
            "volumes of Kafka",
            f"EBS says that {listing(broken)} failed (state error): its data is not to be had",
            "let no other broker leave, and restore it from a snapshot or from its replicas",
        )
    if open_ones := [claim for claim, disk in known.items() if disk.multi_attach]:
        yield broker_may_die(
            "volume-multi-attach",
            "volumes of Kafka",
            f"{listing(open_ones)} may be attached to several machines (Multi-Attach). A broker on "
            "a node that is cut off may go on writing next to its successor",
            "disable Multi-Attach of the volume, as each of Kafka's has one writer",
        )
    yield from _attachments(seen.disks, seen)
    yield from _keys(known, seen)
    yield from _changing(known)
    yield from _checked(held, seen)
    counted = mapping_of(seen.disk_snapshots)
    if copied := [claim for handle, claim in held.items() if counted.get(handle, 0) > 1]:
        yield worth_knowing(
            "volume-snapshots",
            "volumes of Kafka",
            f"several snapshots of {listing(copied)} are being made at once: EBS says that they "
            f"may be slower until these are whole",
            "let them end before a broker copies its replicas back",
        )


def _attachments(disks: Mapping[str, Disk], seen: ClusterFacts) -> Iterator[Finding]:
    """Find disks that hang on a machine that is not their pod's, or do not come off."""
    handles = {(v.namespace, v.claim): v.handle or "" for v in known_items(seen.volumes)}
    hanging = []
    for pod in known_items(seen.pods):
        node = node_of(pod, seen)
        mine = (handles.get((pod.namespace, claim), "") for claim in pod.claims)
        for disk in (disks[handle] for handle in mine if handle in disks):
            hanging += [
                f"{pod.name} ({state} on {machine})"
                for machine, state in disk.attached.items()
                if node is not None
                and node.instance_id
                and (machine != node.instance_id or state in NOT_OFF)
            ]
    if hanging:
        yield producer_may_stall(
            "volume-attached",
            "volumes of Kafka",
            f"the disk of {listing(hanging)} is not with its pod, or does not come off: EBS "
            f"attaches it nowhere else before that machine lets it go",
            "see to that machine: its file system may still be in use, or it hangs; stop it before "
            "a volume is taken by force",
        )


def _keys(known: Mapping[str, Disk], seen: ClusterFacts) -> Iterator[Finding]:
    plane = seen.control_plane
    here = None if isinstance(plane, Unknown) else _account(plane.arn)
    foreign = {
        claim: account
        for claim, disk in known.items()
        if (account := _account(disk.key)) and here and account != here
    }
    for account in sorted(set(foreign.values())):
        claims = listing(claim for claim, owner in foreign.items() if owner == account)
        yield worth_knowing(
            "volume-key",
            "volumes of Kafka",
            f"{claims} are encrypted under a key of account {account}: when that withdraws its "
            f"grant or its key, they can be attached to no other node",
            "know who looks after that key, or copy the volumes under a key of this account",
        )


def _account(arn: str | None) -> str | None:
    """Return the account that an ARN names."""
    return next(iter((arn or "").split(":")[4:5]), None)


def _checked(held: Mapping[str, str], seen: ClusterFacts) -> Iterator[Finding]:
    """Find disks that EBS's own checks call impaired, or slower than they were bought."""
    said_of = mapping_of(seen.disk_checks)
    found = {claim: said_of[handle] for handle, claim in held.items() if handle in said_of}
    for ill in (True, False):
        mine = {c: said for c, said in found.items() if said.startswith(IMPAIRED) is ill}
        if mine:
            yield Finding(
                "volume-impaired",
                Weight.PRODUCER if ill else Weight.ADVICE,
                "volumes of Kafka",
                f"EBS's checks say of {listing(f'{c}: {said}' for c, said in mine.items())}: "
                + (
                    "a broker waits on such a disk, or reads what is not right, and falls out of "
                    "sync"
                    if ill
                    else "it is slower than what was bought, and a broker on it may fall behind"
                ),
                "look at its events (`aws ec2 describe-volume-status`), and let no other broker "
                "leave until it is ok",
            )


def _changing(known: Mapping[str, Disk]) -> Iterator[Finding]:
    under_way = [f"{claim} ({disk.change})" for claim, disk in known.items() if disk.change]
    if under_way:
        yield worth_knowing(
            "volume-modified",
            "volumes of Kafka",
            f"EBS changes {listing(under_way)}: until that is over, or for hours after it failed, "
            f"they cannot grow, and they may be slower",
            "wait for its end before a node leaves, and ask for the next change after that",
        )
