"""Applies what a person wants of a run: pause, resume, abort. λ rotate writes it into the record.

core.rotation.progress heeds it at the next safe point: when nobody is away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.errors import Conflict
from core.rotation.run_codec import without_unread_state
from core.rotation.run_record import NodeTurn, Options, Phase, Run, RunState, note_run


def pause(run: Run, actor: str, now: float) -> Run:
    """Begin with no further node: the run stands still once nobody is away."""
    _still_open(run, "paused")
    _readable(run)
    asked = replace(run, pause_asked_by=actor)
    ready = any(turn.ahead for turn in run.waiting)  # Its next turn calls that off.
    if run.state is not RunState.RUNNING or not (run.in_hand or ready):
        asked = replace(asked, state=RunState.PAUSED, next_turn_at=None)
        return note_run(asked, actor, f"{actor} paused the run.", now)
    if not run.in_hand:
        return note_run(asked, actor, f"{actor} pauses the run at its next turn.", now)
    away = " and ".join(f"node {t.node_id}" for t in run.in_hand)
    verb = "is" if len(run.in_hand) == 1 else "are"
    return note_run(asked, actor, f"{actor} pauses the run once {away} {verb} back.", now)


def resume(
    run: Run, actor: str, now: float, *, skip: bool = False, options: Options | None = None
) -> Run:
    """Go on after a pause or a stop; every node in hand gets its whole deadline again.

    With `skip` a node that failed, or is not allowed to begin, is left as it is. Other `options`
    are for whoever begins from now on, and the record says what they change.
    """
    _still_open(run, "resumed")
    _readable(run)
    turns = tuple(_again(run, t, now, skip=skip) for t in run.turns)
    going = replace(
        run,
        state=RunState.RUNNING,
        pause_asked_by=None,
        turns=turns,
        options=options or run.options,
        pages=(),
        next_turn_at=now,
    )
    skipped = [str(t.node_id) for t, u in zip(turns, run.turns, strict=True) if t.phase != u.phase]
    without = [f"without node {', '.join(skipped)}"] if skip and skipped else []
    said = ", ".join([f"{actor} resumes the run", *without, *_changes(run.options, going.options)])
    return note_run(going, actor, f"{said}.", now)


def _changes(before: Options, after: Options) -> Iterator[str]:
    if after.at_once != before.at_once:
        yield f"{at_once_words(after.at_once)} instead of {at_once_words(before.at_once)}"
    if after.any_time and not before.any_time:
        yield "at any time"
    if after.even_recovering and not before.even_recovering:
        yield "even with a node that recovers its logs"
    if after.acknowledged != before.acknowledged:
        yield "knowing of the metadata errors counted by now"
    topics = sorted(set(after.accepted_topics) - set(before.accepted_topics))
    if topics:
        yield f"though topic {', '.join(topics)} cannot be kept up"


def at_once_words(at_once: int | None) -> str:
    """Say how many brokers of a zone go together."""
    if at_once is None:
        return "a zone at a time"
    return "one broker at a time" if at_once == 1 else f"{at_once} brokers of a zone at a time"


def _again(run: Run, turn: NodeTurn, now: float, *, skip: bool) -> NodeTurn:
    blocked = turn.phase is Phase.WAITING and turn.since is not None
    if skip and (turn.phase is Phase.FAILED or (blocked and run.state is RunState.STOPPED)):
        return replace(turn, phase=Phase.SKIPPED, reason="Left as it is.", done_at=now)
    if turn.phase is Phase.FAILED:
        return replace(
            turn, phase=Phase.WAITING, attempt=turn.attempt + 1, incident_id=None, since=None
        )
    return replace(turn, since=None if turn.since is None else now, stuck_since=None)


def abort(run: Run, actor: str, now: float) -> Run:
    """Begin with no further node and end once nobody is away; who has not left yet stays.

    A run that cannot be read ends at once: whoever is away comes back by its own incident.
    """
    _still_open(run, "aborted")
    if run.unreadable:
        said = f"{actor} aborts the run, which a newer release wrote; who is away comes back."
        ended = without_unread_state(replace(run, state=RunState.ABORTED, next_turn_at=None))
        return note_run(replace(ended, abort_asked_by=actor, ended_at=now), actor, said, now)
    asked = replace(run, abort_asked_by=actor, state=RunState.RUNNING, next_turn_at=now)
    return note_run(asked, actor, f"{actor} aborts the run.", now)


def _still_open(run: Run, done: str) -> None:
    if run.over:
        raise Conflict(f"Run {run.id} cannot be {done}: it is {run.state.value} ({run.reason})")


def unreadable_sentence(run: Run) -> str:
    """Say of a run which words of a newer release stand in it, and what to do."""
    words = ", ".join(run.unreadable)
    return (
        f"Run {run.id} was written by a newer release ({words}), which this one cannot read: "
        f"deploy that release again, or abort the run."
    )


def _readable(run: Run) -> None:
    if run.unreadable:
        raise Conflict(unreadable_sentence(run))
