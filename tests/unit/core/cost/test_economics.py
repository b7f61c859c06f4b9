"""EBS or local disks, and the way back into every ISR, against figures and a slow clock."""

import math
import random
from dataclasses import replace
from decimal import Decimal
from statistics import linear_regression

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost import economics, pricing
from core.cost.economics import FEWEST_POINTS, Brokers, backtest, compare, forecast, student_t
from core.cost.resync import (
    CatchUp,
    Divergence,
    Flow,
    after_loss,
    after_outage,
    held_bytes,
    slowest,
)
from core.ground import instances
from core.ground.errors import InvalidInput
from tests.every_case import every_case

BOOK = pricing.book("us-east-1")
MB = 1_000_000
DAY = 86_400
# The notes' worked broker: 30 MB/s, three days of retention, five minutes away.
BROKERS = Brokers(
    number=3,
    zones=3,
    instance_type="r7g.2xlarge",
    volume_gib=10_000,
    iops=3000,
    throughput_mib_per_s=250,
    append_bytes_per_s=30 * MB,
    held_bytes=30 * MB * 3 * DAY,
    outage_seconds=300,
    rotations_per_month=6,
    in_place_seconds=210,
    seen_bytes_per_s=200 * MB,
)


def test_an_empty_disk_is_filled_over_the_network_between_zones() -> None:
    nvme = compare(BROKERS, BOOK).nvme
    # 23.3 TB at most 75 % full are six times 7.5 TB: half of 7.8 TB each, and of 30 MB/s.
    assert (nvme.instance_type, nvme.brokers) == ("i8ge.3xlarge", 6)
    # 3.9 TB at 185 MB/s net: 5.8 hours, about 72 dollars, twice as often.
    assert nvme.rotation_seconds / 3600 == pytest.approx(5.92, abs=0.01)
    assert nvme.rotation_usd == pytest.approx(Decimal("72.3"), abs=Decimal("0.1"))
    assert nvme.monthly_usd(6) - nvme.fixed_usd == 12 * nvme.rotation_usd


def test_at_the_break_even_both_designs_cost_the_same() -> None:
    # Volumes three quarters empty make gp3 dear.
    comparison = compare(replace(BROKERS, volume_gib=30_000), BOOK)
    nvme, at = comparison.nvme, comparison.break_even_rotations
    assert nvme is not None
    assert at is not None
    assert at > 0
    assert float(comparison.ebs.monthly_usd(at)) == pytest.approx(float(nvme.monthly_usd(at)))
    assert comparison.ebs.monthly_usd(at + 1) < nvme.monthly_usd(at + 1)


def test_a_local_disk_at_its_break_even_fill_costs_what_gp3_costs_for_the_same_bytes() -> None:
    ebs = economics.Design(
        name=economics.EBS,
        instance_type="r7g.2xlarge",
        brokers=1,
        instances_usd=730 * BOOK.instance_hour("r7g.2xlarge").usd,
        storage_usd=Decimal(0),
        rotation_usd=Decimal(0),
        rotation_seconds=0,
        limited_by="",
        fill=1,
    )
    nvme = replace(
        ebs,
        instance_type="i3en.2xlarge",
        instances_usd=730 * BOOK.instance_hour("i3en.2xlarge").usd,
    )
    # (0.904 - 0.4284) x 730 dollars over 4,657 GiB at 0.08.
    assert economics.break_even_fill(ebs, nvme, BOOK) == pytest.approx(0.932, abs=0.001)
    # A volume half full makes every stored GiB twice as dear.
    half = replace(ebs, fill=0.5)
    assert economics.break_even_fill(half, nvme, BOOK) == pytest.approx(0.466, abs=0.001)


def test_a_planned_rotation_in_place_copies_only_what_was_missed() -> None:
    assert compare(BROKERS, BOOK).in_place is None
    every = compare(replace(BROKERS, planned_per_month=6), BOOK)
    assert every.in_place is not None
    assert every.nvme is not None
    # Nothing crosses a zone that replication would not have brought; 15 MB/s missed for 210 s come
    # at 185 MB/s net.
    assert every.in_place.rotation_usd == 0
    assert every.in_place.rotation_seconds == pytest.approx(227, abs=1)
    assert every.in_place.fixed_usd == every.nvme.fixed_usd
    half = compare(replace(BROKERS, planned_per_month=3), BOOK)
    assert half.in_place.rotation_usd == every.nvme.rotation_usd / 2
    assert half.in_place.rotation_seconds == pytest.approx(
        (every.in_place.rotation_seconds + every.nvme.rotation_seconds) / 2
    )


def test_planned_rotations_in_place_change_which_design_is_the_cheaper_one() -> None:
    # Volumes three quarters empty make gp3 dear, and copying makes the disks dearer still.
    brokers = replace(BROKERS, volume_gib=30_000, rotations_per_month=60)
    assert compare(brokers, BOOK).cheaper.name == economics.EBS
    assert compare(replace(brokers, planned_per_month=60), BOOK).cheaper.name == economics.IN_PLACE


def test_more_planned_rotations_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"planned_per_month is 7: more than all rotations, 6"):
        replace(BROKERS, planned_per_month=7)


def test_a_broker_that_never_catches_up_is_not_recommended() -> None:
    slow = replace(BROKERS, seen_bytes_per_s=5 * MB, volume_gib=60_000)
    comparison = compare(slow, BOOK)
    assert math.isinf(comparison.nvme.rotation_seconds)
    assert comparison.cheaper is comparison.ebs


def test_a_book_without_such_a_type_leaves_nothing_to_compare() -> None:
    kept = {k: p for k, p in BOOK.prices.items() if ":i" not in k}
    comparison = compare(BROKERS, replace(BOOK, prices=kept))
    assert comparison.nvme is None
    assert comparison.cheaper is comparison.ebs


def test_an_unknown_type_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"u7i\.metal is not in core/instance_rates\.json"):
        compare(replace(BROKERS, instance_type="u7i.metal"), BOOK)


def test_impossible_figures_are_each_named() -> None:
    with pytest.raises(InvalidInput, match="number is 0") as caught:
        replace(BROKERS, number=0, held_bytes=-1.0)
    assert len(caught.value.problems) == 2


@given(
    rotations=st.floats(0, 100),
    held=st.floats(0, 5e13),
    append=st.floats(0, 1e8),
    volume=st.integers(1, 60_000),
)
def test_more_rotations_never_make_local_disks_better(
    rotations: float, held: float, append: float, volume: int
) -> None:
    brokers = replace(
        BROKERS, held_bytes=held, append_bytes_per_s=append, volume_gib=volume,
        rotations_per_month=rotations
    )  # fmt: skip
    comparison = compare(brokers, BOOK)
    nvme = comparison.nvme
    gap = comparison.ebs.monthly_usd(rotations) - nvme.monthly_usd(rotations)
    later = comparison.ebs.monthly_usd(rotations + 1) - nvme.monthly_usd(rotations + 1)
    assert later <= gap
    # The brokers hold what they held, on disks no fuller than allowed.
    assert nvme.fill <= economics.FILL_LIMIT + 1e-9
    assert nvme.brokers % brokers.zones == 0


def test_every_priced_type_has_its_rates_and_its_limits() -> None:
    prefix = f"{pricing.INSTANCE_HOUR}:"
    priced = {item.removeprefix(prefix) for item in BOOK.prices if item.startswith(prefix)}
    assert priced == pricing.table().keys()
    assert priced <= instances.table().types.keys()


def test_a_straight_line_goes_on_and_leaves_no_doubt() -> None:
    told = forecast([(x, 2.0 * x + 1) for x in range(6)], 10)
    assert (told.expected, told.slope) == (pytest.approx(21), pytest.approx(2))
    assert told.high - told.low == pytest.approx(0, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=FEWEST_POINTS, max_size=60), st.floats(-50, 100))
def test_the_line_is_that_of_least_squares(values: list[float], at: float) -> None:
    points = list(enumerate(values))
    told = forecast(points, at)
    line = linear_regression([x for x, _ in points], values)
    assert told is not None
    expected = line.intercept + line.slope * at
    assert told.expected == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert told.low <= told.expected <= told.high


def test_too_few_points_or_a_single_day_foretell_nothing() -> None:
    assert forecast([(x, 1.0) for x in range(FEWEST_POINTS - 1)], 9) is None
    assert forecast([(1, 1.0)] * 9, 9) is None


def test_the_interval_holds_what_follows_as_often_as_it_says() -> None:
    chance = random.Random(7)  # noqa: S311 - a test's own series
    hits = 0
    for _ in range(2000):
        points = [(x, 100 + 3 * x + chance.gauss(0, 5)) for x in range(12)]
        told = forecast(points[:-1], 11)
        assert told is not None
        hits += told.low <= points[-1][1] <= told.high
    assert hits / 2000 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("confidence", "freedom", "table"),
    [(0.8, 3, 1.638), (0.8, 10, 1.372), (0.9, 5, 2.015), (0.95, 30, 2.042)],
)
def test_students_quantiles_are_the_tables(confidence: float, freedom: int, table: float) -> None:
    assert student_t(confidence, freedom) == pytest.approx(table, rel=0.01)


def test_a_backtest_counts_misses_and_hits() -> None:
    steady = backtest([(x, 50.0) for x in range(10)])
    assert (steady.forecasts, steady.mape, steady.coverage) == (5, 0, 1)
    jump = backtest([*((x, 50.0) for x in range(9)), (9, 100.0)])
    assert jump.mape == pytest.approx(0.1)
    assert jump.coverage == pytest.approx(0.8)
    assert backtest([(0, 1.0)]) is None


MEGABYTE = 1e6
rates = st.floats(0.1 * MEGABYTE, 500 * MEGABYTE)
outages = st.floats(1, 3_600)
retentions = st.floats(7_200, 1_000_000)
STEPS = 2_000


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Draw flows that end: replication brings in at least a tenth more than is appended."""
    appended = draw(rates)
    return Flow(
        append_bytes_per_s=appended, replication_bytes_per_s=appended * draw(st.floats(1.1, 20))
    )


def ended(way: CatchUp | Divergence) -> CatchUp:
    assert isinstance(way, CatchUp), way
    return way


def step_by_step(flow: Flow, behind: float, step: float) -> tuple[float, float]:
    """Let a clock run: each step appends, then copies what the rate allows; return when, how much.

    The plain restatement: no formula of the model is in it.
    """
    clock = copied = 0.0
    while behind > 0:
        rate = flow.replication_bytes_per_s
        behind += flow.append_bytes_per_s * step
        behind -= rate * step
        copied += rate * step
        clock += step
    return clock, copied


@given(flows(), st.floats(1 * MEGABYTE, 1e12))
def test_the_model_is_what_a_clock_in_small_steps_comes_to(flow: Flow, held: float) -> None:
    way = ended(after_loss(flow, outage_seconds=0, held_bytes=held))
    step = way.seconds / STEPS
    seconds, copied = step_by_step(flow, held, step)
    fastest = flow.replication_bytes_per_s
    slowest_gain = flow.replication_bytes_per_s - flow.append_bytes_per_s
    slack = step * (1 + fastest / slowest_gain)
    assert abs(seconds - way.seconds) <= slack
    assert abs(copied - way.gross_bytes) <= fastest * slack


@given(flows(), outages, retentions)
def test_a_kept_volume_is_never_the_worse(flow: Flow, outage: float, retention: float) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    kept = ended(after_outage(flow, outage_seconds=outage, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    assert kept.seconds <= empty.seconds
    assert kept.gross_bytes <= empty.gross_bytes


@given(rates, st.floats(1.1, 20), outages, retentions)
def test_times_and_bytes_are_to_each_other_as_retention_to_outage(
    appended: float, headroom: float, outage: float, retention: float
) -> None:
    flow = Flow(append_bytes_per_s=appended, replication_bytes_per_s=appended * headroom)
    held = held_bytes(appended, retention)
    kept = ended(after_outage(flow, outage_seconds=outage, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    ratio = max(1.0, retention / outage)
    assert empty.seconds / kept.seconds == pytest.approx(ratio)
    assert empty.gross_bytes / kept.gross_bytes == pytest.approx(ratio)


@given(flows(), outages, retentions)
def test_what_a_kept_volume_missed_would_have_been_copied_anyway(
    flow: Flow, outage: float, retention: float
) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    assert ended(after_outage(flow, outage_seconds=outage, held_bytes=held)).incremental_bytes == 0


@given(flows(), outages, retentions)
def test_an_empty_volume_costs_all_it_held_but_what_was_late(
    flow: Flow, outage: float, retention: float
) -> None:
    held = held_bytes(flow.append_bytes_per_s, retention)
    way = ended(after_loss(flow, outage_seconds=outage, held_bytes=held))
    as_usual = flow.append_bytes_per_s * (outage + way.seconds)
    assert way.incremental_bytes == pytest.approx(way.gross_bytes - as_usual, rel=1e-6)


@given(rates, st.floats(0, 1), outages)
def test_replication_no_faster_than_what_is_appended_never_ends_and_says_so(
    appended: float, share: float, outage: float
) -> None:
    flow = Flow(
        append_bytes_per_s=appended,
        replication_bytes_per_s=appended * share,
        limited_by="follower.replication.throttled.rate",
    )
    way = after_outage(flow, outage_seconds=outage)
    assert isinstance(way, Divergence)
    assert "follower.replication.throttled.rate" in way.sentence
    assert f"above {appended / MB:.2f} MB/s" in way.sentence


def test_the_worked_example_of_a_production_broker() -> None:
    flow = Flow(append_bytes_per_s=30 * MEGABYTE, replication_bytes_per_s=200 * MEGABYTE)
    held = held_bytes(flow.append_bytes_per_s, 72 * 3_600)
    kept = ended(after_outage(flow, outage_seconds=300, held_bytes=held))
    empty = ended(after_loss(flow, outage_seconds=300, held_bytes=held))
    assert kept.seconds == pytest.approx(53, abs=0.5)
    assert kept.gross_bytes == pytest.approx(10.6e9, rel=0.01)
    assert empty.seconds == pytest.approx(12.7 * 3_600, rel=0.01)


def test_an_outage_beyond_retention_is_a_lost_volume_with_less_to_copy() -> None:
    flow = Flow(append_bytes_per_s=1 * MEGABYTE, replication_bytes_per_s=5 * MEGABYTE)
    held = held_bytes(flow.append_bytes_per_s, 600)
    kept = ended(after_outage(flow, outage_seconds=900, held_bytes=held))
    assert kept == after_loss(flow, outage_seconds=900, held_bytes=held)
    assert kept.incremental_bytes == -300 * MEGABYTE


def test_nothing_appended_while_away_is_no_way_at_all() -> None:
    flow = Flow(append_bytes_per_s=0, replication_bytes_per_s=0)
    assert ended(after_outage(flow, outage_seconds=300)).seconds == 0


def test_a_cap_in_bytes_holds_less_than_retention_would() -> None:
    assert held_bytes(10 * MEGABYTE, 3_600, cap_bytes=5e9) == 5e9
    assert held_bytes(1 * MEGABYTE, 3_600, cap_bytes=5e9) == 3.6e9


@every_case(
    ("ask", "named"),
    [
        pytest.param(lambda: Flow(append_bytes_per_s=-1, replication_bytes_per_s=1),
            "append_bytes_per_s is -1", id="negative flow"),
        pytest.param(lambda: Flow(append_bytes_per_s=1, replication_bytes_per_s=math.nan),
            "replication_bytes_per_s is nan", id="no number"),
        pytest.param(lambda: held_bytes(1, 1, cap_bytes=-1), "cap_bytes is -1", id="negative cap"),
        pytest.param(lambda: slowest({}), "No limit of replication is known", id="no limit"),
        pytest.param(
            lambda: after_outage(
                Flow(append_bytes_per_s=1, replication_bytes_per_s=2), outage_seconds=-1),
            "outage_seconds is -1", id="negative outage"),
    ],
)  # fmt: skip
def test_a_figure_that_cannot_be_is_refused_by_name(ask: object, named: str) -> None:
    assert callable(ask)
    with pytest.raises(InvalidInput, match=named):
        ask()
