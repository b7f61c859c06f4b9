"""Volumes by what was measured of them; an unknown figure or price is a verdict of its own."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost import pricing
from core.ground import instances
from core.ground.instances import table
from core.volumes import sizing
from core.volumes.deciding import DecisionKind, VolumeDecision, VolumePlan, decide, plan
from core.volumes.growth import payback
from core.volumes.series import MAKING_SECONDS
from core.volumes.sizing import (
    GIB,
    MIB,
    Goals,
    Gp3,
    Performance,
    Policy,
    Resync,
    Use,
    instance_ceiling,
    monthly_usd,
    right_size,
)
from core.volumes.speed import helping_type, helps
from core.volumes.views import BrokerAbsence, FillForecast, Load, VolumeSet
from tests.every_case import every_case
from tests.unit.core.volumes.views import (
    FAST,
    HOUR,
    LOOKED,
    NOW,
    fill_forecast,
    quiet_hours,
    throttled_load,
    view,
    volume_set,
)

BOOK = pricing.book("us-east-1")


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
    assert "12000 IOPS and 298 MiB/s are the limit here" in found.reasons[2]


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


CONTROLLER = Policy(apply=True, grow_only=True, votes=True)


def verdicts(of: VolumeSet) -> list[VolumeDecision]:
    return [d for d in decide(of, BOOK, NOW) if d.kind is DecisionKind.UNKNOWN]


def unmeasured(*figures: str, **changed: Any) -> VolumeSet:
    """A set whose volume's load lacks figures."""
    volume = view(**changed)
    lacking = replace(volume.load, **dict.fromkeys(figures))
    return volume_set(replace(volume, load=lacking))


def test_a_volume_of_unknown_fill_is_not_said_to_have_what_it_needs() -> None:
    found = decide(volume_set(view(forecast=None)), BOOK, NOW)
    assert [d.kind for d in found] == [DecisionKind.UNKNOWN]
    assert found[0].refused_by == "unknown"
    assert "the fill of data-0-orders-broker-a-0 is not known" in found[0].reason
    assert "DescribeLogDirs" in found[0].reason


@pytest.mark.parametrize(
    "figure", ["volume_exceeded_share", "instance_exceeded_share", "iops_p999", "bytes_per_s_p999"]
)
def test_a_load_that_lacks_one_figure_is_unknown(figure: str) -> None:
    (verdict,) = verdicts(unmeasured(figure))
    assert verdict.refused_by == "unknown"
    assert "CloudWatch" in verdict.reason
    assert "Prometheus" not in verdict.reason


def test_where_a_prometheus_is_asked_it_is_named_among_the_sources() -> None:
    of = replace(volume_set(view(forecast=None)), prometheus=True)
    (verdict,) = verdicts(of)
    assert "Prometheus has no kubelet_volume_stats" in verdict.reason


@pytest.mark.parametrize("age", [0.0, MAKING_SECONDS - 1])
def test_while_a_cluster_is_made_what_is_unknown_is_said_and_calls_nobody(age: float) -> None:
    young = replace(LOOKED, known_since=NOW - age)
    (verdict,) = verdicts(volume_set(view(forecast=None, history=young)))
    assert verdict.refused_by == ""


def test_a_new_broker_beside_an_old_one_does_not_silence_it() -> None:
    young = view(forecast=None, history=replace(LOOKED, known_since=NOW))
    (verdict,) = verdicts(volume_set(young, view(forecast=None)))
    assert verdict.refused_by == "unknown"


def test_the_fill_of_controllers_is_nobodys_fault_without_a_prometheus() -> None:
    of = volume_set(view(forecast=None), policy=CONTROLLER)
    (verdict,) = verdicts(of)
    assert verdict.refused_by == ""
    assert "set metrics.prometheus" in verdict.reason
    (verdict,) = verdicts(replace(of, prometheus=True))
    assert verdict.refused_by == "unknown"


def test_the_load_of_controllers_and_of_what_is_attached_nowhere_is_not_missed() -> None:
    nothing = replace(view(), load=Load())
    assert verdicts(volume_set(nothing, policy=CONTROLLER)) == []
    assert verdicts(volume_set(replace(nothing, instance_type=None))) == []


NOTHING_KNOWN = pricing.PriceBook("eu-west-1", "The shipped price file")
FETCH = "stillwater prices fetch --region eu-west-1"
SUDDEN = FillForecast(used_bytes=60 * GIB, short_rate=10 * GIB / HOUR)


def planned(of: object, budget: Decimal | None = None) -> VolumePlan:
    return plan([of], NOTHING_KNOWN, NOW, budget)


def first_planned(of: object, budget: Decimal | None = None) -> VolumeDecision:
    return planned(of, budget).decisions[0]


def test_a_budget_nobody_can_reckon_with_lets_only_an_emergency_through() -> None:
    budget = Decimal(100)
    waiting = first_planned(volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8))), budget)
    assert (waiting.kind, waiting.refused_by) == (DecisionKind.REFUSE, "budget")
    assert FETCH in waiting.reason
    hurried = first_planned(volume_set(view(forecast=SUDDEN)), budget)
    assert (hurried.kind, hurried.emergency) == (DecisionKind.GROW, True)


def test_a_budget_of_nothing_bears_nothing_at_any_price() -> None:
    assert first_planned(volume_set(view(forecast=SUDDEN)), Decimal(0)).refused_by == "budget"


def test_what_lowers_the_bill_needs_no_price() -> None:
    fast = Gp3(100, Performance(6000, 250))
    quiet = volume_set(view(fast, load=Load(hours=quiet_hours(26))), asked=fast, spec=Gp3(100))
    assert first_planned(quiet, Decimal(0)).kind is DecisionKind.LOWER


def test_a_volume_that_is_throttled_is_raised() -> None:
    found = first_planned(volume_set(view(load=throttled_load())))
    assert (found.kind, found.monthly_usd_change) == (DecisionKind.RAISE, None)


def test_whether_a_smaller_volume_pays_is_not_claimed() -> None:
    assert payback(Gp3(500), Gp3(100), 10 * GIB, "m7g.large", NOTHING_KNOWN) is None


def test_without_prices_the_smallest_type_that_helps_is_named() -> None:
    current = instances.table().types["m7g.large"]
    found = helping_type(current, NOTHING_KNOWN)
    assert found.vcpus >= current.vcpus
    assert found.ebs_mib_per_s >= current.ebs_mib_per_s
    assert "$" not in helps("m7g.large", NOTHING_KNOWN)


@pytest.mark.parametrize("item", ["gp3_iops_month", "gp3_gib_month"])
def test_one_price_that_is_missing_makes_the_sum_unknown(item: str) -> None:
    book = pricing.book("us-east-1")
    less = pricing.PriceBook(
        book.region, book.name, {key: each for key, each in book.prices.items() if key != item}
    )
    found = plan([volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8)))], less, NOW)
    assert found.planned_usd is None
    assert item in found.unpriced


CHEAP_CONTROLLER = Policy(apply=True, grow_only=True, usd_per_minute_saved=10.0)


def first_of(of: VolumeSet) -> VolumeDecision:
    return decide(of, BOOK, NOW)[0]


def test_a_controllers_volume_is_neither_raised_nor_lowered_nor_made_ready_for_a_rotation() -> None:
    rotation = BrokerAbsence(
        pod="orders-controller-a-0", append_bytes_per_s=110 * MIB, away_seconds=300
    )
    busy = volume_set(
        view(load=throttled_load(instance=0.9)), policy=CHEAP_CONTROLLER, rotation=rotation
    )
    assert first_of(busy).kind is DecisionKind.KEEP
    quiet = view(FAST, load=Load(hours=quiet_hours(30)))
    assert (
        first_of(volume_set(quiet, asked=FAST, policy=CHEAP_CONTROLLER)).kind is DecisionKind.KEEP
    )


def test_a_controllers_volume_still_gets_what_the_spec_asks_for() -> None:
    asked = volume_set(view(), spec=FAST, policy=CHEAP_CONTROLLER)
    assert first_of(asked).target == Gp3(100, FAST.performance)


def test_the_cap_is_what_an_instance_sustains_unless_the_pool_may_burst() -> None:
    small = table().types["r7g.xlarge"]
    assert instance_ceiling(small) == Performance(6000, 149)
    assert instance_ceiling(small, bursting=True) == Performance(40_000, 1192)
    full = view(Gp3(100, Performance(6000, 149)), load=throttled_load(), instance_type="r7g.xlarge")
    asked = Gp3(100, Performance(6000, 149))
    sustained = first_of(volume_set(full, asked=asked))
    assert (sustained.kind, sustained.refused_by) == (DecisionKind.REFUSE, "instance")
    bursting = first_of(volume_set(full, asked=asked, policy=Policy(apply=True, may_burst=True)))
    assert bursting.kind is DecisionKind.RAISE


def test_a_burst_is_named_beside_what_is_sustained() -> None:
    bound = view(load=throttled_load(instance=0.5), instance_type="r7g.xlarge")
    assert (
        "r7g.xlarge sustains 6000 IOPS and 149 MiB/s (40000 and 1192 for 30 minutes in 24 hours)"
        in first_of(volume_set(bound)).reason
    )


def test_a_type_that_sustains_its_most_is_said_to_burst_nowhere() -> None:
    assert not table().types["r7g.16xlarge"].bursts
    bound = view(load=throttled_load(instance=0.5), instance_type="r7g.16xlarge")
    assert "minutes in 24 hours" not in first_of(volume_set(bound)).reason


def test_no_type_of_the_table_bursts_below_what_it_sustains() -> None:
    for each in table().types.values():
        assert each.ebs_burst_iops >= each.ebs_iops, each.name
        assert each.ebs_burst_mb_per_s >= each.ebs_mb_per_s, each.name


def test_a_run_of_several_nodes_pays_once_for_all_of_them() -> None:
    policy = Policy(apply=True, usd_per_minute_saved=0.001)
    one = BrokerAbsence(pod="p", append_bytes_per_s=80 * MIB, away_seconds=400, measured=5)
    assert first_of(volume_set(policy=policy, rotation=one)).kind is DecisionKind.KEEP
    many = replace(one, nodes=9)
    found = first_of(volume_set(policy=policy, rotation=many))
    assert found.kind is DecisionKind.ROTATION
    assert "9 nodes, each away for 400 s, measured of 5 earlier departures" in found.reason
