"""Decides what is frozen: whether anybody bears out a text, and what no word may do.

Prose is read by a machine and written for people: on it alone nothing is frozen. It counts for one
zone, once our own nodes there, EC2's checks of them, or ARC say the same. It never freezes a zone
beside another, and nobody ever freezes the last zone of a cluster. handlers.incidents.shifts asks
each minute while anything is announced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.availability.consent import HEALTH_ISSUE, LOST_ZONE
from core.ground.window import clock
from core.incidents.actions import Page
from core.incidents.observation import NodeView, StatusView
from core.zones.incident import AUTOSHIFT, PERSON, ZoneIncident, ZoneState, ends_at, speaker

ACTOR = "shift"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneSight:
    """What one turn sees of the cluster's zones."""

    now: float  # epoch seconds
    names: Mapping[str, str]  # this account's name of each zone of the region, by its id
    zones: frozenset[str] = frozenset()  # names of the zones that the cluster stands in
    # Zone's name -> a sentence of what goes wrong there, and only there.
    evidence: Mapping[str, str] = field(default_factory=dict)


def evidence_of(
    nodes: Sequence[NodeView], statuses: Mapping[str, StatusView], leaving: Collection[str] = ()
) -> dict[str, str]:
    """Return the zone in which more of our Kafka nodes are in trouble than anywhere else, if any.

    Trouble is a node that is not Ready or calls itself sick, or a check of EC2's that fails. Nodes
    in `leaving`, which we take out ourselves, say nothing. Trouble that is the same everywhere is
    not a zone's.
    """
    ours = [n for n in nodes if n.zone and n.pool is not None and n.instance_id not in leaving]
    standing = Counter(n.zone or "" for n in ours)
    troubled: dict[str, list[str]] = {}
    for node in ours:
        status = statuses.get(node.instance_id or "")
        what = _trouble(node, status)
        if what:
            troubled.setdefault(node.zone or "", []).append(f"{node.name} {what}")
    shares = {zone: len(found) / standing[zone] for zone, found in troubled.items()}
    worst = max(shares.values(), default=0.0)
    named = [zone for zone, share in shares.items() if share == worst]
    if len(named) != 1:
        return {}
    (zone,) = named
    return {zone: f"{len(troubled[zone])} of {standing[zone]}: {', '.join(troubled[zone][:3])}"}


def _trouble(node: NodeView, status: StatusView | None) -> str:
    if not node.ready:
        return "is not Ready"
    if node.sick:
        return f"reports {', '.join(sorted(node.sick))}"
    if status is not None and status.impaired:
        return f"fails EC2's {', '.join(sorted(status.impaired))} check"
    return ""


def judge(
    incidents: Sequence[ZoneIncident], sight: ZoneSight
) -> tuple[tuple[ZoneIncident, ...], tuple[Page, ...]]:
    """Freeze what is borne out, thaw what is too old, and say whom to call about the rest."""
    pages: list[Page] = []
    judged = [_ended_by_age(_told_unread(i, pages), sight.now, pages) for i in incidents]
    for position, incident in enumerate(judged):
        others = [i for n, i in enumerate(judged) if n != position]
        judged[position] = _judge_evidence(incident, others, sight, pages)
    return tuple(judged), tuple(pages)


def _told_unread(incident: ZoneIncident, pages: list[Page]) -> ZoneIncident:
    """Call a person where a newer release has decided something that this one cannot read."""
    if incident.unreadable is None:
        return incident
    reason = (
        f"A newer release has made {incident.where} {incident.unreadable}, which this one cannot "
        f"read: it is {incident.state.value} until then. Deploy that release again, or decide with "
        f"`stillwater zones`."
    )
    return _add_page(incident, "unreadable", reason, pages)


def _ended_by_age(incident: ZoneIncident, now: float, pages: list[Page]) -> ZoneIncident:
    """End what nobody has said anything about for too long; a person decides about a freeze."""
    if not incident.open or incident.until is None or now < incident.until:
        return incident
    frozen = incident.state is ZoneState.FROZEN
    reason = (
        f"{speaker(incident.source)} has said nothing about {incident.where} since "
        f"{clock(incident.said_at)}."
    )
    over = replace(incident, until=None).move_to(ZoneState.THAWED, now, ACTOR, reason)
    if not frozen or incident.source not in {HEALTH_ISSUE, AUTOSHIFT}:
        return over  # A person's own end, or a manual shift's, surprises nobody.
    asked = (
        f"{reason} It is thawed, and planned work goes on there: freeze it again with `stillwater "
        f"zones freeze` if it is still in trouble."
    )
    return _add_page(over, "zone_silent", asked, pages)


def _judge_evidence(
    incident: ZoneIncident, others: Sequence[ZoneIncident], sight: ZoneSight, pages: list[Page]
) -> ZoneIncident:
    if not incident.open or incident.source == LOST_ZONE:
        return incident
    if incident.state is ZoneState.FROZEN:
        return _still_frozen(incident, others, sight, pages)
    ours = [z for z in incident.zone_ids if _is_ours(z, sight)]
    if not ours:
        reason = f"None of the cluster's nodes stands in {', '.join(incident.zone_ids)}."
        return incident.move_to(ZoneState.THAWED, sight.now, ACTOR, reason)
    if len(ours) > 1:
        reason = (
            f"{speaker(incident.source)} names {len(ours)} of the cluster's zones "
            f"({', '.join(ours)}), and a text freezes one at most: nothing is frozen."
        )
        return _kept_watched(incident, "zones_many", reason, sight, pages)
    return _one_zone(replace(incident, zone_id=None), ours[0], others, sight, pages)


def _is_ours(zone_id: str, sight: ZoneSight) -> bool:
    """A cluster whose zones nobody could name may stand in any zone of the region."""
    name = sight.names.get(zone_id)
    return name is not None and (not sight.zones or name in sight.zones)


def _still_frozen(
    incident: ZoneIncident, others: Sequence[ZoneIncident], sight: ZoneSight, pages: list[Page]
) -> ZoneIncident:
    """Let go of the last zone, and call a person for a zone that AWS has frozen by a shift."""
    zone = sight.names.get(incident.zone_id or "") or incident.zone
    elsewhere = _frozen_zones(others, sight)
    if zone is not None and _is_last(zone, elsewhere, sight):
        return _kept_watched(incident, "zone_last", _last_zone_text(zone, incident), sight, pages)
    beside = [z for z in incident.zone_ids if z != incident.zone_id and _is_ours(z, sight)]
    if incident.source == HEALTH_ISSUE and beside:
        reason = (
            f"{speaker(incident.source)} speaks of zone {', '.join(beside)} while {zone} is "
            f"frozen: a text freezes no second zone."
        )
        return _add_page(incident, "zone_second", reason, pages)
    if incident.source != AUTOSHIFT:
        return incident
    reason = f"AWS shifts traffic out of {incident.where}: it is frozen; {ends_at(incident)}."
    return _add_page(incident, "zone_frozen", reason, pages)


def _one_zone(
    incident: ZoneIncident,
    zone_id: str,
    others: Sequence[ZoneIncident],
    sight: ZoneSight,
    pages: list[Page],
) -> ZoneIncident:
    zone = sight.names[zone_id]
    elsewhere = _frozen_zones(others, sight)
    if _is_last(zone, elsewhere, sight):
        return _kept_watched(incident, "zone_last", _last_zone_text(zone, incident), sight, pages)
    borne_out = _borne_out(incident, zone, others, sight)
    if borne_out is None:
        reason = (
            f"{speaker(incident.source)} speaks of zone {zone} ({zone_id}), and neither the "
            f"cluster's nodes there nor EC2's checks nor ARC bear it out: nothing is frozen."
        )
        return _kept_watched(incident, "zone_uncorroborated", reason, sight, pages)
    if incident.source == HEALTH_ISSUE and elsewhere - {zone}:
        reason = (
            f"{speaker(incident.source)} speaks of zone {zone} while "
            f"{', '.join(sorted(elsewhere))} is frozen: a text freezes no second zone."
        )
        return _kept_watched(incident, "zone_second", reason, sight, pages)
    frozen = replace(incident, zone_id=zone_id, zone=zone)
    reason = f"Zone {zone} ({zone_id}) is frozen: {speaker(incident.source)} says so; {borne_out}."
    moved = frozen.move_to(ZoneState.FROZEN, sight.now, ACTOR, reason)
    return _add_page(moved, "zone_frozen", f"{reason} In time {ends_at(moved)}.", pages)


def _borne_out(
    incident: ZoneIncident, zone: str, others: Sequence[ZoneIncident], sight: ZoneSight
) -> str | None:
    """Say who bears a word out; None: nobody."""
    if incident.source != HEALTH_ISSUE:
        return "no other source is needed"
    if zone in sight.evidence:
        return sight.evidence[zone]
    for other in others:
        there = other.zone or sight.names.get(other.zone_id or "")
        if other.source != HEALTH_ISSUE and other.holds(sight.now) and there == zone:
            return f"{speaker(other.source)} says the same"
    return None


def _frozen_zones(incidents: Sequence[ZoneIncident], sight: ZoneSight) -> frozenset[str]:
    """Return the names of the zones that others keep frozen."""
    found = (i.zone or sight.names.get(i.zone_id or "") for i in incidents if i.holds(sight.now))
    return frozenset(zone for zone in found if zone is not None)


def _is_last(zone: str, elsewhere: frozenset[str], sight: ZoneSight) -> bool:
    return zone in sight.zones and not sight.zones - elsewhere - {zone} and zone not in elsewhere


def _last_zone_text(zone: str, incident: ZoneIncident) -> str:
    return (
        f"{speaker(incident.source)} wants zone {zone} left alone, and it is the last one of the "
        f"cluster that is not frozen: it is not frozen."
    )


def _kept_watched(
    incident: ZoneIncident, key: str, reason: str, sight: ZoneSight, pages: list[Page]
) -> ZoneIncident:
    watched = incident.move_to(ZoneState.WATCHED, sight.now, ACTOR, reason)
    if incident.source == PERSON:
        return watched  # Who asked was told at once.
    return _add_page(watched, key, reason, pages)


def _add_page(incident: ZoneIncident, key: str, reason: str, pages: list[Page]) -> ZoneIncident:
    if key in incident.pages:
        return incident
    pages.append(Page(key, reason))
    return replace(incident, pages=(*incident.pages, key))
