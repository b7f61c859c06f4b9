"""core.volumes.sizing: a volume by what was measured of it, and what EC2 would refuse."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost import pricing
from core.ground.instances import table
from core.volumes import sizing
from core.volumes.sizing import (
    GIB,
    MIB,
    Goals,
    Gp3,
    Performance,
    Resync,
    Use,
    monthly_usd,
    right_size,
)
from tests.every_case import every_case

BOOK = pricing.book("us-east-1")
DAY = 24 * 3600


@pytest.mark.parametrize(
    ("volume", "usd"),
    [
        (Gp3(1000), "80"),
        (Gp3(1000, Performance(3000, 250)), "85"),
        (Gp3(1000, Performance(4000, 500)), "100"),
    ],
)
def test_a_volumes_month_is_what_aws_lists(volume: Gp3, usd: str) -> None:
    assert monthly_usd(volume, BOOK) == Decimal(usd)


def test_a_volume_holds_its_fill_and_its_growth_and_leaves_a_share_free() -> None:
    use = Use(used_bytes=400 * GIB, growth_bytes_per_day=10 * GIB)
    found = right_size(Gp3(500), use, BOOK, Goals(headroom_days=11, free_share=0.15))
    assert found.wanted == Gp3(600)
    assert found.monthly_usd_change == Decimal("8.00")
    assert found.wanted.size_gib >= found.current.size_gib
    assert "400.0 GiB used and +10.00 GiB a day want 600 GiB" in found.reasons[0]


def test_a_volume_too_large_is_said_to_never_shrink() -> None:
    found = right_size(Gp3(2000), Use(used_bytes=100 * GIB), BOOK)
    assert found.wanted.size_gib < found.current.size_gib
    assert found.wanted.size_gib == 120
    assert found.monthly_usd_change == Decimal("-150.40")
    assert "a new pool with smaller ones does" in found.reasons[0]


def test_a_shrinking_fill_asks_for_no_less_than_what_is_used() -> None:
    use = Use(used_bytes=85 * GIB, growth_bytes_per_day=-20.0 * GIB)
    assert right_size(Gp3(500), use, BOOK).wanted.size_gib == 100


def test_performance_is_the_measured_with_its_margin() -> None:
    use = Use(used_bytes=GIB, iops_p999=4000, throughput_p999_bytes_per_s=200 * MIB)
    found = right_size(Gp3(100), use, BOOK)
    assert found.wanted.performance == Performance(6000, 250)
    assert "p99.9 with a margin of 20%" in found.reasons[1]


def test_what_nobody_measured_asks_for_nothing() -> None:
    assert right_size(Gp3(100), Use(used_bytes=GIB), BOOK).wanted.performance == sizing.INCLUDED


def test_a_resync_in_a_stated_time_asks_for_throughput() -> None:
    # 300 s away at 100 MiB/s, caught up within 100 s while 100 MiB/s go on: 400 MiB/s.
    resync = Resync(append_bytes_per_s=100 * MIB, away_seconds=300, within_seconds=100)
    assert resync.write_bytes_per_s == 400 * MIB
    found = right_size(Gp3(100), Use(used_bytes=GIB), BOOK, resync=resync)
    assert found.wanted.performance == Performance(3000, 500)
    assert "in sync again within 100 s" in found.reasons[1]


def test_what_is_beyond_the_instance_is_said_and_not_bought() -> None:
    use = Use(used_bytes=GIB, throughput_p999_bytes_per_s=500 * MIB)
    ceiling = Performance(12_000, 298)
    found = right_size(Gp3(100), use, BOOK, Goals(ceiling=ceiling))
    assert found.wanted.performance == Performance(3000, 298)
    assert found.beyond == Performance(0, 600)
    assert "12000 IOPS and 298 MiB/s are the most there is here" in found.reasons[2]


def test_iops_beyond_the_ratio_make_the_volume_larger_than_its_data() -> None:
    use = Use(used_bytes=GIB, iops_p999=20_000)
    found = right_size(Gp3(100), use, BOOK, Goals(step_gib=1))
    assert found.wanted == Gp3(48, Performance(24_000, 125))


@given(
    used=st.integers(0, 20_000 * GIB),
    growth=st.floats(-1e12, 1e12),
    iops=st.floats(0, 200_000),
    throughput=st.floats(0, 5e9),
    size=st.integers(1, 65_536),
)
def test_what_is_wanted_is_what_ec2_accepts(
    used: int, growth: float, iops: float, throughput: float, size: int
) -> None:
    use = Use(
        used_bytes=used,
        growth_bytes_per_day=growth,
        iops_p999=iops,
        throughput_p999_bytes_per_s=throughput,
    )
    found = right_size(Gp3(size), use, BOOK)
    assert sizing.refusals(found.wanted) == []
    change = monthly_usd(found.wanted, BOOK) - monthly_usd(Gp3(size), BOOK)
    assert abs(found.monthly_usd_change - change) <= Decimal("0.005")


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
