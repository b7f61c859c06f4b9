"""Which brokers of one zone may go together, where a run is told to take several at a time.

Brokers that share no partition are to Kafka as if each went alone: no partition misses more than
one replica. Controllers go one by one, zones one after another. core.rotation.progress asks for the
company of the node that is first; λ rotate refuses a run whose brokers never could go together; and
consent is asked again for each of them with the lease in hand (core.availability.lease).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from core.availability.consent import shared
from core.incidents.observation import Policy
from core.rotation.estimate import together
from core.rotation.hours import wait_of
from core.rotation.observation import RunObservation
from core.rotation.preconditions import objections
from core.rotation.run_record import NodeTurn, Options
from core.views import ClusterView


def refusals(
    turns: Iterable[NodeTurn], kafka: ClusterView, options: Options, policy: Policy
) -> Iterator[str]:
    """Yield why a run may not take several nodes at a time; one that takes one is never refused."""
    if options.parallel_per_zone == 1:
        return
    if policy.drain_route == "direct":
        yield (
            "With drain_route direct the termination handler drains without asking Kafka, so nodes "
            "go one at a time; leave --parallel-per-zone out, or set drain_route to held."
        )
    if kafka.doubts:
        yield kafka.doubt
        return
    brokers = [turn for turn in turns if not turn.votes]
    for one, other in combinations(brokers, 2):
        both = list(shared(one.node_id, other.node_id, kafka)) if _neighbours(one, other) else []
        if both:
            yield (
                f"Brokers {one.node_id} and {other.node_id} in {one.zone} both hold partition "
                f"{both[0].name} ({len(both)} in all), so they do not go together; move its "
                f"replicas to different zones, or leave --parallel-per-zone out."
            )


def company(
    first: NodeTurn,
    waiting: Sequence[NodeTurn],
    seen: RunObservation,
    options: Options,
    policy: Policy,
) -> tuple[tuple[NodeTurn, ...], tuple[str, ...]]:
    """Return who goes together with a node that may go, and why others of its zone do not.

    A node left out has its own turn later. `waiting` are the others, in their order.
    """
    chosen: list[NodeTurn] = []
    left_out: list[str] = []
    for turn in waiting:
        if len(chosen) + 1 >= options.parallel_per_zone:
            break
        if not _neighbours(first, turn):
            continue
        objection = next(_against(turn, seen, options, policy, [first, *chosen]), None)
        if objection is None:
            chosen.append(turn)
        else:
            left_out.append(f"Broker {turn.node_id} does not go together with them. {objection}")
    return tuple(chosen), tuple(left_out)


def _against(
    turn: NodeTurn,
    seen: RunObservation,
    options: Options,
    policy: Policy,
    away: Sequence[NodeTurn],
) -> Iterator[str]:
    home = seen.node_of(turn.node_id)
    if home is None or home.instance_id != turn.instance_id:
        yield f"Node {turn.node_id} is not on instance {turn.instance_id}."
    # All of them have to be back before the maintenance window closes, whoever stops last.
    takes = together([each.expected_seconds or 0.0 for each in (turn, *away)])
    wait = wait_of(replace(turn, expected_seconds=takes), seen.now, options, policy)
    if wait is not None:
        yield wait.sentence
    yield from objections(turn, seen, options, policy, [each.node_id for each in away])


def in_batches(turns: Iterable[NodeTurn], kafka: ClusterView | None, most: int) -> list[int]:
    """Return which batch each of the ordered turns would be in, were nothing else in the way."""
    left, number = list(turns), 0
    batch_of: dict[int, int] = {}
    order = [turn.node_id for turn in left]
    while left:
        first, number = left[0], number + 1
        batch = [first]
        for turn in left[1:]:
            if kafka is None or len(batch) >= most:
                break
            if all(
                _neighbours(other, turn) and not any(shared(other.node_id, turn.node_id, kafka))
                for other in batch
            ):
                batch.append(turn)
        batch_of.update({turn.node_id: number for turn in batch})
        gone = {turn.node_id for turn in batch}
        left = [turn for turn in left if turn.node_id not in gone]
    return [batch_of[node_id] for node_id in order]


def _neighbours(one: NodeTurn, other: NodeTurn) -> bool:
    return one.zone == other.zone and not (one.votes or other.votes)
