"""Judges the account around a cluster: AWS's announcements, the control plane, encryption keys.

Sources: AWS Health's events; ARC's zonal shift and autoshift; EKS's version calendar, upgrade
policies and insights; Kubernetes' version skew policy; AWS KMS's key states; EC2 Auto Scaling's key
policy for encrypted volumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from core.checks.facts import ClusterFacts, ControlPlane, HealthEvent, Shiftable
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
from core.model.account import ENABLED, SCALING_ROLE, EncryptionKey
from core.model.nodes import ScalingGroup

TROUBLE = ("issue", "investigation")


@rule("aws_health")
def health(seen: ClusterFacts) -> Iterator[Finding]:
    """Find what AWS Health says is wrong, or will be done, where Kafka runs."""
    told = seen.aws_health
    if isinstance(told, Unknown):
        return
    if told.without_plan:
        yield worth_knowing(
            "health-unasked",
            "AWS Health",
            "unknown: its API answers only accounts with a Business plan of AWS Support or a "
            "larger one. EC2's own schedule of the nodes was read",
            "look at the AWS Health dashboard before a rotation",
        )
    ours = _ours(seen)
    troubles = [each for each in told.events if each.category in TROUBLE]
    for each in troubles:
        mine = sorted(each.entities & ours)
        named = f", which names {listing(mine)}" if mine else ""
        yield producer_may_stall(
            "health-issue",
            f"AWS Health, {each.service}",
            f"{each.code} is open in {each.place} since {each.begins}{named}: a replacement may "
            f"not start, or not get its volume",
            "let no node leave before it is closed",
        )
    for each in told.events:
        if each.category not in TROUBLE:
            yield from _scheduled_findings(each, ours, seen)


def _scheduled_findings(
    each: HealthEvent, ours: frozenset[str], seen: ClusterFacts
) -> Iterator[Finding]:
    statuses = mapping_of(seen.statuses)
    # EC2 itself says more of these, and they are judged by that.
    mine = sorted(
        name for name in each.entities & ours if not (name in statuses and statuses[name].events)
    )
    if mine:
        yield producer_may_stall(
            "health-scheduled",
            f"AWS Health, {each.service}",
            f"{each.code} is scheduled for {each.begins} and names {listing(mine)}",
            "do what it asks for before that, one node at a time",
        )


def _ours(seen: ClusterFacts) -> frozenset[str]:
    """Return what an event may call Kafka's machines, disks, cluster and balancers."""
    plane = seen.control_plane
    named = (
        *(node.instance_id for node in mapping_of(seen.nodes).values()),
        *(volume.handle for volume in known_items(seen.volumes)),
        *(() if isinstance(plane, Unknown) else (plane.name, plane.arn)),
        *(arn for group in mapping_of(seen.target_groups).values() for arn in group.balancers),
    )
    return frozenset(each for each in named if each)


@rule("zonal_shifts")
def shifts(seen: ClusterFacts) -> Iterator[Finding]:
    """Find zones that are shifted away from at this moment, and resources AWS may shift."""
    for each in known_items(seen.zonal_shifts):
        mine = _is_ours(each, seen)
        for zone, how in sorted(each.shifted.items()):
            yield _shift_finding(each, zone, how, seen, mine=mine)
        if mine and each.autoshift and not each.shifted:
            yield worth_knowing(
                "autoshift",
                each.name,
                "zonal autoshift is on: AWS shifts a zone away from it by itself, and for half an "
                "hour each week for practice",
                "plan no rotation into its practice run, or block those hours in its configuration",
            )


def _shift_finding(
    each: Shiftable, zone: str, how: str, seen: ClusterFacts, *, mine: bool
) -> Finding:
    name = _zone_name(zone, seen)
    here = {node.zone for node in mapping_of(seen.nodes).values()}
    touches = name in here or not here
    return Finding(
        "zone-shifted",
        Weight.PRODUCER if mine and touches else Weight.ADVICE,
        each.name,
        f"zone {name}{'' if name == zone else f' ({zone})'} is shifted away from it, {how}"
        + (
            ": nodes there are cordoned or get no clients, and a broker that leaves there is not "
            "replaced meanwhile"
            if mine
            else ": the survey does not cover that resource, and the zone may be in trouble"
        ),
        "let no node leave, there or elsewhere, before the shift is over",
    )


def _zone_name(zone: str, seen: ClusterFacts) -> str:
    """Return this account's name of a zone that is given by its id."""
    subnets = mapping_of(seen.subnets).values()
    return next((subnet.zone for subnet in subnets if subnet.zone_id == zone), zone)


def _is_ours(each: Shiftable, seen: ClusterFacts) -> bool:
    plane = seen.control_plane
    if not isinstance(plane, Unknown) and each.arn == plane.arn:
        return True
    if any(each.arn.endswith(f":autoScalingGroupName/{name}") for name in mapping_of(seen.groups)):
        return True
    return any(each.arn in group.balancers for group in mapping_of(seen.target_groups).values())


# AWS's list price of a cluster, in every commercial region.
STANDARD_USD_PER_HOUR, EXTENDED_USD_PER_HOUR = 0.10, 0.60
SOON_SECONDS = 60 * 86_400.0
# Kubernetes supports a kubelet that is so many minor versions older than its API server.
MOST_SKEW, SKEW_SINCE_MINOR, MOST_SKEW_BEFORE = 3, 28, 2
_MINOR = re.compile(r"v?1\.(\d+)")


@rule("control_plane")
def support(seen: ClusterFacts) -> Iterator[Finding]:
    """Find a version that costs more than it must, or that AWS upgrades by itself."""
    plane = seen.control_plane
    if isinstance(plane, Unknown):
        return
    title = f"EKS cluster {plane.name}"
    if plane.support is None:
        yield not_judged(
            "support-unknown",
            title,
            f"EKS lists no Kubernetes {plane.version}: how long it is supported is not known",
            "look at it in EKS's console, and plan an upgrade",
        )
    elif plane.support == "UNSUPPORTED":
        yield producer_may_stall(
            "support-over",
            title,
            f"Kubernetes {plane.version} is no longer supported. AWS upgrades its control plane at "
            "any moment, also during a rotation",
            "upgrade it now, at an hour that you choose",
        )
    elif plane.support == "EXTENDED_SUPPORT":
        yield _extended_support(plane, title, seen.read_at)
    elif plane.policy == "STANDARD" and _is_near(plane.standard_ends, seen.read_at):
        yield producer_may_stall(
            "support-ends",
            title,
            f"standard support of Kubernetes {plane.version} ends on {_day(plane.standard_ends)}, "
            f"and its upgrade policy is STANDARD: AWS then upgrades its control plane by itself",
            "upgrade it before that, at an hour that you choose",
        )


def _extended_support(plane: ControlPlane, title: str, now: float) -> Finding:
    ends = "a day that EKS does not name" if plane.extended_ends is None else None
    return Finding(
        "support-extended",
        Weight.PRODUCER if _is_near(plane.extended_ends, now) else Weight.ADVICE,
        title,
        f"Kubernetes {plane.version} is in extended support, for {EXTENDED_USD_PER_HOUR:.2f} USD "
        f"an hour in place of {STANDARD_USD_PER_HOUR:.2f} until "
        f"{ends or _day(plane.extended_ends)}. Then AWS upgrades it by itself",
        "upgrade the control plane, then rotate the nodes to its version",
    )


def _is_near(ends: float | None, now: float) -> bool:
    return ends is not None and ends - now < SOON_SECONDS


def _day(moment: float | None) -> str:
    return "?" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


@rule("control_plane")
def state(seen: ClusterFacts) -> Iterator[Finding]:
    """Find a control plane that is changed or deleted at this moment, or that EKS calls ill."""
    plane = seen.control_plane
    if isinstance(plane, Unknown):
        return
    title = f"EKS cluster {plane.name}"
    if plane.status == "DELETING":
        yield broker_may_die(
            "cluster-deleting",
            title,
            "it is being deleted: its API server goes, and nothing brings a lost pod back",
            "save the volumes first (persistentVolumeReclaimPolicy Retain); a deletion cannot be "
            "taken back",
        )
    elif plane.status != "ACTIVE":
        yield producer_may_stall(
            "cluster-changing",
            title,
            f"its status is {plane.status}: its API server may be away for minutes, and a drain "
            f"that is under way with it",
            "let no node leave before its status is ACTIVE",
        )
    if plane.issues:
        yield producer_may_stall(
            "cluster-issues",
            title,
            f"EKS says of it: {listing(plane.issues)}",
            "settle what EKS names before any node leaves",
        )


@rule("control_plane", "nodes")
def skew(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes whose kubelet is older than the control plane allows, or newer."""
    plane = seen.control_plane
    if isinstance(plane, Unknown) or isinstance(seen.nodes, Unknown):
        return
    server = _minor(plane.version)
    if server is None:
        return
    most = MOST_SKEW if server >= SKEW_SINCE_MINOR else MOST_SKEW_BEFORE
    minors = {node.name: _minor(node.version or "") for node in seen.nodes.values()}
    behind = [name for name, minor in minors.items() if minor is not None and server - minor > most]
    ahead = [name for name, minor in minors.items() if minor is not None and minor > server]
    for names, how in ((behind, f"more than {most} minor versions older"), (ahead, "newer")):
        if names:
            yield producer_may_stall(
                "kubelet-skew",
                "nodes of Kafka",
                f"the kubelet of {listing(names)} is {how} than Kubernetes {plane.version} of the "
                f"control plane, which Kubernetes does not support",
                "rotate the nodes to an image of the control plane's version",
            )


def _minor(written: str) -> int | None:
    found = _MINOR.match(written)
    return int(found[1]) if found else None


@rule("upgrade_insights")
def insights(seen: ClusterFacts) -> Iterator[Finding]:
    """Name what EKS has found that the next upgrade would meet."""
    open_ones = [each for each in known_items(seen.upgrade_insights) if each.status != "PASSING"]
    if open_ones:
        yield worth_knowing(
            "upgrade-insights",
            "the next upgrade",
            "EKS's upgrade insights say: "
            + listing(f"{each.name}: {each.status.lower()}" for each in open_ones),
            "read them (`aws eks list-insights`) before the control plane is upgraded",
        )


# In which a key decrypts, or is about to.
USABLE, DELETED = (
    (ENABLED, "Creating", "Updating"),
    ("PendingDeletion", "PendingReplicaDeletion", "gone"),
)


@rule("encryption_keys")
def keys(seen: ClusterFacts) -> Iterator[Finding]:
    """Find disks that no machine can open again, and groups whose machines do not start."""
    known = mapping_of(seen.encryption_keys)
    disks = mapping_of(seen.disks)
    held: dict[str, list[str]] = {}
    for volume in known_items(seen.volumes):
        disk = disks.get(volume.handle or "")
        key = None if disk is None else disk.key
        if key and key in known and known[key].state not in USABLE:
            held.setdefault(key, []).append(volume.title)
    for name, claims in sorted(held.items()):
        found = known[name]
        lost = found.state in DELETED
        when = f" on {found.deleted_on}" if found.deleted_on else ""
        yield broker_may_die(
            "key-state",
            "volumes of Kafka",
            f"{listing(claims)} are encrypted under {_short(name)}, which is "
            + (f"deleted{when}" if lost else f"{found.state}")
            + ": they are readable while their machines hold them, and are attached to no other"
            + (", and after that day this survey does not read them again" if lost else ""),
            "cancel the deletion (`aws kms cancel-key-deletion`) and enable the key, before any "
            "node leaves"
            if lost
            else "enable the key again before any node leaves",
        )
    for group in mapping_of(seen.groups).values():
        yield from _group_key_findings(group, seen, known)


def _group_key_findings(
    group: ScalingGroup, seen: ClusterFacts, known: Mapping[str, EncryptionKey]
) -> Iterator[Finding]:
    templates = mapping_of(seen.templates).get(group.name, ())
    named = {key for template in templates for key in template.keys}
    role = (group.service_role or SCALING_ROLE).rpartition("/")[2]
    for name in sorted(named & set(known)):
        key = known[name]
        if key.state not in USABLE:
            yield producer_may_stall(
                "template-key",
                group.title,
                f"disks of machines that it starts are encrypted under {_short(name)}, which is "
                f"{key.state}: no replacement starts",
                "enable that key, or name another in its template, before any node leaves",
            )
        elif key.bars(role):
            yield producer_may_stall(
                "key-grant",
                group.title,
                f"disks of machines that it starts are encrypted under {_short(name)}. Neither the "
                f"key's policy nor a grant names {role}: its machines end at once "
                "(Client.InternalError)",
                "allow that role to use the key, and to make grants for AWS resources",
            )


def _short(key: str) -> str:
    """Return a key's name without its account: key/0a1b."""
    return key.rpartition(":")[2]
