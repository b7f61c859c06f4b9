"""The report's sections: as many days of both months and never more, units, and Kafka's nodes."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from core.cost.pricing import total
from spark.report import story
from spark.report.document import MINUS, Section
from spark.report.evidence import DayCost, Evidence, month_comparison
from spark.report.sections.bill import nodes_section
from spark.report.sections.days import changes_section, unit_section
from spark.rules.meters import Easy
from spark.transforms.grain import EasySaving
from tests.every_case import every_case
from tests.unit.spark import month
from tests.unit.spark.month import NODES, NOTHING

CLOSED = date(2028, 3, 20)


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawings empty: they are most of a story's time."""
    for kind in ("band", "bars", "days", "lines"):
        monkeypatch.setattr(f"spark.report.plot.{kind}", lambda *_, **__: "<svg></svg>")


def days(first: date, count: int, **more: Any) -> list[DayCost]:
    """Return days that cost ten dollars each."""
    return [DayCost(first + timedelta(n), "other", Decimal(10), **more) for n in range(count)]


def evidence(all_days: list[DayCost], period: str, today: date, **more: Any) -> Evidence:
    report = month.a_report(month.a_line(billing_period=period), today=today)
    return Evidence(report=report, all_days=all_days, month=period, **more)


def there(section: Section | None) -> Section:
    assert section is not None
    return section


# --- Two months, day by day.


@every_case(
    ("period", "before", "own", "said"),
    [
        ("2028-02", 31, 29, f"{MINUS}20.00 USD ({MINUS}6.5%) to last month, 29 days against 31"),
        ("2028-03", 29, 31, "+20.00 USD (+6.9%) to last month, 31 days against 29"),
        ("2028-08", 31, 31, "+0 USD (+0.0%) to last month, same 31 days"),
    ],
)
def test_whole_months_are_compared_by_the_days_that_they_have(
    period: str, before: int, own: int, said: str
) -> None:
    first = date.fromisoformat(f"{period}-01")
    both = days(first - timedelta(before), before + own)
    told = story.report_document(evidence(both, period, first + timedelta(60)))
    assert told.total.against == said
    section = there(told.section("changes"))
    text = " ".join((*section.sentences, *(table.title for table in section.tables)))
    if before == own:
        assert f"The first {own} days of the month cost" in text
        return
    assert f"The {own} days of the month cost" in text
    assert f"The {before} days of last month cost" in text
    assert "The cost per day changed by +0.0%." in text
    assert "same days" not in text
    assert "of both months" not in text


SPRING = [*days(date(2027, 2, 1), 28), *days(date(2027, 3, 1), 31)]
LAST_DAYS_FREE = [
    *days(date(2026, 9, 1), 30),
    *days(date(2026, 10, 1), 25),
    *days(date(2026, 10, 31), 1, is_kafkas=False),
]
# The days of a bill, its month, today, and how many days of both months are compared.
COMPARED: Mapping[str, tuple[list[DayCost], str, date, tuple[int, int]]] = {
    # Of twenty days on the bill the last is not complete.
    "half a month with half a month":
        (days(date(2026, 10, 1), 51), "2026-11", date(2026, 11, 21), (19, 19)),
    "never more days than the one before has": (SPRING, "2027-03", date(2027, 4, 1), (30, 28)),
    "a month that is over is whole though Kafka's last days cost nothing":
        (LAST_DAYS_FREE, "2026-10", date(2026, 12, 20), (31, 30)),
    # A savings plan's recurring fee stands on every day of its month from the first on.
    "a fee of days to come makes no day complete":
        (days(date(2026, 10, 1), 61), "2026-11", date(2026, 11, 20), (19, 19)),
}  # fmt: skip


@every_case(("every", "period", "today", "counts"), COMPARED.values(), ids=COMPARED)
def test_as_many_days_are_compared_as_are_complete(
    every: list[DayCost], period: str, today: date, counts: tuple[int, int]
) -> None:
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
    every = days(date(2026, 10, 1), 51)
    told = story.report_document(evidence(every, "2026-11", date(2027, 1, 20)))
    assert told.total.against == "+0 USD (+0.0%) to last month, same 19 days"
    assert story.ENDS_EARLY.format("2026-11-20") in told.story
    of_others = days(date(2026, 11, 30), 1, is_kafkas=False)
    for known in (
        evidence(every, "2026-11", date(2026, 11, 22)),
        evidence([*every, *of_others], "2026-11", date(2027, 1, 20)),
    ):
        assert "The last charge on this bill" not in " ".join(story.report_document(known).story)


def test_a_month_has_as_many_days_so_far_as_have_come() -> None:
    every = days(date(2026, 10, 1), 61)
    assert evidence(every, "2026-11", date(2026, 11, 20)).days_so_far == 20
    assert evidence(every, "2026-11", date(2026, 10, 20)).days_so_far == 30


def test_an_unusual_day_is_looked_for_among_enough_days_of_kafkas() -> None:
    for count, said in (
        (5, "An unusual day needs more than 5 days to compare with."),
        (6, "No day is unusual."),
    ):
        one = evidence(days(date(2028, 2, 1), count), "2028-02", CLOSED)
        assert there(changes_section(one)).sentences[-1] == said
    strangers = days(date(2028, 2, 1), 20, is_kafkas=False)
    unknown = month.a_report(month.nobodys(billing_period="2028-02"), today=CLOSED)
    one = dataclasses.replace(evidence(strangers, "2028-02", CLOSED), report=unknown)
    said = "The report looks for unusual days in Kafka's charges only."
    assert there(changes_section(one)).sentences == (said,)


def test_a_bill_by_the_month_has_no_days() -> None:
    every = [DayCost(date(2026, n, 1), "other", Decimal(300)) for n in (10, 11)]
    rows = [month.a_day_of_units(day.day, 300.0) for day in every]
    one = evidence(every, "2026-11", date(2026, 11, 20), unit=rows)
    assert unit_section(one) is None
    assert story.BY_THE_MONTH in story.report_document(one).story
    # On the first of a month that is all there is of any bill.
    first = evidence(every[1:], "2026-11", date(2026, 11, 2), unit=rows)
    assert story.BY_THE_MONTH not in story.report_document(first).story


# --- What some days make of a month.


def test_unit_costs_are_of_complete_days_and_say_of_which() -> None:
    rows = [month.a_day_of_units(date(2026, 11, n), 10.0, complete=n < 4) for n in range(1, 5)]
    section = there(unit_section(month.evidence(unit=rows)))
    ((name, *_, paid),) = (row.cells for row in section.tables[0].rows)
    assert name.note == "3 complete days, 2026-11-01 to 2026-11-03"
    assert paid.value == "30"


def test_a_forecast_says_after_which_day_it_begins() -> None:
    rows = [month.a_day_of_units(date(2026, 11, n), 10.0 + n % 2) for n in range(1, 15)]
    section = there(unit_section(month.evidence(unit=rows)))
    assert "the forecast for the 30 days after 2026-11-14 is" in " ".join(section.sentences)


@every_case(
    ("today", "saves", "when"),
    [(date(2026, 11, 16), 36, "in 15 days"), (date(2026, 12, 20), 18, "in this month")],
)
def test_what_an_open_month_would_save_is_a_months(today: date, saves: int, when: str) -> None:
    easy = (EasySaving(Easy.EXTENDED_SUPPORT, is_kafkas=True, usd=Decimal(18)),)
    known = evidence(days(date(2026, 11, 1), 15), "2026-11", today, easy=easy)
    (action,) = story.chosen_actions(known)
    assert action.usd_per_month == saves
    assert f"18.00 USD for them {when}." in action.why


def test_what_was_counted_on_some_days_is_a_months_by_those_days() -> None:
    november = [date(2026, 11, n) for n in range(1, 21)]
    counted = [month.a_flow("consume", "4.00", "4.00", day=day) for day in november[2:4]]
    other = [month.a_flow("load balancer", "9.00", day=day) for day in november]
    bare = month.evidence(**{**NOTHING, "transfer": (*counted, *other)})
    (action,) = story.chosen_actions(bare)
    assert action.usd_per_month == Decimal(120)
    assert "for 8.00 USD in 2 counted days" in action.why


# --- Kafka's nodes.


def nodes(shares: Sequence[Any]) -> Section:
    return there(nodes_section(month.evidence(nodes=shares)))


def test_kafka_comes_first_and_the_foot_is_what_the_nodes_cost() -> None:
    told = nodes(NODES)
    (table,) = told.tables
    names = [row.cells[0].text for row in table.rows]
    assert names == ["Kafka", "agent", "aws-node", "report-5d8f"]
    assert table.rows[1].cells[0].note == "DaemonSet, 3 pods in observability"
    together = [Decimal(row.cells[3].value or 0) for row in table.rows]
    assert Decimal(table.foot[3].value or 0) == total(together) == Decimal("728.00")
    assert told.sentences == (
        "Kafka's nodes cost 728.00 USD, amortised.",
        "Kafka's pods used 80.8% of this cost.",
        "Daemon sets and other pods used 3.2%.",
        "16.1% was idle.",
    )


def test_what_no_split_line_explains_is_said_and_in_the_foot() -> None:
    unknown = {"kind": "not allocated", "namespace": None, "workload": None, "workload_type": None}
    told = nodes((*NODES, month.a_node_share("0", "50.00", **unknown)))
    assert told.sentences[-1].startswith("50.00 USD has no split line")
    assert told.tables[0].rows[-1].cells[0].text == "No split line"
    assert Decimal(told.tables[0].foot[3].value or 0) == Decimal("778.00")


def test_two_clusters_on_one_bill_are_told_apart() -> None:
    rows = nodes((*NODES, month.a_node_share("1", "0", cluster="pier"))).tables[0].rows
    assert {row.cells[0].note.split(",")[0] for row in rows} == {"harbour", "pier"}
    assert len({row.key for row in rows}) == len(rows)


def test_a_bill_without_split_lines_says_how_to_get_them_where_it_has_kafkas_nodes() -> None:
    told = nodes(())
    assert "INCLUDE_SPLIT_COST_ALLOCATION_DATA = TRUE" in " ".join(told.sentences)
    assert told.tables == ()
    assert nodes_section(month.evidence(nodes=(), report=month.a_report())) is None
