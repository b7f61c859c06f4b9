"""What a larger bill would take is reckoned from two that were measured, and from nothing else."""

import pytest

from bench.on_paper import Fleet, MeasuredBill, estimate, measured_of

SMALL, LARGE = (
    MeasuredBill(10_000_000, 10.0, 14.0, 20.0),
    MeasuredBill(30_000_000, 20.0, 34.0, 20.0),
)
FLEET = Fleet(workers=11, vcpu=2, gb=8, usd_per_vcpu_hour=0.05, usd_per_gb_hour=0.0125)


def test_a_line_through_two_sizes_is_followed_and_workers_share_the_lines() -> None:
    # A microsecond of a processor a line, four seconds a run; 34 of 40 core seconds were busy.
    found = estimate(SMALL, LARGE, 1_020_000_000, FLEET, cores=2)
    assert found.processor_hours == pytest.approx((4 + 1020) / 3600)
    seconds = 20 + 4 + 1020 / (10 * 2 * 0.85)
    assert found.minutes == pytest.approx(seconds / 60)
    assert found.worker_hours == pytest.approx(11 * seconds / 3600)
    assert found.usd == pytest.approx(found.worker_hours * 0.2)


def test_a_worker_is_billed_for_a_minute_at_least() -> None:
    assert estimate(SMALL, LARGE, 1_000, FLEET, cores=2).minutes == 1.0


@pytest.mark.parametrize("large", [SMALL, MeasuredBill(30_000_000, 20.0, 14.0, 20.0)])
def test_two_bills_that_make_no_line_say_nothing(large: MeasuredBill) -> None:
    with pytest.raises(ValueError, match="say nothing of a larger one"):
        estimate(SMALL, large, 1_000_000_000, FLEET, cores=2)


def test_the_benchs_own_record_is_read_of_spark_and_of_lines_that_repeat() -> None:
    row = {"engine": "spark", "rows": 30, "warm_s": 2.0, "warm_cpu_s": 3.0, "start_s": 4.0}
    rows = [
        {**row, "shape": "repeating", "cold_s": 7.0},
        {**row, "shape": "repeating", "cold_s": 7.0, "rows": 10},
        {**row, "shape": "distinct", "cold_s": 7.0},
        {**row, "shape": "repeating", "cold_s": 7.0, "engine": "duckdb"},
        {"engine": "report", "report_s": 1.0},
        {"engine": "spark-submit", "one_shot_s": 1.0, "rows_million": 10},
    ]
    assert measured_of(rows) == [MeasuredBill(10, 2.0, 3.0, 9.0), MeasuredBill(30, 2.0, 3.0, 9.0)]
