"""Which month a report is about where nobody says, and which others it names."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import Row

from core.ground.errors import InvalidInput
from spark import schemas
from spark.jobs.chosen_month import compared_months, month_to_report, not_compared, others
from spark.months import first_day_after, month_before
from tests.unit.spark import month

TODAY = date(2026, 11, 23)


def of(**costs: str) -> dict[str, Row]:
    """Return what tables note of months: cost, and currency where one is written behind it."""
    noted = {period: (cost.partition(" ")) for period, cost in costs.items()}
    return {
        period: month.row(
            schemas.DELIVERIES,
            billing_period=period,
            billed_cost=Decimal(cost),
            currency=currency or None,
        )
        for period, (cost, _, currency) in noted.items()
    }


AUTUMN = of(**{"2026-09": "900", "2026-10": "905.5", "2026-11": "400"})


def test_it_is_the_last_month_that_is_over() -> None:
    assert month_to_report(None, AUTUMN, TODAY) == "2026-10"
    assert month_to_report(None, of(**{"2026-11": "3"}), TODAY) == "2026-11"


def test_the_days_that_an_export_spills_into_the_next_month_are_no_whole_one() -> None:
    assert month_to_report(None, of(**{"2024-09": "20.05", "2024-10": "0.24"}), TODAY) == "2024-09"


def test_of_months_that_all_gave_back_it_is_the_last_one() -> None:
    given = of(**{"2026-08": "-40", "2026-09": "-50", "2026-10": "-90", "2026-11": "-1"})
    assert month_to_report(None, given, TODAY) == "2026-10"


def test_a_month_that_is_asked_for_and_not_there_is_refused_with_those_that_are() -> None:
    assert month_to_report("2026-09", AUTUMN, TODAY) == "2026-09"
    with pytest.raises(InvalidInput, match="no bill of 2026-08, only of 2026-09, 2026-10, 2026-11"):
        month_to_report("2026-08", AUTUMN, TODAY)
    with pytest.raises(InvalidInput, match="name one with --bill"):
        month_to_report(None, of(unknown="1"), TODAY)


def test_the_others_are_named_with_what_they_cost() -> None:
    assert others("2026-10", AUTUMN, "USD") == [
        (
            "This is 2026-10; there is also 2026-09 (900.00 USD) and 2026-11 (400.00 USD): name "
            "one with --month."
        )
    ]
    assert others("2026-10", of(**{"2026-10": "1"}), "USD") == []


def test_a_year_ends_in_december() -> None:
    assert first_day_after("2026-12") == date(2027, 1, 1)
    assert month_before("2027-01") == "2026-12"


def test_months_of_another_currency_are_neither_chosen_from_nor_compared_with() -> None:
    moved = of(**{"2026-09": "70000 INR", "2026-10": "905.5 USD", "2026-11": "400 USD"})
    assert month_to_report(None, moved, TODAY) == "2026-10"
    assert compared_months("2026-10", moved) == ["2026-10"]
    assert compared_months("2026-11", moved) == ["2026-10", "2026-11"]
    assert not_compared("2026-11", moved) == []
    assert not_compared("2026-10", moved) == [
        "2026-09 is billed in INR: nothing of it is compared with 2026-10, in USD."
    ]
    assert "2026-09 (70,000.00 INR)" in others("2026-10", moved, "USD")[0]


def test_a_month_whose_currency_was_not_noted_is_compared() -> None:
    assert compared_months("2026-10", of(**{"2026-09": "9", "2026-10": "9 USD"})) == [
        "2026-09",
        "2026-10",
    ]
