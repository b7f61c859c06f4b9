"""What a report says of days: as many of both months, or how many of each, and never more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from spark.report import document, story
from spark.report.evidence import DayCost, Evidence, month_comparison
from spark.report.sections.days import changes_section, unit_section
from spark.rules.meters import Attribution, Easy
from spark.transforms.grain import EasySaving
from tests.unit.spark import month

CLOSED = date(2028, 3, 20)


def days(first: date, count: int, each: str = "10") -> list[DayCost]:
    return [DayCost(first + timedelta(days=n), "other", Decimal(each)) for n in range(count)]


def evidence(all_days: list[DayCost], period: str, today: date, **more: Any) -> Evidence:
    report = month.a_report(month.a_line(billing_period=period), today=today)
    return Evidence(report=report, all_days=all_days, month=period, **more)


@pytest.mark.parametrize(
    ("period", "before", "own", "said"),
    [
        (
            "2028-02",
            31,
            29,
            f"{document.MINUS}20.00 USD ({document.MINUS}6.5%) to last month, 29 days against 31",
        ),
        ("2028-03", 29, 31, "+20.00 USD (+6.9%) to last month, 31 days against 29"),
        ("2028-08", 31, 31, "+0 USD (+0.0%) to last month, same 31 days"),
    ],
)
def test_whole_months_are_compared_by_the_days_that_they_have(
    period: str, before: int, own: int, said: str
) -> None:
    first = date.fromisoformat(f"{period}-01")
    every = days(first - timedelta(days=before), before + own)
    told = story.report_document(evidence(every, period, first + timedelta(days=60)))
    assert told.total.against == said
    section = told.section("changes")
    assert section is not None
    text = " ".join((*section.sentences, *(table.title for table in section.tables)))
    if before == own:
        assert f"The first {own} days of the month cost" in text
    else:
        assert f"The {own} days of the month cost" in text
        assert f"The {before} days of last month cost" in text
        assert "The cost per day changed by +0.0%." in text
        assert "same days" not in text
        assert "of both months" not in text


COMPARED: Mapping[str, tuple[list[DayCost], str, date, tuple[int, int]]] = {
    # Of twenty days on the bill the last is not complete.
    "half a month with half a month": (
        days(date(2026, 10, 1), 51),
        "2026-11",
        date(2026, 11, 21),
        (19, 19),
    ),
    "never more days than the one before has": (
        days(date(2027, 2, 1), 28) + days(date(2027, 3, 1), 31),
        "2027-03",
        date(2027, 4, 1),
        (30, 28),
    ),
    "a month that is over is whole though Kafka's last days cost nothing": (
        [
            *days(date(2026, 9, 1), 30),
            *days(date(2026, 10, 1), 25),
            dataclasses.replace(days(date(2026, 10, 31), 1)[0], is_kafkas=False),
        ],
        "2026-10",
        date(2026, 12, 20),
        (31, 30),
    ),
    # A savings plan's recurring fee stands on every day of its month from the first on.
    "a fee of days to come makes no day complete": (
        days(date(2026, 10, 1), 61),
        "2026-11",
        date(2026, 11, 20),
        (19, 19),
    ),
}


@pytest.mark.parametrize("case", COMPARED)
def test_as_many_days_are_compared_as_are_complete(case: str) -> None:
    every, period, today, counts = COMPARED[case]
    comparison = month_comparison(evidence(every, period, today))
    assert comparison is not None
    assert (comparison.days, comparison.days_before) == counts
    own = [e for e in every if e.is_kafkas and f"{e.day:%Y-%m}" == period]
    earlier = [e for e in every if f"{e.day:%Y-%m}" < period]
    assert comparison.totals == tuple(
        sum(e.billed for e in chosen if e.day.day <= most)
        for chosen, most in ((earlier, counts[1]), (own, counts[0]))
    )


def test_a_bill_that_ends_before_its_month_did_is_compared_as_far_as_it_goes_and_says_so() -> None:
    every = days(date(2026, 10, 1), 31) + days(date(2026, 11, 1), 20)
    told = story.report_document(evidence(every, "2026-11", date(2027, 1, 20)))
    assert told.total.against == "+0 USD (+0.0%) to last month, same 19 days"
    assert story.ENDS_EARLY.format("2026-11-20") in told.story
    of_others = dataclasses.replace(days(date(2026, 11, 30), 1)[0], is_kafkas=False)
    for known in (
        evidence(every, "2026-11", date(2026, 11, 22)),
        evidence([*every, of_others], "2026-11", date(2027, 1, 20)),
    ):
        assert "The last charge on this bill" not in " ".join(story.report_document(known).story)


def test_a_month_has_as_many_days_so_far_as_have_come() -> None:
    every = days(date(2026, 10, 1), 61)
    assert evidence(every, "2026-11", date(2026, 11, 20)).days_so_far == 20
    assert evidence(every, "2026-11", date(2026, 10, 20)).days_so_far == 30


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (5, "An unusual day needs more than 5 days to compare with."),
        (6, "No day is unusual."),
    ],
)
def test_of_too_few_days_none_is_said_to_stand_out(count: int, said: str) -> None:
    section = changes_section(evidence(days(date(2028, 2, 1), count), "2028-02", CLOSED))
    assert section is not None
    assert section.sentences[-1] == said


def test_nothing_is_said_of_days_that_nobody_looked_at() -> None:
    nobodys = [dataclasses.replace(day, is_kafkas=False) for day in days(date(2028, 2, 1), 20)]
    one = evidence(nobodys, "2028-02", CLOSED)
    line = month.a_line(attribution=Attribution.NOBODY, cluster=None, owner="unattributed")
    unknown = month.a_report(line, today=CLOSED)
    section = changes_section(dataclasses.replace(one, report=unknown))
    assert section is not None
    assert section.sentences == ("The report looks for unusual days in Kafka's charges only.",)


def test_unit_costs_are_of_complete_days_and_say_of_which() -> None:
    rows = [month.a_day_of_units(date(2026, 11, n), 10.0, complete=n < 4) for n in range(1, 5)]
    section = unit_section(month.evidence(unit=rows))
    assert section is not None
    ((name, *_, paid),) = (row.cells for row in section.tables[0].rows)
    assert name.note == "3 complete days, 2026-11-01 to 2026-11-03"
    assert paid.value == "30"


def test_a_bill_by_the_month_has_no_days() -> None:
    every = [DayCost(date(2026, n, 1), "other", Decimal(300)) for n in (10, 11)]
    rows = [month.a_day_of_units(day.day, 300.0) for day in every]
    one = evidence(every, "2026-11", date(2026, 11, 20), unit=rows)
    assert unit_section(one) is None
    assert story.BY_THE_MONTH in story.report_document(one).story
    # On the first of a month that is all there is of any bill.
    first = evidence(every[1:], "2026-11", date(2026, 11, 2), unit=rows)
    assert story.BY_THE_MONTH not in story.report_document(first).story


@pytest.mark.parametrize(
    ("today", "saves", "when"),
    [
        (date(2026, 11, 16), Decimal(36), "in 15 days"),
        (date(2026, 12, 20), Decimal(18), "in this month"),
    ],
)
def test_what_an_open_month_would_save_is_a_months(today: date, saves: Decimal, when: str) -> None:
    easy = (EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=True, usd=Decimal(18)),)
    (action,) = story.chosen_actions(
        evidence(days(date(2026, 11, 1), 15), "2026-11", today, easy=easy)
    )
    assert action.usd_per_month == saves
    assert f"18.00 USD for them {when}." in action.why


def test_what_was_counted_on_some_days_is_a_months_by_those_days() -> None:
    counted = [
        month.a_flow("consume", "4.00", "4.00", day=date(2026, 11, n), certainty="shared")
        for n in (3, 4)
    ]
    other = [
        month.a_flow("load balancer", "9.00", day=date(2026, 11, n), certainty="billed")
        for n in range(1, 21)
    ]
    bare = month.evidence(transfer=(*counted, *other), storage=(), economics=(), anomalies=())
    (action,) = story.chosen_actions(bare)
    assert action.usd_per_month == Decimal(120)
    assert "for 8.00 USD in 2 counted days" in action.why


def test_a_forecast_says_after_which_day_it_begins() -> None:
    rows = [month.a_day_of_units(date(2026, 11, n), 10.0 + n % 2) for n in range(1, 15)]
    section = unit_section(month.evidence(unit=rows))
    assert section is not None
    assert "the forecast for the 30 days after 2026-11-14 is" in " ".join(section.sentences)
