"""core.cluster.estimate: what a broker is for a load; what no broker carries is a sentence."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from core.cluster.estimate import CANDIDATES, CATCHING_UP, ClientLoad, size
from core.ground.errors import InvalidInput
from tests.every_case import every_case

LOAD = ClientLoad(zones=3, brokers=3, produce_mib_per_s=60, readers=2, retention_hours=24)


def test_the_guides_example_is_an_r7g_xlarge() -> None:
    assert (LOAD.written_mib_per_s, LOAD.sent_mib_per_s) == (60, 90)
    found = size(LOAD)
    assert (found.instance.name, found.throughput_mib_per_s, found.iops) == (
        "r7g.xlarge",
        125,
        3000,
    )


@settings(max_examples=50)
@given(
    zones=st.integers(3, 6),
    each=st.integers(1, 6),  # one more of each has its listener still
    produce=st.floats(0.01, 3000),
    readers=st.floats(0, 10),
    hours=st.integers(1, 1000),
)
def test_a_broker_carries_its_load_or_the_answer_says_what_to_change(
    zones: int, each: int, produce: float, readers: float, hours: int
) -> None:
    load = ClientLoad(zones, zones * each, produce, readers, hours)
    try:
        found = size(load)
    except InvalidInput as error:
        (problem,) = error.problems
        event(problem.rpartition(": ")[2])
        return
    assert found.instance.ebs_mib_per_s >= CATCHING_UP * load.written_mib_per_s
    assert found.size_gib * 1024 >= load.written_mib_per_s * hours * 3600
    more = size(replace(load, brokers=load.brokers + zones))
    assert CANDIDATES.index(more.instance.name) <= CANDIDATES.index(found.instance.name)


@every_case(
    ("changed", "sentence"),
    [
        ({"zones": 2}, "2 availability zones: 3 replicas need 3"),
        ({"zones": 1}, "1 availability zone: 3 replicas need 3"),
        ({"brokers": 48}, "ask for 45 at most"),
        ({"brokers": 5}, "5 brokers cannot stand evenly in 3 availability zones: ask for 6"),
        ({"brokers": 0}, "ask for 3"),
        ({"produce_mib_per_s": math.nan}, "nan produced MiB/s: it must be a number above 0"),
        ({"produce_mib_per_s": 0}, "0 produced MiB/s"),
        ({"readers": -1}, "-1 consumer groups"),
        ({"retention_hours": 0}, "0 hours of retention"),
        ({"retention_hours": 10_000}, "a gp3 volume ends at 65,536"),
    ],
)
def test_a_load_that_cannot_be_is_one_sentence(changed: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        size(replace(LOAD, **changed))  # type: ignore[arg-type]
    assert sentence in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(("zones", "most"), [(3, 45), (4, 44), (5, 40), (6, 42)])
def test_as_many_brokers_as_have_listeners_beside_the_spare_ones(zones: int, most: int) -> None:
    assert size(replace(LOAD, zones=zones, brokers=most)).size_gib > 0
    with pytest.raises(InvalidInput, match=f"ask for {most} at most"):
        size(replace(LOAD, zones=zones, brokers=most + zones))


@every_case("zones", [3, 4])
@every_case(("produced", "hours"), [(5000, 1), (900, 24), (300, 720), (20, 9000)])
def test_the_number_of_brokers_that_a_refusal_names_carries_the_load(
    zones: int, produced: float, hours: int
) -> None:
    load = ClientLoad(zones=zones, brokers=zones, produce_mib_per_s=produced, retention_hours=hours)
    with pytest.raises(InvalidInput) as caught:
        size(load)
    named = re.search(r"name (\d+) brokers or more", str(caught.value))
    if named is None:
        assert "too few; make it several Kafkas" in str(caught.value)
        with pytest.raises(InvalidInput):
            size(replace(load, brokers=45 if zones == 3 else 44))
        return
    size(replace(load, brokers=int(named[1])))
    with pytest.raises(InvalidInput):
        size(replace(load, brokers=int(named[1]) - zones))
