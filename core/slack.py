"""Tells an incident, a rotation run or a zone as one Slack thread: what was told, what comes next.

λ slack asks `next_step` until nothing is left to tell: the head message, a reply per transition,
then the head edited to what is true now. A step's key is the same whenever it is decided again, and
finds a message that was posted but never recorded. An incident of a rotation run is told inside the
run's thread. cli.incidents makes a timeline of the same words.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.ground.fields import as_document, digest, field_values, unread_keys
from core.ground.words import span, time_said
from core.incidents.actions import runbook
from core.incidents.record import TERMINAL, Incident, State, Transition
from core.rotation.run_record import Note, Phase, Run, RunState
from core.zones.incident import ZoneEntry, ZoneIncident, ZoneState, ends_at, speaker

# Plain shapes: they read the same in Slack, a terminal and a page.
_SYMBOLS = {
    State.RELEASED: "●",
    State.RIDDEN_THROUGH: "●",
    State.CANCELLED: "○",
    State.RETAINED: "▲",
    State.LOST: "▲",
}
_OUTLOOK = {
    State.OPENED: "A replacement in the same zone comes first; the node is not drained before.",
    State.REPLACING: (
        "Once the replacement is Ready with its volume driver, Stillwater asks Kafka whether this "
        "node may go."
    ),
    State.DRAINING: (
        "The node termination handler evicts the pod, which has its whole grace to stop; then its "
        "volumes detach."
    ),
    State.GATING: (
        "The instance is let go once its volumes are detached and the node is back in every ISR."
    ),
    State.RETAINED: (
        "The instance stays until a person decides: `stillwater release ENV {instance}` lets it go."
    ),
    State.LOST: "",
}


def symbol(state: State) -> str:
    return _SYMBOLS.get(state, "◐")


def subject(incident: Incident) -> str:
    """Name what leaves, as people speak of it: broker 10, us-east-1a."""
    place = f", {incident.zone}" if incident.zone else ""
    if incident.node_id is not None:
        return f"{incident.role or 'node'} {incident.node_id}{place}"
    return f"{incident.pool or 'instance'} {incident.instance_id}{place}"


def outlook(incident: Incident, hold_limit: float) -> str:
    """Say what will happen next and, where a time is known, when."""
    if incident.urgent and incident.open and incident.forwarded is None:
        return "AWS takes the instance within two minutes, so it is drained at once."
    if incident.state is State.HOLDING:
        latest = time_said(incident.waits_since + hold_limit)
        return f"The drain starts when Kafka can spare the node; a decision is due by {latest}."
    sentence = _OUTLOOK.get(incident.state, "").format(instance=incident.instance_id)
    if incident.due_at is not None and incident.state not in TERMINAL:
        return f"{sentence} AWS acts at {time_said(incident.due_at)}.".strip()
    return sentence


def durations(incident: Incident) -> list[str]:
    """Return one line per state the incident went through, and one for all of it."""
    lines = [
        f"{earlier.state.replace('_', ' ')}: {span(later.at - earlier.at)}"
        for earlier, later in itertools.pairwise(incident.transitions)
    ]
    if not incident.transitions:
        return lines
    return [*lines, f"in all: {span(incident.transitions[-1].at - incident.opened_at)}"]


def time_shown(moment: float) -> str:
    """Return a time that Slack shows in the reader's own zone; elsewhere it reads as UTC."""
    return f"<!date^{int(moment)}^{{date_short_pretty}} {{time_secs}}|{time_said(moment)}>"


def escape_markup(text: str) -> str:
    """Escape what Slack would read as markup; what AWS or Kafka said may mention nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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

    def advance(self, step: ThreadStep, channel: str, ts: str) -> Thread:
        """Return the thread once a step was carried out."""
        done = replace(self.given_up(), channel=channel)
        if step.action == "reply":
            return replace(done, told=(*done.told, step.key))
        return replace(done, ts=ts, head=step.message.fingerprint)


def next_step(
    incident: Incident, thread: Thread, cluster: str, hold_limit: float, runbooks_url: str = ""
) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    head = head_message(incident, cluster, hold_limit, runbooks_url)
    told = (
        (
            f"{entry.at!r} {entry.state} {entry.actor} {entry.reason}",
            reply_message(incident, entry, named=thread.root is not None),
        )
        for entry in replies(incident)
    )
    return step_of_story(incident.id, thread, head, told)


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
    return head_message(incident, "", 0.0, "-").fingerprint + digest(repr(replies(incident)))


def replies(incident: Incident) -> tuple[Transition, ...]:
    """Return what is told below the head, in order: transitions, and what others than we did."""
    others = tuple(note for note in incident.notes if note.actor not in _LOOP)
    return tuple(sorted((*incident.transitions[1:], *others), key=lambda entry: entry.at))


def head_message(
    incident: Incident, cluster: str, hold_limit: float, runbooks_url: str = ""
) -> Message:
    """Render the thread's first message: what leaves, why, what happens next and when.

    Where the incident called a person, it has the link of the last page's runbook.
    """
    title = f"{symbol(incident.state)} {subject(incident)} · {incident.state.replace('_', ' ')}"
    now = f"*Now:* {escape_markup(incident.reason)}"
    opened = incident.transitions[0] if incident.transitions else None
    why = f"*Why:* {escape_markup(opened.reason)}\n" if opened else ""
    coming = outlook(incident, hold_limit)
    following = f"\n*Next:* {escape_markup(coming)}" if coming else ""
    blocks: list[Block] = [
        header(title),
        section(f"{why}{now}{following}{_runbook_line(incident, runbooks_url)}"),
        {"type": "section", "fields": [_markdown(f, LONGEST_FIELD) for f in _facts(incident)]},
        context(_origin(incident, cluster)),
    ]
    return Message(_cut(f"{title}: {incident.reason}", LONGEST_TEXT), tuple(blocks))


def _runbook_line(incident: Incident, runbooks_url: str) -> str:
    if not incident.pages or not runbooks_url:
        return ""
    page = incident.pages[-1]
    where = escape_markup(runbook(page, runbooks_url))
    # Slack follows a link only to the web.
    return f"\n*Runbook:* {f'<{where}|{escape_markup(page)}>' if '://' in where else where}"


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


_RUN_SYMBOLS = {
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


def next_rotation_step(run: Run, thread: Thread, cluster: str) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    told = (
        (f"{note.at!r} {note.actor} {note.text}", _rotation_reply(note))
        for note in run.notes[1:]
        if not note.quiet
    )
    return step_of_story(run.id, thread, rotation_head_message(run, cluster), told)


def rotation_head_message(run: Run, cluster: str) -> Message:
    """Render the thread's first message: how far the run is, and what happens now."""
    done = sum(turn.phase in {Phase.DONE, Phase.SKIPPED} for turn in run.turns)
    title = (
        f"{_RUN_SYMBOLS[run.state]} rotation · {run.state.value} · {done} of {len(run.turns)} nodes"
    )
    nodes = " ".join(f"{PHASES[turn.phase]} {turn.node_id}" for turn in run.turns)
    parts = [escape_markup(cluster), escape_markup(run.id), f"started {time_shown(run.started_at)}"]
    if run.ended_at is not None:
        parts.append(f"took {span(run.ended_at - run.started_at)}")
    return Message(
        f"{title}: {run.reason}"[:LONGEST_TEXT],
        (
            header(title),
            section(
                f"*Why:* {escape_markup(run.notes[0].text)}\n*Now:* {escape_markup(run.reason)}"
            ),
            section(nodes),
            context(" · ".join(part for part in parts if part)),
        ),
    )


def _rotation_reply(note: Note) -> Message:
    by = f"{escape_markup(note.actor)} · {time_shown(note.at)}"
    blocks = (section(f"• {escape_markup(note.text)}"), context(by))
    return Message(note.text[:LONGEST_TEXT], blocks)


def next_rebalance_step(
    story: str, name: str, said: str, thread: Thread, cluster: str
) -> ThreadStep | None:
    """Return what to tell next of a KafkaRebalance: its name first, then what is said of it."""
    title = f"◐ partitions move · {name}"
    head = Message(title, (header(title), context(escape_markup(cluster))))
    reply = Message(said[:LONGEST_TEXT], (section(escape_markup(said)),))
    return step_of_story(story, thread, head, [(said, reply)])


PREFIX = "zone:"
_ZONE_SYMBOLS = {ZoneState.WATCHED: "○", ZoneState.FROZEN: "▲", ZoneState.THAWED: "●"}
# An end is told this long after it, in case the first message about it got lost.
TOLD_SECONDS = 3600.0


def story_id(incident: ZoneIncident) -> str:
    """Name a zone's story; one that begins again under AWS's key goes on in its thread."""
    return f"{PREFIX}{digest(incident.key)}"


def visible_zone(incident: ZoneIncident) -> str:
    """Return a fingerprint of what a thread shows; equal ones need no look at Slack."""
    return zone_head_message(incident, "").fingerprint + digest(repr(incident.history))


def worth_telling(incident: ZoneIncident, now: float) -> bool:
    """Say whether a story may have more to tell: it goes on, or ended a moment ago."""
    last = incident.history[-1].at if incident.history else incident.opened_at
    return bool(incident.history) and (incident.open or now - last < TOLD_SECONDS)


def next_zone_step(incident: ZoneIncident, thread: Thread, cluster: str) -> ThreadStep | None:
    """Return what to tell next; None: Slack says all that is known."""
    told = (
        (f"{entry.at!r} {entry.state} {entry.actor} {entry.reason}", _zone_reply(entry))
        for entry in incident.history[1:]
    )
    return step_of_story(story_id(incident), thread, zone_head_message(incident, cluster), told)


def zone_head_message(incident: ZoneIncident, cluster: str) -> Message:
    """Render the thread's first message: which zone, what AWS says, what is done, until when."""
    title = f"{_ZONE_SYMBOLS[incident.state]} {incident.where} · {incident.state.value}"
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


def _zone_reply(entry: ZoneEntry) -> Message:
    text = f"{entry.state.value}: {entry.reason}"
    said = section(
        f"{_ZONE_SYMBOLS[entry.state]} *{entry.state.value}* {escape_markup(entry.reason)}"
    )
    by = context(f"{escape_markup(entry.actor)} · {time_shown(entry.at)}")
    return Message(text[:LONGEST_TEXT], (said, by))
