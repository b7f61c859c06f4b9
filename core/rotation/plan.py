"""What a rotation would do, before it is started: order, time, bytes, what blocks, what is lost.

Times and bytes are core.rotation.estimate's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.incidents.observation import Policy
from core.rotation.estimate import ASSUMED_REPLICATION_BYTES_PER_S, Estimate, together
from core.rotation.hours import wait_of
from core.rotation.observation import RunObservation
from core.rotation.order import in_order
from core.rotation.parallel import in_batches, partings
from core.rotation.preconditions import objections, unavailable, unkeepable
from core.rotation.run_record import NodeTurn, Options, Run
from core.views import ClusterView, listed
from core.window import clock


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
    too_long: tuple[str, ...] = ()  # for which no maintenance window is ever open long enough
    notes: tuple[str, ...] = ()
    # What replication brings in, and the run that measured it; None: it is assumed.
    replication_bytes_per_s: float = ASSUMED_REPLICATION_BYTES_PER_S
    replication_measured_in: str | None = None

    @property
    def seconds(self) -> float:
        """Return how long it takes, batches one after another."""
        batches: dict[int, list[float]] = {}
        for node in self.nodes:
            batches.setdefault(node.batch, []).append(node.seconds)
        return sum(together(each) for each in batches.values())


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
    batches = in_batches(ordered, seen.kafka, options, policy)
    estimate = Estimate(policy, earlier, appended or {})
    ordered = tuple(replace(turn, expected_seconds=estimate.seconds(turn)) for turn in ordered)
    waits = (wait_of(turn, seen.now, options, policy) for turn in ordered)
    nodes = tuple(
        PlannedNode(
            node_id=turn.node_id,
            role=turn.role,
            zone=turn.zone,
            instance_id=turn.instance_id,
            why=turn.why,
            seconds=turn.expected_seconds or 0.0,
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
        too_long=tuple(wait.sentence for wait in waits if wait is not None and wait.until is None),
        notes=(
            *notes,
            *(partings(ordered, batches, seen.kafka, policy) if options.at_once != 1 else ()),
            *estimate.notes(),
            *_hours(seen, options, policy),
            *_left_over(seen.kafka),
        ),
        replication_bytes_per_s=estimate.replication_bytes_per_s,
        replication_measured_in=None if estimate.pace is None else estimate.pace.run_id,
    )


def _left_over(kafka: ClusterView | None) -> Iterator[str]:
    """Name what brokers that are gone have left, which stops nobody, and the command to end it."""
    if kafka is None or kafka.doubts:
        return
    for broker_id in sorted(kafka.idle_fenced):
        yield (
            f"Broker {broker_id} is fenced and holds nothing. Is it gone for good? "
            f"`kafka-cluster.sh unregister --id {broker_id}` takes it off the list."
        )
    for partition in kafka.abandoned:
        yield (
            f"Partition {partition.name} is only on brokers that were removed "
            f"({listed(partition.replicas)}). `kafka-topics.sh --delete --topic {partition.topic}` "
            f"or a broker of that id with its volume ends it."
        )


def _hours(seen: RunObservation, options: Options, policy: Policy) -> Iterator[str]:
    """Say when the run may begin with nodes, where a maintenance window is set."""
    if policy.maintenance is None or options.any_time:
        return
    opens, closes = next(policy.maintenance.stretches(seen.now))
    moment = f"opens at {clock(opens)}" if opens > seen.now else f"is open until {clock(closes)}"
    yield (
        f"The maintenance window {moment}. A run begins with a node while it stays open for as "
        f"long as the node is expected to take; --any-time: whenever."
    )


def to_document(found: Plan) -> dict[str, Any]:
    return {**asdict(found), "seconds": found.seconds}
