"""Plans a rotation before it is started: order, time, bytes, what blocks, what is lost.

Times and bytes are core.rotation.estimate's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.ground.window import clock
from core.ground.words import span
from core.incidents.observation import Policy
from core.rotation.estimate import (
    ASSUMED_REPLICATION_BYTES_PER_S,
    BOOT_SECONDS,
    SWAP_SECONDS,
    MoveEstimate,
    away_seconds,
    together,
)
from core.rotation.observation import RunObservation
from core.rotation.parallel import batch_numbers, heavy_parties, machines_come_ahead, partings
from core.rotation.preconditions import (
    departure_order,
    objections,
    unavailable,
    unkeepable,
    wait_of,
)
from core.rotation.run_record import NodeTurn, Options, Run
from core.views import ClusterView, id_list


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """One node of a plan, in its place."""

    node_id: int
    role: str
    zone: str
    instance_id: str
    why: str
    seconds: float
    alone_seconds: float  # the same where its machine is not made ready before its turn
    resync_bytes: float | None  # None: not known, or nothing to copy
    batch: int  # those of one batch go together
    # Between which times it takes, by what the last run's nodes of the role took; None: too few.
    interval_seconds: tuple[float, float] | None = None
    objections: tuple[str, ...] = ()
    image_id: str | None = None  # of its new root volume, where its instance stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A rotation before it begins."""

    nodes: tuple[PlannedNode, ...]
    stops_together: bool  # those of one batch, at the same time
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
        return self._total_seconds([node.seconds for node in self.nodes])

    @property
    def interval_seconds(self) -> tuple[float, float] | None:
        """Return between which times it takes; None where a role was measured too seldom."""
        known = [node.interval_seconds for node in self.nodes if node.interval_seconds]
        if not known or len(known) < len(self.nodes):
            return None
        return self._total_seconds([i[0] for i in known]), self._total_seconds(
            [i[1] for i in known]
        )

    def _total_seconds(self, takes: Iterable[float]) -> float:
        batches = [(node.batch, node.image_id) for node in self.nodes]
        return _seconds_of_batches(batches, takes, at_once=self.stops_together)


def _seconds_of_batches(
    batches: Iterable[tuple[int, str | None]], takes: Iterable[float], *, at_once: bool
) -> float:
    """Return how long moves take, batch after batch; of each its batch and its new root volume."""
    parties: dict[tuple[int, float], list[float]] = {}
    for (batch, image_id), seconds in zip(batches, takes, strict=True):
        parties.setdefault((batch, away_seconds(image_id)), []).append(seconds)
    return sum(
        together(each, at_once=at_once, apart_seconds=apart) for (_, apart), each in parties.items()
    )


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
    ordered = departure_order(turns, seen.pods, leader)
    lost = (
        []
        if seen.kafka is None
        else [partition for turn in ordered for partition in unkeepable(turn.node_id, seen.kafka)]
    )
    batches = batch_numbers(ordered, seen.kafka, options, policy)
    estimate = MoveEstimate(policy, earlier, appended or {})
    ordered = tuple(replace(turn, expected_seconds=estimate.seconds(turn)) for turn in ordered)
    in_turn = _with_machines_ready(ordered, batches, options, policy)
    waits = (wait_of(turn, seen.now, options, policy) for turn in ordered)
    nodes = tuple(
        PlannedNode(
            node_id=turn.node_id,
            role=turn.role,
            zone=turn.zone,
            instance_id=turn.instance_id,
            why=turn.why,
            seconds=estimate.seconds(ready),
            alone_seconds=turn.expected_seconds or 0.0,
            resync_bytes=estimate.resync_bytes(turn),
            batch=batch,
            interval_seconds=estimate.interval(ready),
            objections=tuple(objections(turn, seen, options, policy)),
            image_id=turn.image_id,
        )
        for turn, ready, batch in zip(ordered, in_turn, batches, strict=True)
    )
    return Plan(
        nodes=nodes,
        stops_together=policy.stops_together,
        unavailable=tuple(dict.fromkeys(unavailable(partition) for partition in lost)),
        topics=tuple(sorted({partition.topic for partition in lost})),
        too_long=tuple(wait.sentence for wait in waits if wait is not None and wait.until is None),
        notes=(
            *notes,
            *_ways(ordered, options, estimate),
            *(partings(ordered, batches, seen.kafka, policy) if options.at_once != 1 else ()),
            *heavy_parties(ordered, batches, seen),
            *_ahead(nodes, policy),
            *_faster(ordered, seen, options, policy, estimate),
            *estimate.notes(),
            *_hours(seen, options, policy),
            *_left_over(seen.kafka),
        ),
        replication_bytes_per_s=estimate.replication_bytes_per_s,
        replication_measured_in=None if estimate.pace is None else estimate.pace.run_id,
    )


def _with_machines_ready(
    ordered: Sequence[NodeTurn], batches: Sequence[int], options: Options, policy: Policy
) -> list[NodeTurn]:
    """Return turns as they would come up: whoever is behind the first finds its machine ready."""
    ready = machines_come_ahead(options, policy)
    return [
        replace(turn, ahead=ready and batch != batches[0] and turn.image_id is None)
        for turn, batch in zip(ordered, batches, strict=True)
    ]


def _ahead(nodes: Sequence[PlannedNode], policy: Policy) -> Iterator[str]:
    """Say what it saves that machines are made ready ahead of their nodes' turns."""
    batches = [(node.batch, node.image_id) for node in nodes]
    now, alone = (
        _seconds_of_batches(batches, takes, at_once=policy.stops_together)
        for takes in ([n.seconds for n in nodes], [n.alone_seconds for n in nodes])
    )
    if now < alone:
        yield (
            f"Each next machine boots while the node before comes back; one after the other it "
            f"would take about {span(alone)} instead of {span(now)}."
        )


def _faster(
    ordered: Sequence[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
    estimate: MoveEstimate,
) -> Iterator[str]:
    """Say how long it would take with whole zones at once, where that is quicker."""
    if options.at_once is None or policy.drain_route in {"direct", "asked"} or seen.kafka is None:
        return
    (now, parties), (then, fewer) = (
        _time_and_parties(
            ordered, batch_numbers(ordered, seen.kafka, each, policy), each, policy, estimate
        )
        for each in (options, replace(options, at_once=None))
    )
    if then < now:
        yield (
            f"With --at-once zone it would take about {span(then)} instead of {span(now)}: "
            f"{fewer} parties instead of {parties}."
        )


def _time_and_parties(
    ordered: Sequence[NodeTurn],
    batches: Sequence[int],
    options: Options,
    policy: Policy,
    estimate: MoveEstimate,
) -> tuple[float, int]:
    """Return how long turns take in these batches, and how many parties there are."""
    takes = map(estimate.seconds, _with_machines_ready(ordered, batches, options, policy))
    placed = [(batch, turn.image_id) for batch, turn in zip(batches, ordered, strict=True)]
    return _seconds_of_batches(placed, takes, at_once=policy.stops_together), len(set(placed))


def _ways(ordered: Sequence[NodeTurn], options: Options, estimate: MoveEstimate) -> Iterator[str]:
    """Say who keeps its instance, and why others do not, each reason once."""
    if not options.in_place:
        return
    stay = [turn for turn in ordered if turn.image_id is not None]
    if stay:
        yield f"In place: {id_list([turn.node_id for turn in stay])}."
    if options.at_once != 1 and 0 < len(stay) < len(ordered):
        yield "Who stays and who gets a new instance go in different parties."
    if any(not estimate.knows(turn) for turn in stay):
        boot = SWAP_SECONDS + BOOT_SECONDS
        yield f"{boot:.0f} s are assumed for a boot from a new root volume; no run has measured it."
    reasons: dict[str, list[int]] = {}
    for turn in ordered:
        if turn.by_replacement:
            reasons.setdefault(turn.by_replacement, []).append(turn.node_id)
    for why, ids in reasons.items():
        yield f"By a new instance: {id_list(ids)}. {why}"


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
            f"({id_list(partition.replicas)}). `kafka-topics.sh --delete --topic "
            f"{partition.topic}` or a broker of that id with its volume ends it."
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


def plan_to_document(found: Plan) -> dict[str, Any]:
    return {
        **asdict(found),
        "seconds": found.seconds,
        "interval_seconds": found.interval_seconds,
    }
