"""Judges what AWS has announced beside EC2's own events: AWS Health's, and zones shifted away.

Sources: AWS Health's events; Amazon Application Recovery Controller's zonal shift and autoshift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.survey.account_facts import HealthEvent, Shiftable
from core.survey.facts import Surveyed
from core.survey.finding import Finding, Weight, listing, producer_may_stall, worth_knowing
from core.survey.node_facts import MachineStatus
from core.unknown import Unknown, mapping_of, of

TROUBLE = ("issue", "investigation")


def health(seen: Surveyed) -> Iterator[Finding]:
    """Find what AWS Health says is wrong, or will be done, where Kafka runs."""
    told = seen.aws_health
    if isinstance(told, Unknown):
        return
    if told.without_plan:
        yield worth_knowing(
            "health-unasked",
            "AWS Health",
            "not known, because its API answers accounts with a Business, Enterprise On-Ramp, "
            "Enterprise or Unified Operations plan of AWS Support alone: what EC2 itself has "
            "scheduled for the nodes was read, and nothing else",
            "look at the AWS Health dashboard before a rotation",
        )
    ours = _ours(seen)
    troubles = [each for each in told.events if each.category in TROUBLE]
    for each in troubles:
        mine = sorted(each.entities & ours)
        of_ours = f", which names {listing(mine)}" if mine else ""
        yield producer_may_stall(
            "health-issue",
            f"AWS Health, {each.service}",
            f"{each.code} is open in {each.place} since {each.begins}{of_ours}: a replacement may "
            f"not start, or not get its volume",
            "let no node leave before it is closed",
        )
    for each in told.events:
        if each.category not in TROUBLE:
            yield from _scheduled_findings(each, ours, seen)


def _scheduled_findings(
    each: HealthEvent, ours: frozenset[str], seen: Surveyed
) -> Iterator[Finding]:
    statuses = mapping_of(seen.statuses)
    # EC2 itself says more of these, and they are judged by that.
    mine = sorted(name for name in each.entities & ours if not _told_by_ec2(name, statuses))
    if mine:
        yield producer_may_stall(
            "health-scheduled",
            f"AWS Health, {each.service}",
            f"{each.code} is scheduled for {each.begins} and names {listing(mine)}",
            "do what it asks for before that, one node at a time",
        )


def _told_by_ec2(name: str, statuses: Mapping[str, MachineStatus]) -> bool:
    return name in statuses and bool(statuses[name].events)


def _ours(seen: Surveyed) -> frozenset[str]:
    """Return what an event may call Kafka's machines, disks, cluster and balancers."""
    plane = seen.control_plane
    named = (
        *(node.instance_id for node in mapping_of(seen.nodes).values()),
        *(volume.handle for volume in of(seen.volumes)),
        *(() if isinstance(plane, Unknown) else (plane.name, plane.arn)),
        *(arn for group in mapping_of(seen.target_groups).values() for arn in group.balancers),
    )
    return frozenset(each for each in named if each)


def shifts(seen: Surveyed) -> Iterator[Finding]:
    """Find zones that are shifted away from at this moment, and resources AWS may shift."""
    for each in of(seen.zonal_shifts):
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


def _shift_finding(each: Shiftable, zone: str, how: str, seen: Surveyed, *, mine: bool) -> Finding:
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
            else ": it is no resource that was surveyed, and the zone may be in trouble"
        ),
        "let no node leave, there or elsewhere, before the shift is over",
    )


def _zone_name(zone: str, seen: Surveyed) -> str:
    """Return this account's name of a zone that is given by its id."""
    subnets = mapping_of(seen.subnets).values()
    return next((subnet.zone for subnet in subnets if subnet.zone_id == zone), zone)


def _is_ours(each: Shiftable, seen: Surveyed) -> bool:
    plane = seen.control_plane
    if not isinstance(plane, Unknown) and each.arn == plane.arn:
        return True
    if any(each.arn.endswith(f":autoScalingGroupName/{name}") for name in mapping_of(seen.groups)):
        return True
    return any(each.arn in group.balancers for group in mapping_of(seen.target_groups).values())
