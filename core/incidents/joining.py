"""Makes announcements an incident or joins them to one, in whatever order AWS delivers them.

So join the words of people and of groups (hold, ignore, release, a launch that failed), each kept
with who said it and when, and what the node termination handler posts when a drain attempt has
ended: `{{ toJson . }}` of its own event, after the attempt, whether it went well or not. A pause
stands beside them: while it holds nothing new is drained or terminated, hooks keep beating and
drains that run end; a two-minute warning is drained all the same, since EC2 takes it anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.events import GroupChange, GroupNotice, Interruption, Kind
from core.events.announcements import CLOCKS_APART_SECONDS, ISSUES, URGENT
from core.ground.errors import Conflict, InvalidInput
from core.ground.fields import drop_keys, instance_in, part, readable, text
from core.ground.naming import DRAIN_HOOK, incident_id, instance_of, round_of
from core.ground.window import clock
from core.incidents.record import (
    Incident,
    InPlace,
    LaunchFailure,
    Release,
    ScheduledChange,
    State,
    Transition,
    apply_word,
    disrupted_for,
    flat,
    governing,
    is_another,
)

_GRAVITY = tuple(Kind)
# Each is a matter of its own, whatever else was announced of the machine.
_TROUBLES = ISSUES | {Kind.SICK_NODE, Kind.SCHEDULED_CHANGE, Kind.STATE_CHANGE}
# We ask these to leave, whatever becomes of AWS's schedule.
_OURS = frozenset({Kind.SICK_NODE, Kind.ROTATION})


def open_incident(
    interruption: Interruption,
    now: float,
    *,
    after: Sequence[Incident] = (),
    actor: str = "interruption",
) -> Incident:
    """Open the incident an announcement asks for, as the round `after` its instance's others."""
    opened = Transition(now, State.OPENED, actor, _opening(interruption))
    said_at = interruption.announced_at(now)
    id_ = incident_id(interruption.instance_id, len(after) + 1)
    blank = _blank(id_, interruption.kind, opened, after[-1] if after else None)
    return merge(replace(blank, announced_at=said_at), interruption, now)


def _blank(id_: str, kind: Kind, opened: Transition, last: Incident | None) -> Incident:
    """Return a round that begins, after an instance's last.

    One that kept the instance has given no room back, since a person might let it go: this one
    does, or lets the instance go with it, and knows whose room it is should the Node be gone.
    """
    kept = last if last is not None and last.state is State.RETAINED else None
    return Incident(
        id=id_,
        instance_id=instance_of(id_),
        kind=kind,
        state=State.OPENED,
        opened_at=opened.at,
        announced_at=opened.at,
        announcements=(),
        reason=opened.reason,
        surge_to=None if kept is None else kept.surge_to,
        zone=None if kept is None else kept.zone,
        pool=None if kept is None else kept.pool,
        transitions=(opened,),
    )


def _opening(interruption: Interruption) -> str:
    if interruption.kind is Kind.ROTATION:
        return f"Rotation: {interruption.event_type or 'asked for'}."
    if interruption.kind is Kind.EVICTION:
        return f"{interruption.event_type} wants instance {interruption.instance_id} emptied."
    if interruption.kind is Kind.SICK_NODE:
        return f"Instance {interruption.instance_id} is sick: {interruption.event_type}."
    return f"AWS announced {interruption.kind.value} for instance {interruption.instance_id}."


def merge(incident: Incident, interruption: Interruption, now: float) -> Incident:
    """Join another announcement about the same instance; one already joined changes nothing."""
    if interruption.dedupe_key in incident.announcements or not incident.open:
        return incident
    kind = max(incident.kind, interruption.kind, key=_GRAVITY.index)
    passed = None if kind is incident.kind else _in_passing(incident, interruption, now)
    if passed is not None:
        return passed
    newest, told = _newest_of_hook(incident, interruption, now), interruption.disruption
    joined = replace(
        incident,
        announcements=(*incident.announcements, interruption.dedupe_key),
        kind=kind,
        announced_at=_governing_at(incident, interruption, now),
        group=incident.group or interruption.group,
        disruption=incident.disruption
        if told is None
        else disrupted_for(incident.disruption, told),
        drain_event=_drain_event(incident, interruption, newest=newest),
    )
    return _take_over_schedule(
        _join_hook(joined, interruption, now, newest=newest), interruption, now
    )


def _in_passing(incident: Incident, told: Interruption, now: float) -> Incident | None:
    """Return an incident with a graver word that asks nothing of it; None: the word takes it over.

    Nothing is done about an issue, a reboot or what is closed that would end what others began.
    """
    begun = incident.state is not State.OPENED
    heard = replace(incident, announcements=(*incident.announcements, told.dedupe_key))
    if told.kind is Kind.SCHEDULED_CHANGE:
        changes = apply_word(scheduled_changes(incident), told, now)
        asks = governing(changes, retiring=begun) is not None
        return None if asks else replace(heard, scheduled=changes)
    if told.closed:
        return heard
    asks = told.kind not in ISSUES or not begun
    return None if asks else _note_once(heard, "aws", _opening(told), now)


def _newest_of_hook(incident: Incident, interruption: Interruption, now: float) -> bool:
    """Say whether AWS announced this hook later than what is known of it, whenever it arrived.

    A token names one lifecycle action: that of an earlier termination completes nothing any more.
    """
    if interruption.hook is None or interruption.lifecycle_token is None:
        return False
    known_at = incident.hooks_said.get(interruption.hook)
    token = incident.hooks.get(interruption.hook)
    if known_at is None or token is None:
        return True
    said = interruption.announced_at(now), interruption.lifecycle_token
    return said > (known_at, token)


def _join_hook(
    incident: Incident, interruption: Interruption, now: float, *, newest: bool
) -> Incident:
    hook = interruption.hook
    if hook is None:
        return incident
    if not newest:
        return replace(incident, hooks={hook: None, **incident.hooks})
    return replace(
        incident,
        hooks={**incident.hooks, hook: interruption.lifecycle_token},
        hooks_said={**incident.hooks_said, hook: interruption.announced_at(now)},
    )


def _governing_at(incident: Incident, interruption: Interruption, now: float) -> float:
    """Return when AWS first said what governs the incident, in whatever order words arrive."""
    said_at = interruption.announced_at(now)
    before, after = (_GRAVITY.index(k) for k in (incident.kind, interruption.kind))
    if after == before:
        return min(incident.announced_at, said_at)
    return said_at if after > before else incident.announced_at


def _drain_event(incident: Incident, interruption: Interruption, *, newest: bool) -> str | None:
    """Choose what to forward: the drain hook's own event, or else a two-minute warning.

    The handler completes the hook its message names, so the drain hook's event comes first.
    """
    if interruption.hook == DRAIN_HOOK and interruption.body:
        known = incident.hooks.get(DRAIN_HOOK) is not None and incident.drain_event is not None
        return interruption.body if newest or not known else incident.drain_event
    if interruption.kind in URGENT and incident.hooks.get(DRAIN_HOOK) is None:
        return incident.drain_event or interruption.body
    return incident.drain_event


def _take_over_schedule(incident: Incident, interruption: Interruption, now: float) -> Incident:
    if interruption.kind is Kind.ROTATION:
        party = interruption.party or incident.party
        theirs = _handed_back(incident) if interruption.closed else None
        if theirs is not None:
            return theirs
        # Its turn comes once; what somebody else had begun already waits for no run.
        opened = len(incident.announcements) == 1
        return replace(
            _join_in_place(incident, interruption),
            called_off=interruption.closed,
            party=party,
            ahead=interruption.ahead and (opened or incident.ahead),
        )
    if interruption.kind is Kind.SICK_NODE is incident.kind:
        theirs = _handed_back(incident) if interruption.closed else None
        said = interruption.event_type or incident.event_type
        told = replace(incident, called_off=interruption.closed, event_type=said)
        return theirs or _keep_schedule(told, scheduled_changes(incident))
    if interruption.kind is not Kind.SCHEDULED_CHANGE:
        # Of what is no schedule, only a two-minute warning says when the machine goes.
        due_at = interruption.due_at if interruption.kind in URGENT else None
        return replace(
            incident,
            event_type=incident.event_type or interruption.event_type,
            due_at=incident.due_at or due_at,
        )
    known = scheduled_changes(incident)
    changes = apply_word(known, interruption, now)
    return incident if changes == known else _keep_schedule(incident, changes)


def _handed_back(incident: Incident) -> Incident | None:
    """Return an incident that we no longer want as AWS's schedule alone has it; None: has not.

    What was begun for it stays of use: its replacement, above all.
    """
    theirs = replace(incident, kind=Kind.SCHEDULED_CHANGE, called_off=False, ahead=False)
    changes, begun = scheduled_changes(incident), incident.state is not State.OPENED
    wanted = incident.kind in _OURS and governing(changes, retiring=begun) is not None
    return _keep_schedule(theirs, changes) if wanted else None


def _keep_schedule(incident: Incident, changes: tuple[ScheduledChange, ...]) -> Incident:
    """Keep what is scheduled, and of it what the incident is about now."""
    ours = incident.kind in _OURS
    ruling = governing(changes, retiring=ours or incident.state is not State.OPENED)
    if ruling is None and ours:
        # Whoever leaves by our own word leaves all the same, and by no date of AWS's.
        return replace(incident, scheduled=changes, scheduled_said_at=None, due_at=None)
    told = replace(
        incident, scheduled=changes, scheduled_said_at=max(each.said_at for each in changes)
    )
    if ruling is None:
        last = max(changes, key=lambda each: each.said_at)
        date = incident.due_at if incident.scheduled_said_at is not None else last.due_at
        return replace(
            told, event_type=incident.event_type or last.code, due_at=date, called_off=True
        )
    return replace(
        told,
        event_type=ruling.code or incident.event_type,
        due_at=ruling.due_at,
        called_off=incident.called_off if ours else False,
    )


def scheduled_changes(incident: Incident) -> tuple[ScheduledChange, ...]:
    """Return what is scheduled for an incident's instance, as any release has kept it.

    A release before this one keeps the last word alone, and moves it beside what it cannot read.
    """
    said_at = incident.scheduled_said_at
    said = any(each.said_at == said_at for each in incident.scheduled)
    dated = any(each.due_at == incident.due_at for each in incident.scheduled)
    if said_at is None or (said and dated):
        return incident.scheduled
    word = ScheduledChange(
        names=(),
        code=incident.event_type,
        due_at=incident.due_at,
        said_at=said_at,
        closed=incident.called_off,
    )
    others = (each for each in incident.scheduled if each.answer is not word.answer)
    return (*others, word)


def _join_in_place(incident: Incident, interruption: Interruption) -> Incident:
    """Take over that the root volume is to be replaced in place, before anything is begun."""
    image_id = interruption.image_id
    begun = incident.state is not State.OPENED or bool(incident.hooks)
    if image_id is None or begun or incident.in_place is not None:
        return incident
    return replace(incident, in_place=InPlace(image_id=image_id))


def reopens(finished: Incident, interruption: Interruption) -> bool:
    """Say whether an announcement asks for another incident after one that is over.

    A released or lost instance is gone: what is still said about it is an echo, unless it is said
    of a lost one later, which somebody has started again.
    """
    gone = finished.state in {State.RELEASED, State.LOST} and not _runs_again(
        finished, interruption
    )
    known = interruption.dedupe_key in finished.announcements
    graver = _GRAVITY.index(interruption.kind) > _GRAVITY.index(finished.kind)
    asked_for = interruption.kind is Kind.ROTATION  # a person's later word
    # Hooks hold it now: an ignored two-minute warning has said nothing about those.
    ended = interruption.kind is Kind.ASG_TERMINATE
    held = ended and (not finished.hooks or _another_termination(finished, interruption))
    another = _another_matter(finished, interruption)
    unwanted = finished.ignored_by is not None and not (graver or asked_for or held or another)
    return not (gone or known or unwanted)


def _another_termination(finished: Incident, interruption: Interruption) -> bool:
    """Say whether a hook holds an instance anew: a token names one action of a group."""
    token, said_at = finished.hooks.get(interruption.hook or ""), interruption.occurred_at
    other = token is not None and interruption.lifecycle_token not in {None, token}
    return other and said_at is not None and said_at > finished.entered_at


def _another_matter(finished: Incident, interruption: Interruption) -> bool:
    """Say whether a trouble is none of what an incident was about when a person ignored it.

    Whoever ignored a reboot has said nothing about a retirement, a lost volume, or a machine's end.
    """
    if interruption.kind is finished.kind is Kind.SCHEDULED_CHANGE:
        return is_another(scheduled_changes(finished), interruption)
    return interruption.kind in _TROUBLES and interruption.kind is not finished.kind


def _runs_again(finished: Incident, interruption: Interruption) -> bool:
    """Say whether AWS has something ahead for a machine that was lost, as only a live one has."""
    said_at = interruption.occurred_at
    later = said_at is not None and said_at > finished.entered_at
    return finished.state is State.LOST and later and interruption.kind is not Kind.STATE_CHANGE


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
    return _note_once(replace(incident, held_until=until), actor, said, now)


def ignore(incident: Incident, actor: str, reason: str, now: float) -> Incident:
    """Let the loop end an incident without doing anything.

    Only a graver word, or one about another matter, opens another.

    Raises Conflict when the incident is over.
    """
    _still_open(incident, "ignored")
    said = f"{actor} wants incident {incident.id} ignored: {reason}"
    return _note_once(replace(_as_read(incident), ignored_by=actor), actor, said, now)


def ask_release(incident: Incident, actor: str, now: float) -> Incident:
    """Let the instance go without a replacement and without Kafka's consent; still drained first.

    Asked (again) while it is drained or gated, it is let go as it is.

    Of an incident whose instance was retained this is the next round, which nobody has written yet
    (version 0). Raises Conflict when the incident is over in any other way.
    """
    said, asked = f"{actor} lets instance {incident.instance_id} go.", Release(by=actor, at=now)
    if incident.state is not State.RETAINED:
        _still_open(incident, "released")
        released = replace(_as_read(incident), release=asked, held_until=None)
        return _note_once(released, actor, said, now)
    id_ = incident_id(incident.instance_id, round_of(incident.id) + 1)
    blank = _blank(id_, incident.kind, Transition(now, State.OPENED, actor, said), incident)
    known = incident.announcements
    return replace(blank, announcements=known, group=incident.group, release=asked)


def _as_read(incident: Incident) -> Incident:
    """Return an incident as this release reads it, which a person's word decides by."""
    return replace(incident, unread=drop_keys(incident.unread, *flat(incident)))


_OF_LAUNCHES = frozenset({GroupChange.LAUNCHED, GroupChange.LAUNCH_FAILED})


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
        return _note_once(
            noted, "aws", f"{notice.group} could not launch an instance: {cause}", now
        )
    if notice.what is GroupChange.LAUNCHED and incident.launch_failure is not None:
        noted = replace(incident, launch_failure=None)
        return _note_once(noted, "aws", f"{notice.group} launched {notice.instance_id}.", now)
    return incident


def _note_once(incident: Incident, actor: str, sentence: str, now: float) -> Incident:
    """Note what somebody other than the loop said; a repetition is not worth another note."""
    repeated = bool(incident.notes) and incident.notes[-1].reason == sentence
    return incident if repeated else incident.add_note(now, actor, sentence)


def _still_open(incident: Incident, done: str) -> None:
    if not incident.open:
        raise Conflict(
            f"Incident {incident.id} cannot be {done}: it is over ({incident.state.value}: "
            f"{incident.reason})"
        )


UNREADABLE = "a newer release wrote it, and this one cannot read why"


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause of a cluster."""

    actor: str
    because: str
    since: float  # epoch seconds
    until: float | None = None  # None: until somebody resumes

    def holds(self, now: float) -> bool:
        return self.until is None or now < self.until

    @property
    def unreadable(self) -> bool:
        """Say whether a newer release wrote it, in a shape that this one does not know."""
        return self.because == UNREADABLE

    @property
    def sentence(self) -> str:
        end = "until somebody resumes" if self.until is None else f"until {clock(self.until)}"
        why = self.because.rstrip(".")
        return f"Paused by {self.actor} since {clock(self.since)}, {end}: {why}."


def pause_to_document(pause: Pause | None) -> dict[str, Any]:
    return {"pause": None if pause is None else asdict(pause)}


def pause_from_document(document: object) -> Pause | None:
    """Read what any release wrote; a pause that cannot be read holds until somebody resumes."""
    if not document:
        return None
    stored = document.get("pause", UNREADABLE) if isinstance(document, dict) else UNREADABLE
    if stored is None:
        return None
    said = part(stored)
    since, until = said.get("since"), said.get("until")
    return Pause(
        actor=str(said.get("actor") or "somebody"),
        because=str(said.get("because") or UNREADABLE),
        since=since if isinstance(since, int | float) else 0.0,
        until=until if isinstance(until, int | float) else None,
    )


NTH = "nth"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainReport:
    """One attempt that NTH has ended."""

    nth_event_id: str
    announcement_id: str
    instance_id: str
    kind: str
    node_name: str | None


def read_drain_report(body: str) -> DrainReport:
    """Read a report; raises InvalidInput with a sentence for anything else."""
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(
            ["The body is no valid JSON; set NTH's webhookTemplate to {{ toJson . }}."]
        ) from None
    if not isinstance(message, Mapping):
        raise InvalidInput(["The body is not a JSON object, as NTH's events are."])
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


def is_reported_by(incident: Incident, report: DrainReport) -> bool:
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
    return replace(incident, forwarded=reported).add_note(now, NTH, said)
