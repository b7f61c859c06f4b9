"""Which months are made again, which one a report is about, and what is said of a restated one."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from core.ground.errors import InvalidInput
from spark import tables
from spark.jobs import chosen_months as chosen
from spark.months import (
    Refresh,
    final_of,
    first_day_after,
    last_complete_day,
    made_by,
    month_before,
    settled_on,
    unsettled,
)
from spark.rows import Found
from spark.tag_keys import OURS, KafkaTags
from tests.every_case import every_case
from tests.unit.spark import month

FINAL = date(2026, 11, 15)
TEAM = KafkaTags("team", "streaming", "kafka-pool")
KNOWN = KafkaTags(name="harbour", learnt_on=(date(2026, 11, 1), FINAL))


def noted(**fields: object) -> Found:
    """Return what DELIVERIES noted of a month."""
    return month.row(tables.DELIVERIES.schema, **fields)


@every_case(
    ("period", "final", "after", "before"),
    [
        ("2026-10", FINAL, date(2026, 11, 1), "2026-09"),
        ("2026-12", date(2027, 1, 15), date(2027, 1, 1), "2026-11"),
        ("2027-01", date(2027, 2, 15), date(2027, 2, 1), "2026-12"),
    ],
)
def test_a_month_is_final_two_weeks_after_it_closed(
    period: str, final: date, after: date, before: str
) -> None:
    assert settled_on(period) == final
    assert (first_day_after(period), month_before(period)) == (after, before)


@every_case(
    ("last", "read_on", "complete"),
    [
        # The last of a final month, of one that may still change, of one read nobody knows when.
        (date(2026, 11, 30), date(2026, 12, 15), date(2026, 11, 30)),
        (date(2026, 11, 30), date(2026, 12, 14), date(2026, 11, 29)),
        (date(2026, 11, 30), None, date(2026, 11, 29)),
        # In a leap year, and of a year.
        (date(2028, 2, 28), date(2028, 4, 1), date(2028, 2, 27)),
        (date(2028, 2, 29), date(2028, 4, 1), date(2028, 2, 29)),
        (date(2026, 12, 31), date(2027, 1, 15), date(2026, 12, 31)),
        # A final month's bill that ends before it, an open month, a fee of a day to come.
        (date(2026, 11, 20), date(2027, 1, 20), date(2026, 11, 19)),
        (date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 19)),
        (date(2026, 11, 30), date(2026, 11, 21), date(2026, 11, 20)),
    ],
)
def test_a_bills_last_day_is_complete_where_its_month_was_final_when_it_was_read(
    last: date, read_on: date | None, complete: date
) -> None:
    assert last_complete_day(last, read_on) == complete


# --- Which months are made again.


def held(execution: str, read_on: date = FINAL, **more: str | None) -> Found:
    return noted(execution=execution, ingested_at=datetime.combine(read_on, time()), **more)


def by_tags(cluster: str | None, pool: str | None) -> Found:
    return held("a", cluster_tag=cluster, pool_tag=pool)


def told_by(words: str | None) -> Found:
    return held("a", told_by=words)


A, B = Refresh("a"), Refresh("b")
ANOTHER = KafkaTags(name="another", learnt_on=KNOWN.learnt_on)
PRINTED = held("a", fingerprint="7f")


@every_case(
    ("held", "kafka", "now", "is_again"),
    [
        # What the tables hold of October: nothing, read before it was final, when it was.
        (None, OURS, A, True),
        (held("a", FINAL - timedelta(days=1)), OURS, A, True),
        (held("a"), OURS, A, False),
        # Delivered again.
        (held("a"), OURS, B, True),
        # By tags, which are asked for again or not.
        (by_tags("team = streaming", "kafka-pool"), TEAM, A, False),
        (by_tags(None, None), TEAM, A, False),
        (by_tags("stillwater:cluster", "kafka-pool"), TEAM, A, True),
        (by_tags("team = streaming", "another"), TEAM, A, True),
        # The same files, other files, files that are gone, files that older tables do not know.
        (PRINTED, OURS, Refresh("a", 1, "7f"), False),
        (PRINTED, OURS, Refresh("a", 1, "80"), True),
        (PRINTED, OURS, Refresh("a", 1, ""), False),
        (held("a"), OURS, Refresh("a", 1, "80"), False),
        # No execution: the same files, and nothing that says so.
        (held("", fingerprint="7f"), OURS, Refresh("", 1, "7f"), False),
        (held(""), OURS, Refresh("", 1, "80"), True),
        # By what the ledger knew; what it learnt since counts for later months.
        (told_by(KNOWN.told_by(FINAL)), KNOWN, A, False),
        (told_by("harbour; instances that its ledger knew: 1"), KNOWN, A, False),
        (told_by(None), KNOWN, A, False),
        (told_by(KafkaTags().told_by(FINAL)), KNOWN, A, True),
        (told_by(KafkaTags(name="harbour").told_by(FINAL)), KNOWN, A, True),
        (told_by(ANOTHER.told_by(FINAL)), KNOWN, A, True),
    ],
)
def test_a_month_is_made_again_until_it_is_held_as_aws_left_it(
    held: Found | None, kafka: KafkaTags, now: Refresh, *, is_again: bool
) -> None:
    there = {} if held is None else {"2026-10": held}
    assert unsettled({"2026-10": now}, there, kafka) == (["2026-10"] if is_again else [])
    # One that is no longer delivered is left as it is.
    assert unsettled({}, there, kafka) == []


@given(st.dates(date(2026, 9, 1), date(2027, 3, 1)), st.integers(1, 80))
def test_a_job_that_runs_every_day_makes_the_open_month_and_at_most_the_one_before_it(
    first: date, days: int
) -> None:
    there: dict[str, Found] = {}
    delivered: dict[str, Refresh] = {}
    for today in (first + timedelta(days=number) for number in range(days)):
        delivered[f"{today:%Y-%m}"] = Refresh("same")
        made = unsettled(delivered, there)
        there |= {period: held("same", today) for period in made}
        assert made[-1] == f"{today:%Y-%m}"
        assert len(made) <= 2
    assert set(there) == set(delivered)


@every_case(
    ("made", "asked", "is_said"),
    [
        (TEAM.asked, TEAM, False),
        (TEAM.asked, OURS, False),
        (None, TEAM, False),
        (OURS.asked, TEAM, True),
    ],
)
def test_other_tags_than_are_asked_for_are_said(
    made: tuple[str, str] | None, asked: KafkaTags, *, is_said: bool
) -> None:
    row = by_tags(*(made or (None, None)))
    told = " ".join(chosen.other_tags(row, asked))
    assert made_by(row) == made
    own = "made by the tags stillwater:cluster and, of pools, stillwater:pool"
    assert (own in told) is is_said
    assert ("by team = streaming and, of pools, kafka-pool they have" in told) is is_said


# --- Which month a report is about.


def months(costs: str) -> dict[str, Found]:
    """Return what tables note of months: "2026-09 900 USD, ..." with a currency or without one."""
    found = {}
    for each in costs.split(", "):
        period, billed, *currency = each.split(" ")
        found[period] = noted(
            billing_period=period, billed_cost=Decimal(billed), currency=next(iter(currency), None),
            ingested_at=datetime.combine(FINAL, time()),
        )  # fmt: skip
    return found


AUTUMN = months("2026-09 900, 2026-10 905.5, 2026-11 400")
MOVED = months("2026-09 70000 INR, 2026-10 905.5 USD, 2026-11 400 USD")
ASKED_ON = date(2026, 11, 23)


@every_case(
    ("asked", "held", "period"),
    [
        # The last that is over; the only one; not days that spill into a month of their own.
        (None, AUTUMN, "2026-10"),
        (None, months("2026-11 3"), "2026-11"),
        (None, months("2024-09 20.05, 2024-10 0.24"), "2024-09"),
        # Of months that all gave back the last one; of several currencies the last one's.
        (None, months("2026-08 -40, 2026-10 -90, 2026-11 -1"), "2026-10"),
        (None, MOVED, "2026-10"),
        ("2026-09", AUTUMN, "2026-09"),
    ],
)
def test_a_report_is_about_the_last_whole_month_or_the_one_asked_for(
    asked: str | None, held: Mapping[str, Row], period: str
) -> None:
    assert chosen.month_to_report(asked, held, ASKED_ON) == period


@every_case(
    ("asked", "held", "complaint"),
    [
        ("2026-08", AUTUMN, "no bill of 2026-08, only of 2026-09, 2026-10, 2026-11"),
        (None, months("unknown 1"), "name one with --bill"),
    ],
)
def test_a_month_that_is_not_there_is_refused_with_those_that_are(
    asked: str | None, held: Mapping[str, Row], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        chosen.month_to_report(asked, held, ASKED_ON)


def test_the_others_are_named_with_what_they_cost() -> None:
    (said,) = chosen.others("2026-10", AUTUMN, "USD")
    named = "there is also 2026-09 (900.00 USD) and 2026-11 (400.00 USD): name"
    assert said.startswith(f"This is 2026-10; {named}")
    assert chosen.others("2026-10", months("2026-10 1"), "USD") == []
    assert "2026-09 (70,000.00 INR)" in chosen.others("2026-10", MOVED, "USD")[0]


def test_months_of_another_currency_are_not_compared_with() -> None:
    unknown = months("2026-09 9, 2026-10 9 USD")
    assert chosen.compared_months("2026-10", MOVED) == ["2026-10"]
    assert chosen.compared_months("2026-11", MOVED) == ["2026-10", "2026-11"]
    assert chosen.compared_months("2026-10", unknown) == ["2026-09", "2026-10"]
    assert chosen.not_compared("2026-11", MOVED) == []
    assert chosen.not_compared("2026-10", MOVED) == [
        "2026-09 is billed in INR: nothing of it is compared with 2026-10, in USD."
    ]


# --- A month that AWS changes after it was final.

EARLY, FIRST, LATER = datetime(2026, 9, 10, 6), datetime(2026, 9, 15, 6), datetime(2026, 11, 3, 6)  # noqa: DTZ001 - as tables hold them
Final = tuple[Decimal | None, datetime | None]
WAS: Final = (Decimal("1234.56"), FIRST)
OPEN: Final = (None, None)


def august(billed: str, final: Final = WAS, read_at: datetime = LATER) -> Found:
    return noted(
        billing_period="2026-08", billed_cost=Decimal(billed), ingested_at=read_at,
        final_billed_cost=final[0], final_read_at=final[1], notes="The bill names no resource.",
    )  # fmt: skip


@every_case(
    ("now", "before", "final"),
    [
        (EARLY, None, OPEN),
        (FIRST, None, (Decimal(7), FIRST)),
        (FIRST, august("5", OPEN, EARLY), (Decimal(7), FIRST)),
        (LATER, august("5", WAS, FIRST), WAS),
        # Tables of an earlier version say it by the day on which they were made.
        (LATER, august("5", OPEN, FIRST), (Decimal(5), FIRST)),
    ],
)
def test_what_a_month_came_to_when_it_was_final_is_kept(
    now: datetime, before: Found | None, final: Final
) -> None:
    assert final_of("2026-08", Decimal(7), now, before) == final


def test_a_restated_month_is_said_with_both_totals_and_days() -> None:
    assert chosen.restatement(august("1200"), "USD") == (
        "AWS has restated 2026-08 since it was final: 1,234.56 USD as read on 2026-09-15, "
        "1,200.00 USD as delivered again and read on 2026-11-03, 34.56 USD less. Credits, refunds "
        "and late corrections do that; the tables hold the newer delivery."
    )
    assert "65.44 USD more." in (chosen.restatement(august("1300"), "USD") or "")
    for same in (august("1234.56"), august("1234.560000001"), august("1200", OPEN)):
        assert chosen.restatement(same, "USD") is None


@every_case(
    ("asked", "read_on", "is_told"),
    [
        # Its own month, the one that it is compared with, and another lately but not long ago.
        ("2026-08", date(2026, 1, 1), True),
        ("2026-09", date(2026, 1, 1), True),
        ("2026-10", date(2026, 11, 3), True),
        ("2026-10", date(2026, 10, 1), False),
    ],
)
def test_a_report_tells_of_its_own_month_the_one_before_and_what_was_restated_lately(
    asked: str, read_on: date, *, is_told: bool
) -> None:
    restated = august("1200", read_at=datetime.combine(read_on, FIRST.time()))
    deliveries = {"2026-08": restated, **months("2026-10 7")}
    told = chosen.restatements(asked, deliveries, "USD", date(2026, 11, 20))
    assert bool(told) is is_told


def test_a_report_of_finished_tables_says_what_was_noted_when_their_bill_was_read() -> None:
    told = chosen.Chosen("2026-08", ASKED_ON, {"2026-08": august("1200")}).notes("USD")
    assert told[0] == "The bill names no resource."
    assert told[1].startswith("AWS has restated 2026-08")
