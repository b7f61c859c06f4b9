"""Records what people and the group want of an incident, for the loop to obey at its next look.

The command line writes the first three into the ledger, λ interruption the last. Every one is kept
with who said it and when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.errors import Conflict, InvalidInput
from core.events import GroupChange, GroupNotice
from core.events.announcements import CLOCKS_APART_SECONDS
from core.incidents.record import Incident, State, Transition, incident_id, round_of
from core.incidents.sections import LaunchFailure, Release
from core.window import clock


def hold(incident: Incident, until: float, actor: str, now: float) -> Incident:
    """Keep the instance until a moment a person names: nothing is drained before.

    What runs already goes on: a drain cannot be called back. Raises Conflict when the incident is
    over, InvalidInput for a moment that has passed.
    """
    _still_open(incident, "held")
    if until <= now:
        raise InvalidInput(
            [f"Incident {incident.id} cannot be held until {clock(until)}: it is {clock(now)}."]
        )
    said = f"{actor} holds instance {incident.instance_id} until {clock(until)}."
    return _with_note(replace(incident, held_until=until), actor, said, now)


def ignore(incident: Incident, actor: str, reason: str, now: float) -> Incident:
    """Let the loop end an incident without doing anything.

    Only a graver word, or one about another matter, opens another.

    Raises Conflict when the incident is over.
    """
    _still_open(incident, "ignored")
    said = f"{actor} wants incident {incident.id} ignored: {reason}"
    return _with_note(replace(incident, ignored_by=actor), actor, said, now)


def ask_release(incident: Incident, actor: str, now: float) -> Incident:
    """Let the instance go without a replacement and without Kafka's consent; still drained first.

    Asked (again) while it is drained or gated, it is let go as it is.

    Of an incident whose instance was retained this is the next round, which nobody has written yet
    (version 0). Raises Conflict when the incident is over in any other way.
    """
    said, asked = f"{actor} lets instance {incident.instance_id} go.", Release(by=actor, at=now)
    if incident.state is not State.RETAINED:
        _still_open(incident, "released")
        return _with_note(replace(incident, release=asked, held_until=None), actor, said, now)
    round_number = round_of(incident.id) + 1
    return Incident(
        id=incident_id(incident.instance_id, round_number),
        instance_id=incident.instance_id,
        kind=incident.kind,
        state=State.OPENED,
        opened_at=now,
        announced_at=now,
        announcements=incident.announcements,
        group=incident.group,
        release=asked,
        surge_to=incident.surge_to,
        reason=said,
        transitions=(Transition(now, State.OPENED, actor, said),),
    )


_OF_LAUNCHES = frozenset({GroupChange.LAUNCHED, GroupChange.LAUNCH_FAILED})


def awaiting(incidents: Iterable[Incident], notice: GroupNotice) -> tuple[Incident, ...]:
    """Return the open incidents of the group that says something."""
    return tuple(i for i in incidents if i.open and i.group == notice.group)


def note_group(incident: Incident, notice: GroupNotice, now: float) -> Incident:
    """Add what the group said about its launches: no capacity, or capacity again.

    A word that is older than another of them, or than the incident, comes late: what it says may
    have changed since, and the group tries again and says so.
    """
    if not incident.open or incident.group != notice.group or notice.what not in _OF_LAUNCHES:
        return incident
    at = notice.occurred_at
    said_at = now if at is None else min(at, now + CLOCKS_APART_SECONDS)
    earliest = max(incident.launches_said_at or 0.0, incident.opened_at - CLOCKS_APART_SECONDS)
    if said_at < earliest:
        return incident
    incident = replace(incident, launches_said_at=said_at)
    if notice.what is GroupChange.LAUNCH_FAILED:
        cause = notice.cause or "AWS gave no cause"
        before = incident.launch_failure
        since = before.since if before else min(said_at, now)
        failure = LaunchFailure(since=since, cause=cause)
        noted = replace(incident, launch_failure=failure)
        return _with_note(
            noted, "aws", f"{notice.group} could not launch an instance: {cause}", now
        )
    if notice.what is GroupChange.LAUNCHED and incident.launch_failure is not None:
        noted = replace(incident, launch_failure=None)
        return _with_note(noted, "aws", f"{notice.group} launched {notice.instance_id}.", now)
    return incident


def _with_note(incident: Incident, actor: str, sentence: str, now: float) -> Incident:
    """Note what somebody other than the loop said; a repetition is not worth another note."""
    repeated = bool(incident.notes) and incident.notes[-1].reason == sentence
    return incident if repeated else incident.with_note(now, actor, sentence)


def _still_open(incident: Incident, done: str) -> None:
    if not incident.open:
        raise Conflict(
            f"Incident {incident.id} cannot be {done}: it is over ({incident.state.value}: "
            f"{incident.reason})"
        )
