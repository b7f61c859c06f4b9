"""Reads what the node termination handler posts when a drain attempt has ended.

It posts `{{ toJson . }}` of its own event, after the attempt, whether it went well or not: so a
report says that NTH is done trying, and nothing about the outcome. Its EventID ends in the hex of
the announcement's own id, by which a report finds its incident.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.errors import InvalidInput
from core.fields import instance_in, readable, text
from core.incidents.record import Incident

ACTOR = "nth"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainReport:
    """One attempt that NTH has ended."""

    nth_event_id: str
    announcement_id: str
    instance_id: str
    kind: str
    node_name: str | None


def read(body: str) -> DrainReport:
    """Read a report; raises InvalidInput with a sentence for anything else."""
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(
            ["The body is no valid JSON; set NTH's webhookTemplate to {{ toJson . }}."]
        ) from None
    if not isinstance(message, Mapping):
        raise InvalidInput(["The body is no JSON object, as NTH's events are."])
    event_id, kind = text(message, "EventID"), text(message, "Kind")
    instance_id = instance_in(message.get("InstanceID"))
    missing = [
        name
        for name, value in (("EventID", event_id), ("Kind", kind), ("InstanceID", instance_id))
        if value is None
    ]
    if event_id is None or kind is None or instance_id is None:
        raise InvalidInput([f"The body has no usable {' and no '.join(missing)}."])
    return DrainReport(
        nth_event_id=event_id,
        announcement_id=_announcement_id(event_id),
        instance_id=instance_id,
        kind=kind,
        node_name=text(message, "NodeName"),
    )


def _refuse_constant(name: str) -> object:
    # Python reads NaN and Infinity, which are no JSON.
    raise ValueError(name)


def _announcement_id(event_id: str) -> str:
    """Return the id in NTH's own: asg-lifecycle-term-<hex of the announcement's id>."""
    try:
        return readable(bytes.fromhex(event_id.rpartition("-")[2]))
    except ValueError:
        raise InvalidInput(
            [f"EventID {event_id[:80]!r} does not end in the hex of an announcement's id."]
        ) from None


def concerns(incident: Incident, report: DrainReport) -> bool:
    """Say whether a report is about the drain that this incident had forwarded."""
    if incident.instance_id != report.instance_id or incident.forwarded is None:
        return False
    return report.announcement_id == _forwarded_id(incident)


def _forwarded_id(incident: Incident) -> str:
    """Return the id by which NTH knows what it was sent (its RequestId where no event has one)."""
    try:
        sent = json.loads(incident.drain_event or "")
    except ValueError:
        # The announcement got lost; handlers.incidents.act sent one in its place.
        return f"stillwater-{incident.id}"
    return text(sent, "id") or text(sent, "RequestId") or ""


def note_report(incident: Incident, report: DrainReport, now: float) -> Incident:
    """Add a report to the incident's history; the same one again changes nothing."""
    where = report.node_name or f"the node of {report.instance_id}"
    said = f"NTH has ended its attempt to drain {where} ({report.nth_event_id})."
    sent = incident.forwarded
    if sent is None or any(note.reason == said for note in incident.notes):
        return incident
    reported = sent if sent.reported_at is not None else replace(sent, reported_at=now)
    return replace(incident, forwarded=reported).with_note(now, ACTOR, said)
