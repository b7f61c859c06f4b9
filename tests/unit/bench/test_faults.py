"""Chaos can be had again, and leaves no fault out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.fleet.faults import FAULTS, ON_CONTROLLERS, draw

seeds = st.integers(0, 10**6)


@given(seeds, st.integers(0, 40))
def test_a_seed_draws_the_same_disruptions_again(seed: int, count: int) -> None:
    drawn = draw(seed, count)
    assert len(drawn) == count
    assert draw(seed, count) == drawn


@given(seeds, st.integers(len(FAULTS), 40))
def test_every_fault_comes_before_any_comes_twice(seed: int, count: int) -> None:
    drawn = [disruption.fault for disruption in draw(seed, count)]
    assert set(drawn[: len(FAULTS)]) == set(FAULTS)


@given(seeds)
def test_a_fault_befalls_the_kind_of_node_it_is_about(seed: int) -> None:
    # The twin's tests: seconds for every worker that only collects this one.
    from tests.integration.cluster import BROKERS, CONTROLLERS  # noqa: PLC0415

    for disruption in draw(seed, len(FAULTS)):
        nodes = CONTROLLERS if disruption.fault in ON_CONTROLLERS else BROKERS
        assert disruption.node_id in nodes
