"""A rotation run: which Kafka nodes get new instances, how far it is, and what people want of it.

The ledger keeps one document per cluster, written over the version it was read at, so any function
may die and another goes on. After a rollback it holds the run of a newer release: a field that this
one does not know is kept and written back, and an unknown state or phase stands for `stopped`.
core.rotation.progress returns a `RunStep` per turn (the run as it then is, what to do, when to look
again) and heeds pause, resume and abort when nobody is away; every action may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from core.availability.lease import party_name
from core.ground.errors import Conflict
from core.ground.fields import UNREAD, as_document, drop_keys, field_values, take_word, unread_keys
from core.incidents.actions import Page
from core.incidents.observation import Policy

# Reasons vary; the document must stay far below DynamoDB's 400 KB.
MOST_NOTES = 300
DEFAULT_DEADLINE_SECONDS = 3600.0


class RunState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"  # something is wrong that a person must decide about
    DONE = "done"
    ABORTED = "aborted"


OVER = frozenset({RunState.DONE, RunState.ABORTED})


class Phase(StrEnum):
    """Where one node stands in a run."""

    WAITING = "waiting"
    LEAVING = "leaving"  # its incident is open
    RETURNING = "returning"  # its instance was let go; the post-conditions are awaited
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"  # its incident ended in another way; a person decides


IN_HAND = frozenset({Phase.LEAVING, Phase.RETURNING})


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened in a run."""

    at: float  # epoch seconds
    actor: str
    text: str
    quiet: bool = False  # what is merely waited for
    unread: Mapping[str, Any] = unread_keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurn:
    """One Kafka node's turn in a run."""

    node_id: int
    pod: str
    role: str  # broker, controller or combined
    pool: str
    zone: str
    instance_id: str  # the one that is to go
    why: str
    # From its beginning until it is back for good (core.rotation.estimate).
    expected_seconds: float | None = None
    phase: Phase = Phase.WAITING
    attempt: int = 1
    incident_id: str | None = None
    # The deadline counts from here: when it came up, or when a person gave it more time.
    since: float | None = None
    # Every reading has refused it since then, while it was its turn.
    refused_since: float | None = None
    stuck_since: float | None = None
    began_at: float | None = None
    machine_at: float | None = None  # when the node that takes it over was found Ready
    released_at: float | None = None
    back_since: float | None = None
    done_at: float | None = None
    # What its logs held before it left, and what they grew by while it caught up
    # (core.rotation.estimate); what grew under a throttle says nothing of the pace.
    whole_bytes: int | None = None
    throttled: bool = False
    behind_at: float | None = None
    behind_bytes: int | None = None
    copied_bytes: int = 0
    copied_seconds: float = 0.0
    reason: str = ""
    # With what its root volume is replaced, where its instance stays; None: a new instance.
    image_id: str | None = None
    by_replacement: str = ""  # why not in place, where that was asked for
    party: tuple[int, ...] = ()  # the set it left with, itself included; (): alone
    ahead: bool = False  # its replacement was asked for before its turn (core.rotation.parallel)
    unread: Mapping[str, Any] = unread_keys()

    @property
    def is_broker(self) -> bool:
        return self.role != "controller"

    @property
    def votes(self) -> bool:
        return self.role != "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """How fast replication brought logs back, in which run, by so many brokers."""

    bytes_per_s: float
    run_id: str
    brokers: int
    unread: Mapping[str, Any] = unread_keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the person who started a run decided beforehand."""

    accepted_topics: tuple[str, ...] = ()  # may be unavailable while their broker is away
    # The metadata errors that are known and do not veto, as core.health.kafka keeps them.
    acknowledged: Mapping[str, Any] | None = None
    deadline_seconds: float = DEFAULT_DEADLINE_SECONDS  # for one node
    # Brokers of one zone that go together at most; None: all that Kafka consents to.
    at_once: int | None = 1
    any_time: bool = False  # begins with nodes outside the maintenance window, too
    even_recovering: bool = False  # begins with a node that still recovers its own logs, too
    in_place: bool = False  # instances stay and get a new root volume, where that can be
    unread: Mapping[str, Any] = unread_keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One rotation of a cluster's nodes."""

    id: str
    state: RunState
    started_at: float
    started_by: str
    turns: tuple[NodeTurn, ...]
    options: Options = Options()
    replication: Replication | None = None  # as earlier runs measured it
    pause_asked_by: str | None = None
    abort_asked_by: str | None = None
    ended_at: float | None = None
    reason: str = ""
    notes: tuple[Note, ...] = ()
    pages: tuple[str, ...] = ()
    # How many partitions lacked a replica in sync, at the last readings.
    out_of_sync: tuple[int, ...] = ()
    throttled: tuple[int, ...] = ()  # brokers for which replication is (core.rotation.progress)
    blind_since: float | None = None  # since when nothing could be read
    failing_since: float | None = None  # since when no turn could carry out its actions
    turned_at: float | None = None
    next_turn_at: float | None = None
    version: int = 0
    # What a newer release wrote and this one cannot read; core.rotation.run_record writes it back.
    unread: Mapping[str, Any] = unread_keys()

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Return the words of a newer release without which nothing can be decided."""
        if "state" not in self.unread:
            return ()
        said = [turn.unread["phase"] for turn in self.turns if "phase" in turn.unread]
        word = str(self.unread["state"])
        known = word in {state.value for state in RunState}
        return tuple(map(str, said if known else [*said, word]))

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def open_turns(self) -> tuple[NodeTurn, ...]:
        """Return the nodes that are away, or about to be."""
        return tuple(t for t in self.turns if t.phase in IN_HAND)

    @property
    def waiting(self) -> tuple[NodeTurn, ...]:
        return tuple(t for t in self.turns if t.phase is Phase.WAITING)

    def party_of(self, turn: NodeTurn) -> str | None:
        """Return with whom a node may be out at the same time; None: with nobody."""
        return party_name(self.id, turn.zone, turn.party) if turn.party else None

    def turn_of(self, node_id: int) -> NodeTurn:
        return next(t for t in self.turns if t.node_id == node_id)

    def key_of(self, turn: NodeTurn) -> str:
        """Return the dedupe key under which a node's incident knows this run."""
        return f"rotation:{self.id}:{turn.instance_id}:{turn.attempt}"

    def ahead_key_of(self, turn: NodeTurn) -> str:
        """Return the same key for the word that only its replacement is to be made ready."""
        return f"{self.key_of(turn)}:ahead"

    def replace_turn(self, changed: NodeTurn) -> Run:
        turns = tuple(changed if t.node_id == changed.node_id else t for t in self.turns)
        return replace(self, turns=turns)


def run_id(started_at: float) -> str:
    """Return the id of a run: one cluster has one at a time, so its second names it.

    >>> run_id(0.0)
    'rotation-19700101-000000'
    """
    return f"rotation-{datetime.fromtimestamp(started_at, UTC):%Y%m%d-%H%M%S}"


def run_behind(announcements: Iterable[str]) -> str | None:
    """Return the run that speaks among an incident's announcements (`Run.key_of`).

    >>> run_behind(["asg_terminate:i-0a:drain", "rotation:rotation-19700101-000000:i-0a:1"])
    'rotation-19700101-000000'
    """
    said = (key.split(":") for key in announcements)
    return next((parts[1] for parts in said if parts[0] == "rotation" and len(parts) > 1), None)


def open_run(
    turns: Iterable[NodeTurn],
    options: Options,
    actor: str,
    now: float,
    *,
    replication: Replication | None = None,
    version: int = 0,
) -> Run:
    """Return a run that has not begun; `version` is the one of the document it replaces."""
    listed = tuple(turns)
    said = f"{actor} starts a rotation of {len(listed)} nodes."
    return Run(
        id=run_id(now),
        state=RunState.RUNNING,
        started_at=now,
        started_by=actor,
        turns=listed,
        options=options,
        replication=replication,
        reason=said,
        notes=(Note(now, actor, said),),
        version=version,
    )


def note_run(run: Run, actor: str, text: str, now: float, *, quiet: bool = False) -> Run:
    """Add a note and make it the run's reason; a repetition is not worth another note."""
    if run.reason == text:
        return run
    notes = (
        run.notes if len(run.notes) >= MOST_NOTES else (*run.notes, Note(now, actor, text, quiet))
    )
    return replace(run, reason=text, notes=notes)


def is_unattended(run: Run, now: float, late_seconds: float) -> bool:
    """Say whether nothing carries a run any more although it should be carried."""
    expected = max(run.turned_at or run.started_at, run.next_turn_at or 0.0)
    return run.state is RunState.RUNNING and now - expected > late_seconds


# An earlier release's name of `at_once`, where that is a number.
_EARLIER = "parallel_per_zone"


def run_to_document(run: Run) -> dict[str, Any]:
    """Return the document of a run, with what a newer release had written into it."""
    return dict(as_document(run))


def run_from_document(document: Mapping[str, Any], version: int) -> Run:
    """Read what any release wrote."""
    known = _tuples(field_values(Run, document))
    known["options"] = _options(document["options"])
    known["turns"] = tuple(_turn(turn) for turn in document["turns"])
    known["notes"] = tuple(Note(**field_values(Note, note)) for note in document["notes"])
    if known.get("replication"):
        known["replication"] = Replication(**field_values(Replication, known["replication"]))
    take_word(known, "state", RunState, RunState.STOPPED)
    if known["state"] not in OVER and any("phase" in turn.unread for turn in known["turns"]):
        # What stands in its place acts by itself no more than an unknown state's does.
        unread = {"state": document["state"], **known.get(UNREAD, {})}
        known |= {"state": RunState.STOPPED, UNREAD: unread}
    return Run(**{**known, "version": version})


def _turn(stored: Mapping[str, Any]) -> NodeTurn:
    known = _tuples(field_values(NodeTurn, stored))
    take_word(known, "phase", Phase, Phase.FAILED)
    return NodeTurn(**known)


def _options(stored: Mapping[str, Any]) -> Options:
    """Read options; before `at_once` a number alone was called otherwise."""
    given = drop_keys({"at_once": stored.get(_EARLIER, 1), **stored}, _EARLIER)
    return Options(**_tuples(field_values(Options, given)))


def _tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}


def pause(run: Run, actor: str, now: float) -> Run:
    """Begin with no further node: the run stands still once nobody is away."""
    _still_open(run, "paused")
    _readable(run)
    asked = replace(run, pause_asked_by=actor)
    ready = any(turn.ahead for turn in run.waiting)  # Its next turn calls that off.
    if run.state is not RunState.RUNNING or not (run.open_turns or ready):
        asked = replace(asked, state=RunState.PAUSED, next_turn_at=None)
        return note_run(asked, actor, f"{actor} paused the run.", now)
    if not run.open_turns:
        return note_run(asked, actor, f"{actor} pauses the run at its next turn.", now)
    away = " and ".join(f"node {t.node_id}" for t in run.open_turns)
    verb = "is" if len(run.open_turns) == 1 else "are"
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
        abort_asked_by=None,
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
        yield f"{pace_words(after.at_once)} instead of {pace_words(before.at_once)}"
    if after.any_time and not before.any_time:
        yield "at any time"
    if after.even_recovering and not before.even_recovering:
        yield "even with a node that recovers its logs"
    if after.acknowledged != before.acknowledged:
        yield "knowing of the metadata errors counted by now"
    topics = sorted(set(after.accepted_topics) - set(before.accepted_topics))
    if topics:
        yield f"though topic {', '.join(topics)} cannot be kept up"


def pace_words(at_once: int | None) -> str:
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
        ended = replace(
            run,
            state=RunState.ABORTED,
            abort_asked_by=actor,
            ended_at=now,
            next_turn_at=None,
            unread=drop_keys(run.unread, "state"),
        )
        return note_run(ended, actor, said, now)
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


ACTOR = "rotation"


@dataclass(frozen=True, slots=True)
class Begin:
    """Open the incident by which a node's instance leaves."""

    node_id: int


@dataclass(frozen=True, slots=True)
class MakeReady:
    """Open that incident for the node's replacement alone: its own turn comes later."""

    node_id: int


@dataclass(frozen=True, slots=True)
class CallOff:
    """Tell a node's incident that its instance stays, while nothing of it has left."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Elect:
    """Have a broker lead again what it is preferred for."""

    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """What replication may bring in, a broker, while some of them refill."""

    brokers: tuple[int, ...]
    topics: tuple[str, ...]  # with a replica that one of them has not in sync
    follower_bytes_per_s: int
    leader_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class ThrottleRefill:
    """Throttle replication into what is out of sync; None: take the throttle off."""

    throttle: Throttle | None


RunAction = Begin | MakeReady | CallOff | Elect | Page | ThrottleRefill


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """What a run is after this turn, what is to be done for it, and when to look again."""

    run: Run
    actions: tuple[RunAction, ...] = ()
    delay_seconds: float | None = None  # None: nothing carries it on but a person


def again(run: Run, policy: Policy, *actions: RunAction, delay: float | None = None) -> RunStep:
    """Look again after a tick's time, or another."""
    delay = policy.tick_interval_seconds if delay is None else delay
    return RunStep(run=run, actions=actions, delay_seconds=delay)


def end_run(run: Run, state: RunState, reason: str, now: float) -> RunStep:
    """End the run: it is done, or aborted."""
    over = replace(run, state=state, ended_at=now, next_turn_at=None)
    return RunStep(run=note_run(over, ACTOR, reason, now))


def stop_for_person(run: Run, turn: NodeTurn, reason: str, now: float, key: str) -> RunStep:
    """Stop for a person, who resumes, skips or aborts; an abort ends it without the node."""
    if run.abort_asked_by:
        left = run.replace_turn(replace(turn, phase=Phase.FAILED, reason=reason))
        return RunStep(run=note_run(left, ACTOR, reason, now))
    run = replace(
        run.replace_turn(replace(turn, reason=reason)), state=RunState.STOPPED, next_turn_at=None
    )
    if key in run.pages:
        return RunStep(run=note_run(run, ACTOR, reason, now))
    run = note_run(replace(run, pages=(*run.pages, key)), ACTOR, reason, now)
    return RunStep(run=run, actions=(Page(key, f"Run {run.id} stopped. {reason}"),))
