"""Estimates how long a node's move takes and what it copies, from what earlier runs measured.

Times are those of earlier moves of the same kind, else what the timings and core.cost.resync's
model allow for. The rate of replication is measured while a run waits for a broker to catch up. A
run keeps the estimate with each node and corrects it; core.rotation.preconditions asks whether a
move still fits a window. handlers.rotation.turns takes the reading before each turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.availability.budget import Spent
from core.availability.consent import Freeze
from core.availability.operator import OperatorView
from core.cost.resync import CatchUp, Divergence, Flow, after_outage
from core.ground.fields import Unknown
from core.health.kafka import ErrorSnapshot
from core.incidents.observation import NOT_ASKED, GroupView, NodeClaim, NodeView, PodView, Policy
from core.incidents.record import Incident
from core.rotation.run_record import NodeTurn, Phase, Replication, Run
from core.views import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """Everything true at `now` that a decision about a run may rest on."""

    now: float  # epoch seconds
    nodes: tuple[NodeView, ...] = ()
    pods: tuple[PodView, ...] = ()
    claims: tuple[NodeClaim, ...] = ()  # Karpenter's, where it launches the nodes
    groups: tuple[GroupView, ...] = ()
    kafka: ClusterView | None = None
    kafka_silence: str = NOT_ASKED  # why `kafka` is None, as a sentence
    operator: OperatorView | Unknown | None = None  # Strimzi's; None: it was not looked at
    incidents: Mapping[int, Incident] = field(default_factory=dict)  # the run's own, by node id
    # Of nodes whose turn is to come: the incidents by which their replacements are made ready.
    ahead: Mapping[int, Incident] = field(default_factory=dict)
    others: tuple[Incident, ...] = ()  # open incidents that are not the run's
    freezes: tuple[Freeze, ...] = ()
    errors: ErrorSnapshot | None = None  # None: nobody was asked
    # Brokers whose incidents are over and that do not lead again what they led before.
    leaders_owed: frozenset[int] = frozenset()
    recovering: tuple[int, ...] = ()  # brokers that still read their logs
    held: Mapping[int, int] = field(default_factory=dict)  # bytes of log, of who catches up
    spent: Spent | None = None  # what clients failed at since the run went on; None: no probe
    blind: str = ""  # why nothing could be read, as a sentence; then nothing above counts

    def pod_of(self, node_id: int) -> PodView | None:
        return next((p for p in self.pods if p.node_id == node_id), None)

    def node_of(self, node_id: int) -> NodeView | None:
        """Return the Kubernetes node a Kafka node runs on."""
        pod = self.pod_of(node_id)
        if pod is None or pod.node_name is None:
            return None
        return next((n for n in self.nodes if n.name == pod.node_name), None)

    def has_room(self, node_id: int) -> bool:
        """Say whether a node's replacement was made ready, or its group was asked for it."""
        incident = self.ahead.get(node_id)
        return incident is not None and (
            incident.surge_to is not None or incident.replacement is not None
        )

    def claim_of(self, instance_id: str) -> NodeClaim | None:
        return next((c for c in self.claims if c.instance_id == instance_id), None)

    def group_of(self, instance_id: str) -> GroupView | None:
        return next((g for g in self.groups if instance_id in g.instances), None)


# A log that lacked less was behind for want of a fetch, and says nothing about how fast those are.
LEAST_BYTES = 64 * 1024 * 1024


def measured_now(run: Run, kafka: ClusterView | None) -> tuple[int, ...]:
    """Return the run's brokers whose logs are asked for: behind, or whole and about to leave."""
    if kafka is None or kafka.stale:
        return ()
    return tuple(
        turn.node_id
        for turn in run.open_turns
        if turn.is_broker
        and kafka.online(turn.node_id)
        and (_behind(turn.node_id, kafka) or turn.whole_bytes is None)
    )


def _behind(node_id: int, kafka: ClusterView) -> bool:
    missing = any(node_id in p.replicas and node_id not in p.isr for p in kafka.partitions)
    return missing and kafka.online(node_id)


def measure_pace(turn: NodeTurn, seen: RunObservation) -> NodeTurn:
    """Return a node's turn with what this reading adds to its measurement."""
    held = seen.held.get(turn.node_id)
    if held is not None and seen.kafka is not None and not _behind(turn.node_id, seen.kafka):
        return replace(turn, whole_bytes=turn.whole_bytes or held)
    if held is None:
        # Away again before anything was measured: what it copies next begins anew.
        return turn if turn.copied_seconds else replace(turn, behind_at=None, behind_bytes=None)
    if turn.behind_at is None or turn.behind_bytes is None:
        return replace(turn, behind_at=seen.now, behind_bytes=held)
    return replace(
        turn,
        copied_bytes=max(held - turn.behind_bytes, 0),
        copied_seconds=seen.now - turn.behind_at,
    )


def measured_rate(run: Run | None) -> Replication | None:
    """Return the rate a run measured over all its brokers, or else the one it was started with."""
    if run is None:
        return None
    took = [
        t
        for t in run.turns
        if t.copied_bytes >= LEAST_BYTES and t.copied_seconds > 0 and not t.throttled
    ]
    if not took:
        return run.replication
    bytes_per_s = sum(t.copied_bytes for t in took) / sum(t.copied_seconds for t in took)
    return Replication(bytes_per_s=bytes_per_s, run_id=run.id, brokers=len(took))


# Without an earlier run to go by: an EKS node boots, joins and registers its volume driver.
REPLACEMENT_SECONDS = 180.0
# In place of that: the trial, the leaders' move and the eviction before a pod stops, then EC2's two
# volumes, a boot, and a node that has joined again.
BEFORE_STOP_SECONDS = 20.0
SWAP_SECONDS = 30.0
BOOT_SECONDS = 90.0
# Controlled shutdown and start: its volume is let go and taken again while the machine boots.
RESTART_SECONDS = 50.0
AWAY_IN_PLACE_SECONDS = SWAP_SECONDS + BOOT_SECONDS + RESTART_SECONDS
# From the stop of a broker's pod until its fetchers run on the new node: controlled shutdown, its
# volume's detaching and attaching, start.
AWAY_SECONDS = 90.0
# What a gp3 volume takes when nothing more is provisioned; replication that is faster waits for it.
ASSUMED_REPLICATION_BYTES_PER_S = 125e6


# Of the moves that were measured, an interval leaves out such a part of the fastest, and of the
# slowest.
LEFT_OUT = 0.1


def kind_of(turn: NodeTurn) -> str:
    """Return what turns are measured together: a role, apart those in place or made ready for."""
    if turn.image_id is not None:
        return f"{turn.role} in place"
    return f"{turn.role} with its machine ready" if turn.ahead else turn.role


def away_seconds(image_id: str | None) -> float:
    """Return how long a node is away that gets another instance (None), or this root volume."""
    return AWAY_SECONDS if image_id is None else AWAY_IN_PLACE_SECONDS


def moves(run: Run | None, *, stop_together: bool) -> dict[str, list[float]]:
    """Return how long a run's moves took, by kind; one that waited for a person says nothing.

    A party counts once. Those that stop together take as long as the slowest of them; where one
    pod goes at a time the shortest counts, since the others waited for whoever stopped before them.
    """
    took: dict[str, dict[tuple[int, ...], list[float]]] = {}
    for turn in run.turns if run else ():
        if turn.phase is not Phase.DONE or turn.began_at is None or turn.done_at is None:
            continue
        # A resume gives the nodes in hand their whole deadline again.
        if not turn.began_at < (turn.since or 0.0) < turn.done_at:
            of_kind = took.setdefault(kind_of(turn), {})
            seconds = turn.done_at - turn.began_at
            of_kind.setdefault(turn.party or (turn.node_id,), []).append(seconds)
    counts = max if stop_together else min
    return {kind: [counts(each) for each in parties.values()] for kind, parties in took.items()}


def as_if_ahead(run: Run) -> Run:
    """Return a run as it had gone with every machine made ready while the node before came back.

    From one node's turn to the next it takes as long as a machine or as a broker's return,
    whichever is longer (core.rotation.parallel).
    """

    def ahead(turn: NodeTurn) -> NodeTurn:
        began, done = turn.began_at, turn.done_at
        if turn.ahead or turn.image_id or began is None or done is None:
            return turn
        # Without its moment, as an earlier release recorded it, nothing is known to be saved.
        machine = done if turn.machine_at is None else turn.machine_at
        return replace(turn, ahead=True, began_at=done - max(machine - began, done - machine))

    return replace(run, turns=tuple(map(ahead, run.turns)))


def medians(run: Run | None, *, stop_together: bool) -> dict[str, float]:
    """Return how long a run's moves took in the middle, by kind."""
    found = moves(run, stop_together=stop_together)
    return {kind: statistics.median(each) for kind, each in found.items()}


def spreads(run: Run | None, *, stop_together: bool) -> dict[str, tuple[float, float]]:
    """Return between which times a run's moves took, by kind, where it made three or more."""
    found = moves(run, stop_together=stop_together)
    return {kind: _interval(sorted(each)) for kind, each in found.items() if len(each) > 2}


def seconds_by_kind(run: Run | None, *, stop_together: bool) -> dict[str, float]:
    """Return the medians; of a kind that was not made, as the others say it would be."""
    inferred = medians(as_if_ahead(run) if run else None, stop_together=stop_together)
    return {**inferred, **medians(run, stop_together=stop_together)}


def _interval(took: Sequence[float]) -> tuple[float, float]:
    left_out = int(len(took) * LEFT_OUT)
    return took[left_out], took[-1 - left_out]


def together(
    seconds: Sequence[float], *, at_once: bool, apart_seconds: float = AWAY_SECONDS
) -> float:
    """Return how long several moves take that begin together: replacements come at once.

    They stop `at_once` where the disruption budgets open for a party; else one pod of Kafka goes at
    a time, each when the last is Ready again, `apart_seconds` later.
    """
    if at_once:
        return max(seconds)
    return min(sum(seconds), max(seconds) + (len(seconds) - 1) * apart_seconds)


def expecting(run: Run, policy: Policy) -> Run:
    """Return a run whose waiting nodes are expected to take what its other ones have taken.

    Before it has moved one of the role, it is what the plan said when the run was started.
    """
    seen = seconds_by_kind(run, stop_together=policy.stops_together)
    unseen = MoveEstimate(policy, None, {})
    for turn in run.waiting:
        known = turn.expected_seconds
        fallback = unseen.seconds(turn) if known is None else known
        run = run.replace_turn(replace(turn, expected_seconds=seen.get(kind_of(turn), fallback)))
    return run


@dataclass(frozen=True)
class MoveEstimate:
    """What is known before a move about how long it takes and what it copies."""

    policy: Policy
    earlier: Run | None
    appended: Mapping[int, float]
    _measured: dict[str, float] = field(init=False, default_factory=dict)
    _spread: dict[str, tuple[float, float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        at_once = self.policy.stops_together
        self._measured.update(seconds_by_kind(self.earlier, stop_together=at_once))
        inferred = spreads(
            as_if_ahead(self.earlier) if self.earlier else None, stop_together=at_once
        )
        self._spread.update({**inferred, **spreads(self.earlier, stop_together=at_once)})

    @property
    def pace(self) -> Replication | None:
        return measured_rate(self.earlier)

    @property
    def replication_bytes_per_s(self) -> float:
        return ASSUMED_REPLICATION_BYTES_PER_S if self.pace is None else self.pace.bytes_per_s

    def knows(self, turn: NodeTurn) -> bool:
        """Say whether earlier moves of this kind were measured."""
        return kind_of(turn) in self._measured

    def seconds(self, turn: NodeTurn) -> float:
        """Return how long a move takes, from its beginning until the node is back for good."""
        if self.knows(turn):
            return self._measured[kind_of(turn)]
        resync = self._resync(turn)
        catching_up = resync.seconds if isinstance(resync, CatchUp) else 0.0
        hold = self.policy.post_condition_hold_seconds
        before = REPLACEMENT_SECONDS if turn.image_id is None else BEFORE_STOP_SECONDS
        return_seconds = away_seconds(turn.image_id) + catching_up + hold
        return max(before, return_seconds) if turn.ahead else before + return_seconds

    def interval(self, turn: NodeTurn) -> tuple[float, float] | None:
        """Return between which times a move takes by earlier moves of the role; None: too few."""
        return self._spread.get(kind_of(turn))

    def resync_bytes(self, turn: NodeTurn) -> float | None:
        resync = self._resync(turn)
        return resync.gross_bytes if isinstance(resync, CatchUp) else None

    def _resync(self, turn: NodeTurn) -> CatchUp | Divergence | None:
        appended = self.appended.get(turn.node_id)
        if appended is None or not turn.is_broker:
            return None
        flow = Flow(
            append_bytes_per_s=appended, replication_bytes_per_s=self.replication_bytes_per_s
        )
        return after_outage(flow, outage_seconds=away_seconds(turn.image_id))

    def notes(self) -> Iterator[str]:
        if self._measured:
            roles = ", ".join(f"{r} {s:.0f} s" for r, s in sorted(self._measured.items()))
            yield f"Times are medians of the last run: {roles}."
        else:
            yield (
                f"No earlier run to go by: {REPLACEMENT_SECONDS:.0f} s for a new node and "
                f"{AWAY_SECONDS:.0f} s without the old one are assumed."
            )
        rate = f"{self.replication_bytes_per_s / 1e6:.1f} MB/s"
        if self.pace is None:
            yield (
                f"Replication at {rate} is assumed, what a gp3 volume takes when nothing more is "
                f"provisioned; no run has measured it."
            )
        else:
            by = "1 broker" if self.pace.brokers == 1 else f"{self.pace.brokers} brokers"
            yield f"Replication at {rate} was measured in {self.pace.run_id}, by {by}."
