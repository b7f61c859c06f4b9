"""A zone's incident as one Slack thread: its state in the head, a reply per entry of its history.

λ slack asks `next_step` as it asks core.slack.incident_thread about an instance's.
"""

from __future__ import annotations

from core.ground.fields import digest
from core.ground.words import span
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
from core.zones.incident import ZoneEntry, ZoneIncident, ZoneState, ends_at, speaker

PREFIX = "zone:"
_SYMBOLS = {ZoneState.WATCHED: "○", ZoneState.FROZEN: "▲", ZoneState.THAWED: "●"}
LONGEST_TEXT = 2900
# An end is told this long after it, in case the first message about it got lost.
TOLD_SECONDS = 3600.0


def story_id(incident: ZoneIncident) -> str:
    """Name a zone's story; one that begins again under AWS's key goes on in its thread."""
    return f"{PREFIX}{digest(incident.key)}"


def visible(incident: ZoneIncident) -> str:
    """Return a fingerprint of what a thread shows; equal ones need no look at Slack."""
    return head_message(incident, "").fingerprint + digest(repr(incident.history))


def worth_telling(incident: ZoneIncident, now: float) -> bool:
    """Say whether a story may have more to tell: it goes on, or ended a moment ago."""
    last = incident.history[-1].at if incident.history else incident.opened_at
    return bool(incident.history) and (incident.open or now - last < TOLD_SECONDS)


def next_step(incident: ZoneIncident, thread: Thread, cluster: str) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    told = (
        (f"{entry.at!r} {entry.state} {entry.actor} {entry.reason}", _reply(entry))
        for entry in incident.history[1:]
    )
    return step_of_story(story_id(incident), thread, head_message(incident, cluster), told)


def head_message(incident: ZoneIncident, cluster: str) -> Message:
    """Render the thread's first message: which zone, what AWS says, what is done, until when."""
    title = f"{_SYMBOLS[incident.state]} {incident.where} · {incident.state.value}"
    lines = [f"*Now:* {escape_markup(incident.reason)}"]
    if incident.said:
        lines.append(f"*{speaker(incident.source)} says:* {escape_markup(incident.said)}")
    if incident.state is ZoneState.FROZEN:
        lines.append(f"*Next:* {escape_markup(ends_at(incident))}")
    parts = [
        escape_markup(cluster),
        escape_markup(incident.key),
        f"opened {time_shown(incident.opened_at)}",
    ]
    if incident.owner is not None:
        parts.append(f"decided by {escape_markup(incident.owner)}")
    if not incident.open and incident.history:
        parts.append(f"took {span(incident.history[-1].at - incident.opened_at)}")
    return Message(
        f"{title}: {incident.reason}"[:LONGEST_TEXT],
        (header(title), section("\n".join(lines)), context(" · ".join(p for p in parts if p))),
    )


def _reply(entry: ZoneEntry) -> Message:
    text = f"{entry.state.value}: {entry.reason}"
    said = section(f"{_SYMBOLS[entry.state]} *{entry.state.value}* {escape_markup(entry.reason)}")
    by = context(f"{escape_markup(entry.actor)} · {time_shown(entry.at)}")
    return Message(text[:LONGEST_TEXT], (said, by))
