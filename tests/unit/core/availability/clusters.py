"""Clusters in every shape and state that a reading may show: some healthy, most not."""

import functools
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from core.incidents.observation import GroupView, PodView
from core.rotation.estimate import RunObservation
from core.rotation.run_record import NodeTurn
from core.views import ClusterView, PartitionView, VoterView
from tests.unit.views import node_view

T = TypeVar("T")
NODES = tuple(range(6))
LAGS = (0.0, 0.1, 1.9, 2.0, 5.0, None)


# To make a strategy takes longer than to draw from it; one of the same arguments draws the same.
_orders = functools.cache(st.permutations)


@functools.cache
def _in_sync(factor: int) -> st.SearchStrategy[int]:
    """Which of the replicas are in the ISR, as bits; all of them as often as any."""
    return st.integers(0, 2**factor - 1) | st.just(2**factor - 1)


@functools.cache
def _lags(voters: int) -> st.SearchStrategy[tuple[float | None, ...]]:
    return st.tuples(*(st.sampled_from(LAGS) for _ in range(voters)))


@functools.cache
def _some_partitions(brokers: tuple[int, ...]) -> st.SearchStrategy[list[PartitionView]]:
    return st.lists(partitions(brokers), min_size=1, max_size=3)


@functools.cache
def _one_of(*values: T) -> st.SearchStrategy[T]:
    return st.sampled_from(values)


@st.composite
def partitions(draw: st.DrawFn, brokers: tuple[int, ...]) -> PartitionView:
    """A partition on some brokers; its ISR is a subset of its replicas, its leader one of those."""
    order = draw(_orders(brokers))
    factor = draw(st.integers(1, min(len(order), 5)))
    replicas = tuple(order[:factor])
    mask = draw(_in_sync(factor))
    isr = tuple(r for place, r in enumerate(replicas) if mask & (1 << place))
    return PartitionView(
        topic="t",
        partition=draw(st.integers(0, 99)),
        leader=isr[0] if isr else None,
        replicas=replicas,
        isr=isr,
        min_isr=draw(st.integers(1, 3)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """Up to five voters and six brokers; the first nodes may have both roles."""
    voters = NODES[: draw(_one_of(1, 2, 3, 3, 3, 4, 5))]
    combined = draw(st.booleans())
    brokers = NODES[: draw(st.integers(2, 6))] if combined else tuple(n + 10 for n in NODES)
    lags = draw(_lags(len(voters)))
    leader = draw(_one_of(*voters, None))
    fenced = draw(_one_of((), (), (brokers[0],), (brokers[1],), brokers[:2]))
    return ClusterView(
        brokers=frozenset(brokers),
        fenced=frozenset(fenced),
        voters=tuple(
            VoterView(n, 0.0 if n == leader else lag) for n, lag in zip(voters, lags, strict=True)
        ),
        quorum_leader=leader,
        partitions=tuple(draw(_some_partitions(brokers))),
        stale=leader is None,
    )


def turn_of(node_id: int, *, votes: bool = False) -> NodeTurn:
    return NodeTurn(
        node_id=node_id,
        pod=f"pod-{node_id}",
        role="controller" if votes else "broker",
        pool="kafka",
        zone="us-east-1a",
        instance_id=f"i-{node_id}",
        why="by hand",
    )


def around(view: ClusterView, *, now: float = 0.0) -> RunObservation:
    """Return a reading in which everything but Kafka itself lets every node go."""
    ids = sorted(view.brokers | {voter.node_id for voter in view.voters})
    return RunObservation(
        now=now,
        nodes=tuple(node_view(f"node-{n}", f"i-{n}", "us-east-1a", pool="kafka") for n in ids),
        pods=tuple(
            PodView(name=f"pod-{n}", node_id=n, role="broker", node_name=f"node-{n}", ready=True)
            for n in ids
        ),
        groups=(
            GroupView(
                name="g",
                desired=len(ids),
                maximum=2 * len(ids),
                instances={f"i-{n}": "InService" for n in ids},
            ),
        ),
        kafka=view,
    )


def calm(view: ClusterView) -> ClusterView:
    """Return a cluster with nobody out and everything led."""
    return replace(
        view,
        fenced=frozenset(),
        partitions=tuple(replace(p, isr=p.replicas, leader=p.replicas[0]) for p in view.partitions),
    )
