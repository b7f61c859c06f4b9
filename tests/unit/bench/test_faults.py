"""Chaos can be had again, and leaves no fault out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

seeds = st.integers(0, 10**6)


@pytest.fixture(scope="module")
def faults() -> Any:
    """The chaos, with the twin it befalls: seconds for every worker that only collects this."""
    from bench.fleet import faults  # noqa: PLC0415

    return faults


@given(seed=seeds, count=st.integers(0, 40))
def test_a_seed_draws_the_same_disruptions_again(faults: Any, seed: int, count: int) -> None:
    drawn = faults.draw(seed, count)
    assert len(drawn) == count
    assert faults.draw(seed, count) == drawn


@given(seed=seeds, more=st.integers(0, 30))
def test_every_fault_comes_before_any_comes_twice(faults: Any, seed: int, more: int) -> None:
    every = faults.FAULTS
    drawn = [disruption.fault for disruption in faults.draw(seed, len(every) + more)]
    assert set(drawn[: len(every)]) == set(every)


@given(seed=seeds)
def test_a_fault_befalls_the_kind_of_node_it_is_about(faults: Any, seed: int) -> None:
    for disruption in faults.draw(seed, len(faults.FAULTS)):
        of_controllers = disruption.fault in faults.ON_CONTROLLERS
        nodes = faults.CONTROLLERS if of_controllers else faults.BROKERS
        assert disruption.node_id in nodes
