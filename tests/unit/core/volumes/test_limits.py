"""core.volumes.sizing: what EC2 would refuse of a gp3 volume, and the steps between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.ground.instances import table
from core.volumes import sizing
from core.volumes.sizing import Gp3, Performance
from tests.every_case import every_case

performances = st.sampled_from(sizing.steps(sizing.INCLUDED, sizing.UNLIMITED))


@every_case(
    ("volume", "word"),
    [
        (Gp3(100, Performance(3000, 125)), None),
        (Gp3(1, Performance(3000, 125)), None),
        (Gp3(160, Performance(80_000, 2000)), None),
        (Gp3(159, Performance(80_000, 2000)), "79500 for 159 GiB"),
        (Gp3(1000, Performance(3000, 750)), None),
        (Gp3(1000, Performance(3000, 751)), "750 for 3000 IOPS"),
        (Gp3(65_537), "65537 is outside gp3's 1 to 65536"),
        (Gp3(200, Performance(80_001, 125)), "80001 is outside"),
        (Gp3(200, Performance(3000, 124)), "124 is outside"),
    ],
)
def test_a_volume_is_refused_as_ec2_refuses_it(volume: Gp3, word: str | None) -> None:
    found = sizing.refusals(volume)
    assert bool(found) == (word is not None)
    assert word is None or word in found[0]


@given(size=st.integers(1, 65_536), wanted=performances, floor=performances, ceiling=performances)
def test_a_step_is_one_that_ec2_accepts(
    size: int, wanted: Performance, floor: Performance, ceiling: Performance
) -> None:
    if floor.iops > sizing.most_iops(size):
        return
    step = sizing.step_for(wanted, floor, ceiling, size)
    assert sizing.refusals(Gp3(size, step)) == []
    assert step.covers(floor)


@given(size=st.integers(160, 65_536), wanted=performances)
def test_no_cheaper_step_covers_what_is_wanted(size: int, wanted: Performance) -> None:
    step = sizing.step_for(wanted, sizing.INCLUDED, sizing.UNLIMITED, size)
    assert step == wanted


def test_a_step_that_does_not_suffice_is_the_cheapest_of_the_best() -> None:
    ceiling = Performance(12_000, 298)
    step = sizing.step_for(Performance(4000, 900), sizing.INCLUDED, ceiling, 500)
    assert step == Performance(4000, 298)


def test_an_instances_ceiling_is_its_baseline_less_what_stands_beside() -> None:
    instance = table().types["m7g.2xlarge"]
    assert sizing.instance_ceiling(instance) == Performance(12_000, 298)
    beside = [Performance(4000, 125)]
    assert sizing.instance_ceiling(instance, beside) == Performance(8000, 173)
    assert sizing.instance_ceiling(instance, [Performance(16_000, 500)]) == sizing.INCLUDED


def test_the_steps_within_an_instance_are_few() -> None:
    found = sizing.steps(sizing.INCLUDED, sizing.instance_ceiling(table().types["r7g.xlarge"]))
    assert found == (
        Performance(3000, 125),
        Performance(4000, 125),
        Performance(6000, 125),
        Performance(3000, 149),
        Performance(4000, 149),
        Performance(6000, 149),
    )
