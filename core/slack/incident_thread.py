"""An incident as one Slack thread: what has been told of it, and what to tell next.

One that a rotation run opened is told inside the run's thread: its head message is a reply there.
λ slack asks `next_step` until nothing is left to tell: the head message first, then one reply per
transition, then the head edited to what is true now. A step has a key, the same whenever it is
decided again, by which a message that was posted but never recorded is found in Slack.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.ground.fields import digest
from core.ground.stored import as_document, field_values, unread_keys
from core.ground.words import span
from core.incidents.record import TERMINAL, Incident, Transition
from core.slack.text import durations, escape_markup, outlook, subject, symbol, time_shown

Block = Mapping[str, Any]
# What the loop notes about itself edits the head; what others did is told as a reply.
_LOOP = frozenset({"tick", "sweep", "interruption", "rotation"})
# Slack: 150 characters in a header, 3000 in a text, 2000 in a field.
LONGEST_HEADER, LONGEST_TEXT, LONGEST_FIELD = 150, 2900, 1900
# One that began to post and was never heard of again is taken for dead after this.
LONGEST_POST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message in Slack's Block Kit; `text` is what notifications and screen readers say."""

    text: str
    blocks: tuple[Block, ...]

    @property
    def fingerprint(self) -> str:
        return digest(json.dumps([self.text, self.blocks], sort_keys=True))


@dataclass(frozen=True, slots=True)
class ThreadStep:
    """One call of Slack's: `head` posts the thread's first message, `edit` changes it."""

    key: str
    action: str  # head, reply or edit
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """What has been told of one incident."""

    incident_id: str
    channel: str | None = None  # Slack's id of it, which edits need
    ts: str | None = None  # the head message's
    root: str | None = None  # the first message of a rotation run's thread, if it is told there
    told: tuple[str, ...] = ()  # keys of the replies
    head: str = ""  # fingerprint of the head message as last posted or edited
    doing: str | None = None  # the step that somebody has begun
    doing_since: float = 0.0
    version: int = 0
    unread: Mapping[str, Any] = unread_keys()

    def busy(self, now: float) -> bool:
        """Say whether another invocation may still be posting."""
        return self.doing is not None and now - self.doing_since < LONGEST_POST_SECONDS

    def begun(self, step: ThreadStep, now: float) -> Thread:
        return replace(self, doing=step.key, doing_since=now)

    def given_up(self) -> Thread:
        """Return the thread once it is known that a step was not carried out."""
        return replace(self, doing=None, doing_since=0.0)

    def after(self, step: ThreadStep, channel: str, ts: str) -> Thread:
        """Return the thread once a step was carried out."""
        done = replace(self.given_up(), channel=channel)
        if step.action == "reply":
            return replace(done, told=(*done.told, step.key))
        return replace(done, ts=ts, head=step.message.fingerprint)


def next_step(
    incident: Incident, thread: Thread, cluster: str, hold_limit: float
) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    told = (
        (
            f"{entry.at!r} {entry.state} {entry.actor} {entry.reason}",
            reply_message(incident, entry, named=thread.root is not None),
        )
        for entry in replies(incident)
    )
    return step_of_story(incident.id, thread, head_message(incident, cluster, hold_limit), told)


def step_of_story(
    story: str, thread: Thread, head: Message, replies: Iterable[tuple[str, Message]]
) -> ThreadStep | None:
    """Return the head, the first reply not told yet, the head as it is now, or None.

    A reply stands beside what tells it from the story's others.
    """
    if thread.ts is None:
        return ThreadStep(f"{story}/head", "head", head)
    for said, message in replies:
        key = f"{story}/{digest(said)}"
        if key not in thread.told:
            return ThreadStep(key, "reply", message)
    return None if thread.head == head.fingerprint else ThreadStep(f"{story}/edit", "edit", head)


def visible(incident: Incident) -> str:
    """Return a fingerprint of what a thread shows; equal ones need no look at Slack."""
    return head_message(incident, "", 0.0).fingerprint + digest(repr(replies(incident)))


def replies(incident: Incident) -> tuple[Transition, ...]:
    """Return what is told below the head, in order: transitions, and what others than we did."""
    others = tuple(note for note in incident.notes if note.actor not in _LOOP)
    return tuple(sorted((*incident.transitions[1:], *others), key=lambda entry: entry.at))


def head_message(incident: Incident, cluster: str, hold_limit: float) -> Message:
    """Render the thread's first message: what leaves, why, what happens next and when."""
    title = f"{symbol(incident.state)} {subject(incident)} · {incident.state.replace('_', ' ')}"
    now = f"*Now:* {escape_markup(incident.reason)}"
    opened = incident.transitions[0] if incident.transitions else None
    why = f"*Why:* {escape_markup(opened.reason)}\n" if opened else ""
    coming = outlook(incident, hold_limit)
    following = f"\n*Next:* {escape_markup(coming)}" if coming else ""
    blocks: list[Block] = [
        header(title),
        section(f"{why}{now}{following}"),
        {"type": "section", "fields": [_markdown(f, LONGEST_FIELD) for f in _facts(incident)]},
        context(_origin(incident, cluster)),
    ]
    return Message(_cut(f"{title}: {incident.reason}", LONGEST_TEXT), tuple(blocks))


def reply_message(incident: Incident, entry: Transition, *, named: bool = False) -> Message:
    """Render one entry of the incident's history; an end comes with how long everything took.

    `named` says whose it is, where several incidents share a thread.
    """
    state = entry.state.replace("_", " ")
    ended = entry.state in TERMINAL and entry in incident.transitions
    title = f"{symbol(entry.state)} *{state}*" if entry in incident.transitions else "•"
    lines = [f"{title} {escape_markup(entry.reason)}"]
    if ended:
        lines += [escape_markup(line) for line in durations(incident)]
    whose = f"{escape_markup(subject(incident))} · " if named else ""
    by = f"{whose}{entry.actor} · {time_shown(entry.at)}"
    blocks = (section("\n".join(lines)), context(by))
    return Message(_cut(f"{state}: {entry.reason}", LONGEST_TEXT), blocks)


def _facts(incident: Incident) -> list[str]:
    """Return the fields of the head; an instance is always known, so there is at least one."""
    due = None if incident.due_at is None else time_shown(incident.due_at)
    known = {
        "Instance": incident.instance_id,
        "Node": incident.node_name,
        "Pod": incident.pod_name,
        "Group": incident.group,
        "Replacement": incident.replacement_node,
        "AWS acts": due,
    }
    # A time is Slack's own markup, which escaping would break.
    return [
        f"*{name}*\n{value if name == 'AWS acts' else escape_markup(value)}"
        for name, value in known.items()
        if value
    ]


def _origin(incident: Incident, cluster: str) -> str:
    parts = [f"incident {escape_markup(incident.id)}", f"opened {time_shown(incident.opened_at)}"]
    if cluster:
        parts.insert(0, escape_markup(cluster))
    if incident.state in TERMINAL and incident.transitions:
        parts.append(f"took {span(incident.entered_at - incident.opened_at)}")
    return " · ".join(parts)


def header(text: str) -> Block:
    return {"type": "header", "text": _plain(text, LONGEST_HEADER)}


def section(text: str) -> Block:
    return {"type": "section", "text": _markdown(text, LONGEST_TEXT)}


def context(text: str) -> Block:
    return {"type": "context", "elements": [_markdown(text, LONGEST_FIELD)]}


def _plain(text: str, longest: int) -> Block:
    return {"type": "plain_text", "text": _cut(text, longest), "emoji": False}


def _markdown(text: str, longest: int) -> Block:
    return {"type": "mrkdwn", "text": _cut(text, longest)}


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def to_json(thread: Thread) -> str:
    return json.dumps(as_document(thread), separators=(",", ":"), sort_keys=True)


def from_json(document: str) -> Thread:
    """Read what any release wrote."""
    known = field_values(Thread, json.loads(document))
    known["told"] = tuple(known.get("told", ()))
    return Thread(**known)
