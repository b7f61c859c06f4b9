"""Makes announcements an incident or joins them to one, in whatever order AWS delivers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.events import Interruption, Kind
from core.events.announcements import ISSUES, URGENT
from core.incidents.nodeclaims import disrupted_for
from core.incidents.record import Incident, State, Transition, incident_id
from core.incidents.schedules import ScheduledChange, apply_word, governing, is_another
from core.incidents.sections import InPlace
from core.naming import DRAIN_HOOK

_GRAVITY = tuple(Kind)


# Each is a matter of its own, whatever else was announced of the machine.
_TROUBLES = ISSUES | {Kind.SICK_NODE, Kind.SCHEDULED_CHANGE}


def open_incident(
    interruption: Interruption,
    now: float,
    *,
    after: Sequence[Incident] = (),
    actor: str = "interruption",
) -> Incident:
    """Open the incident an announcement asks for, as the next round `after` its instance's others.

    One that kept the instance has given no room back, since a person might let it go: this one
    does, or lets the instance go with it, and knows whose room it is should the Node be gone.
    """
    kept = after[-1] if after and after[-1].state is State.RETAINED else None
    blank = Incident(
        id=incident_id(interruption.instance_id, len(after) + 1),
        instance_id=interruption.instance_id,
        kind=interruption.kind,
        state=State.OPENED,
        opened_at=now,
        announced_at=interruption.announced_at(now),
        announcements=(),
        reason=_opening(interruption),
        surge_to=None if kept is None else kept.surge_to,
        zone=None if kept is None else kept.zone,
        pool=None if kept is None else kept.pool,
    )
    opened = Transition(now, State.OPENED, actor, blank.reason)
    return merge(replace(blank, transitions=(opened,)), interruption, now)


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
        _in_hook(joined, interruption, now, newest=newest), interruption, now
    )


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


def _in_hook(
    incident: Incident, interruption: Interruption, now: float, *, newest: bool
) -> Incident:
    """Add the hook an announcement names, with the token that completes it now."""
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
    """Take over what is scheduled, unless it is older than what is known."""
    if interruption.kind is Kind.ROTATION:
        party = interruption.party or incident.party
        theirs = _handed_back(incident) if interruption.closed else None
        if theirs is not None:
            return theirs
        # Its turn comes once; what somebody else had begun already waits for no run.
        opened = len(incident.announcements) == 1
        return replace(
            _in_place(incident, interruption),
            called_off=interruption.closed,
            party=party,
            ahead=interruption.ahead and (opened or incident.ahead),
        )
    if interruption.kind is Kind.SICK_NODE is incident.kind:
        said = interruption.event_type or incident.event_type
        return replace(incident, called_off=interruption.closed, event_type=said)
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
    """Return an incident that a run no longer wants as AWS's schedule alone has it; None: has not.

    What it has begun for it stays of use: its replacement, above all.
    """
    if incident.kind is not Kind.ROTATION:
        return None
    begun = incident.state is not State.OPENED
    ruling = governing(scheduled_changes(incident), retiring=begun)
    if ruling is None:
        return None
    return replace(
        incident,
        kind=Kind.SCHEDULED_CHANGE,
        event_type=ruling.code or incident.event_type,
        due_at=ruling.due_at,
        ahead=False,
    )


def _keep_schedule(incident: Incident, changes: tuple[ScheduledChange, ...]) -> Incident:
    """Keep what is scheduled, and of it what the incident is about now."""
    begun = incident.state is not State.OPENED
    ruling = governing(changes, retiring=begun)
    told = replace(
        incident, scheduled=changes, scheduled_said_at=max(each.said_at for each in changes)
    )
    # What AWS no longer wants, a run of ours may still do.
    ours = incident.kind is Kind.ROTATION
    if ruling is None:
        last = max(changes, key=lambda each: each.said_at)
        date = incident.due_at if incident.scheduled_said_at is not None else last.due_at
        return replace(
            told,
            event_type=incident.event_type or last.code,
            due_at=date,
            called_off=incident.called_off if ours else True,
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


def _in_place(incident: Incident, interruption: Interruption) -> Incident:
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
    held = interruption.kind is Kind.ASG_TERMINATE and not finished.hooks
    another = _another_matter(finished, interruption)
    unwanted = finished.ignored_by is not None and not (graver or asked_for or held or another)
    return not (gone or known or unwanted)


def _another_matter(finished: Incident, interruption: Interruption) -> bool:
    """Say whether a trouble is none of what an incident was about when a person ignored it.

    Whoever ignored a reboot has said nothing about a retirement, nor about a lost volume.
    """
    if interruption.kind is finished.kind is Kind.SCHEDULED_CHANGE:
        return is_another(scheduled_changes(finished), interruption)
    return interruption.kind in _TROUBLES and interruption.kind is not finished.kind


def _runs_again(finished: Incident, interruption: Interruption) -> bool:
    """Say whether AWS has something ahead for a machine that was lost, as only a live one has."""
    said_at = interruption.occurred_at
    later = said_at is not None and said_at > finished.entered_at
    return finished.state is State.LOST and later and interruption.kind is not Kind.STATE_CHANGE
