"""A rotation run as one Slack thread: every node's place in the head, a reply per event.

λ slack asks `next_step` as it asks core.slack.incident_thread about an incident. What a run merely
waits for edits the head; nodes that leave and come back, stops and people's words are told below
it.
"""

from __future__ import annotations

from core.ground.words import span
from core.rotation.run_record import Note, Phase, Run, RunState
from core.slack.incident_thread import (
    Message,
    Thread,
    ThreadStep,
    context,
    header,
    section,
    step_of_story,
)
from core.slack.text import escape_markup, time_shown

_SYMBOLS = {
    RunState.RUNNING: "◐",
    RunState.PAUSED: "○",
    RunState.STOPPED: "▲",
    RunState.DONE: "●",
    RunState.ABORTED: "○",
}
PHASES = {
    Phase.WAITING: "○",
    Phase.LEAVING: "◐",
    Phase.RETURNING: "◑",
    Phase.DONE: "●",
    Phase.SKIPPED: "□",
    Phase.FAILED: "▲",
}


def next_step(run: Run, thread: Thread, cluster: str) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    told = (
        (f"{note.at!r} {note.actor} {note.text}", _reply(note))
        for note in run.notes[1:]
        if not note.quiet
    )
    return step_of_story(run.id, thread, head_message(run, cluster), told)


def head_message(run: Run, cluster: str) -> Message:
    """Render the thread's first message: how far the run is, and what happens now."""
    done = sum(turn.phase in {Phase.DONE, Phase.SKIPPED} for turn in run.turns)
    title = f"{_SYMBOLS[run.state]} rotation · {run.state.value} · {done} of {len(run.turns)} nodes"
    nodes = " ".join(f"{PHASES[turn.phase]} {turn.node_id}" for turn in run.turns)
    parts = [escape_markup(cluster), escape_markup(run.id), f"started {time_shown(run.started_at)}"]
    if run.ended_at is not None:
        parts.append(f"took {span(run.ended_at - run.started_at)}")
    return Message(
        f"{title}: {run.reason}"[:2900],
        (
            header(title),
            section(
                f"*Why:* {escape_markup(run.notes[0].text)}\n*Now:* {escape_markup(run.reason)}"
            ),
            section(nodes),
            context(" · ".join(part for part in parts if part)),
        ),
    )


def _reply(note: Note) -> Message:
    by = f"{escape_markup(note.actor)} · {time_shown(note.at)}"
    return Message(note.text[:2900], (section(f"• {escape_markup(note.text)}"), context(by)))
