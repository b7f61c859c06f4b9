"""What a rotation would do, before it is started: order, time, bytes, what blocks, what is lost.

Times and bytes are estimates: how long earlier runs took for a node of the role, else what their
timings allow for, and core.resync's model over what is appended now and the rate at which earlier
runs saw replication bring logs back (core.rotation.pace).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from core.observations import Policy
from core.resync import CatchUp, Divergence, Flow, after_outage
from core.rotation.order import in_order
from core.rotation.pace import measured
from core.rotation.parallel import in_batches
from core.rotation.preconditions import RunObservation, objections, unavailable, unkeepable
from core.rotation.run_record import NodeTurn, Options, Phase, Replication, Run
from core.window import start_of

# Without an earlier run to go by: an EKS node boots, joins and registers its volume driver.
REPLACEMENT_SECONDS = 180.0
# From the stop of a broker's pod until its fetchers run on the new node: controlled shutdown, its
# volume's detaching and attaching, start.
AWAY_SECONDS = 90.0


# What a gp3 volume takes when nothing more is provisioned; replication that is faster waits for it.
ASSUMED_REPLICATION_BYTES_PER_S = 125e6


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """One node of a plan, in its place."""

    node_id: int
    role: str
    zone: str
    instance_id: str
    why: str
    seconds: float
    resync_bytes: float | None  # None: not known, or nothing to copy
    batch: int  # those of one batch go together
    objections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A rotation before it begins."""

    nodes: tuple[PlannedNode, ...]
    unavailable: tuple[str, ...]  # what nobody can keep, a sentence per partition
    topics: tuple[str, ...]  # whose partitions those are
    notes: tuple[str, ...] = ()
    # What replication brings in, and the run that measured it; None: it is assumed.
    replication_bytes_per_s: float = ASSUMED_REPLICATION_BYTES_PER_S
    replication_measured_in: str | None = None

    @property
    def seconds(self) -> float:
        """Return how long it takes: batches one after another, each as long as its slowest."""
        slowest: dict[int, float] = {}
        for node in self.nodes:
            slowest[node.batch] = max(node.seconds, slowest.get(node.batch, 0.0))
        return sum(slowest.values())


def plan(
    turns: Iterable[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
    *,
    earlier: Run | None = None,
    appended: Mapping[int, float] | None = None,
    notes: Iterable[str] = (),
) -> Plan:
    """Return the plan of a run over these nodes, started now.

    `appended` is what is appended to each broker's replicas, in bytes a second.
    """
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    ordered = in_order(turns, seen.pods, leader)
    lost = (
        []
        if seen.kafka is None
        else [partition for turn in ordered for partition in unkeepable(turn.node_id, seen.kafka)]
    )
    batches = in_batches(ordered, seen.kafka, options.parallel_per_zone)
    estimate = _Estimate(policy, earlier, appended or {})
    nodes = tuple(
        PlannedNode(
            node_id=turn.node_id,
            role=turn.role,
            zone=turn.zone,
            instance_id=turn.instance_id,
            why=turn.why,
            seconds=estimate.seconds(turn),
            resync_bytes=estimate.resync_bytes(turn),
            batch=batch,
            objections=tuple(objections(turn, seen, options, policy)),
        )
        for turn, batch in zip(ordered, batches, strict=True)
    )
    return Plan(
        nodes=nodes,
        unavailable=tuple(dict.fromkeys(unavailable(partition) for partition in lost)),
        topics=tuple(sorted({partition.topic for partition in lost})),
        notes=(*notes, *estimate.notes(), *_hours(seen, options, policy)),
        replication_bytes_per_s=estimate.replication_bytes_per_s,
        replication_measured_in=None if estimate.pace is None else estimate.pace.run_id,
    )


@dataclass(frozen=True)
class _Estimate:
    policy: Policy
    earlier: Run | None
    appended: Mapping[int, float]
    _measured: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        took: dict[str, list[float]] = {}
        for turn in self.earlier.turns if self.earlier else ():
            if turn.phase is Phase.DONE and turn.began_at is not None and turn.done_at is not None:
                took.setdefault(turn.role, []).append(turn.done_at - turn.began_at)
        self._measured.update({role: statistics.median(each) for role, each in took.items()})

    @property
    def pace(self) -> Replication | None:
        return measured(self.earlier)

    @property
    def replication_bytes_per_s(self) -> float:
        return ASSUMED_REPLICATION_BYTES_PER_S if self.pace is None else self.pace.bytes_per_s

    def seconds(self, turn: NodeTurn) -> float:
        if turn.role in self._measured:
            return self._measured[turn.role]
        resync = self._resync(turn)
        catching_up = resync.seconds if isinstance(resync, CatchUp) else 0.0
        hold = self.policy.post_condition_hold_seconds
        return REPLACEMENT_SECONDS + AWAY_SECONDS + catching_up + hold

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
        return after_outage(flow, outage_seconds=AWAY_SECONDS)

    def notes(self) -> tuple[str, ...]:
        said = []
        if self._measured:
            roles = ", ".join(f"{r} {s:.0f} s" for r, s in sorted(self._measured.items()))
            said.append(f"Times are medians of the last run: {roles}.")
        else:
            said.append(
                f"No earlier run to go by: {REPLACEMENT_SECONDS:.0f} s for a new node and "
                f"{AWAY_SECONDS:.0f} s without the old one are assumed."
            )
        rate = f"{self.replication_bytes_per_s / 1e6:.1f} MB/s"
        if self.pace is None:
            said.append(
                f"Replication at {rate} is assumed, what a gp3 volume takes when nothing more is "
                f"provisioned; no run has measured it."
            )
        else:
            by = "1 broker" if self.pace.brokers == 1 else f"{self.pace.brokers} brokers"
            said.append(f"Replication at {rate} was measured in {self.pace.run_id}, by {by}.")
        return tuple(said)


def _hours(seen: RunObservation, options: Options, policy: Policy) -> tuple[str, ...]:
    """Say when a run could begin, where a maintenance window is set."""
    if policy.maintenance is None or options.any_time:
        return ()
    start = start_of(
        None, seen.now, policy.maintenance, margin_seconds=policy.planned_margin_seconds
    )
    waits = " A run waits for it before each node; --any-time: it does not."
    return (f"{start.reason[0].upper()}{start.reason[1:]}.{waits}",)


def to_document(found: Plan) -> dict[str, Any]:
    return {**asdict(found), "seconds": found.seconds}
