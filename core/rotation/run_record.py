"""A rotation run: which Kafka nodes get new instances, how far it is, and what people want of it.

The ledger keeps one document per cluster, written over the version it was read at, so any function
may die and another goes on. core.rotation.progress decides what is next; the instances themselves
leave through an incident each (core.incidents.planned), opened by the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from core.availability.lease import party_name
from core.stored import unread_keys

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
    # (core.rotation.pace); what grew under a throttle says nothing of the pace.
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
    ahead: bool = False  # its replacement was asked for before its turn (core.rotation.ahead)
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
    # The metadata errors that are known and do not veto, as core.health.metadata_errors keeps them.
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
    # How many partitions lacked a replica in sync, at the last readings (core.rotation.settled).
    out_of_sync: tuple[int, ...] = ()
    throttled: tuple[int, ...] = ()  # brokers for which replication is (core.rotation.refill)
    blind_since: float | None = None  # since when nothing could be read
    failing_since: float | None = None  # since when no turn could carry out its actions
    turned_at: float | None = None
    next_turn_at: float | None = None
    version: int = 0
    # What a newer release wrote and this one cannot read; core.rotation.run_codec writes it back.
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
    def in_hand(self) -> tuple[NodeTurn, ...]:
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

    def with_turn(self, changed: NodeTurn) -> Run:
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
