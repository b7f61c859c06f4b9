"""A month that AWS changes after it was final is told of, with both totals."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row

from spark import schemas
from spark.jobs.chosen_month import Chosen, other_tags, restatement, restatements
from spark.months import final_of, made_by
from spark.tag_keys import OURS, KafkaTags
from tests.unit.spark import month

EARLY, FIRST, LATER = datetime(2026, 9, 10, 6), datetime(2026, 9, 15, 6), datetime(2026, 11, 3, 6)  # noqa: DTZ001 - as tables hold them
TODAY = date(2026, 11, 20)
WAS = (Decimal("1234.56"), FIRST)
OPEN = (None, None)


def note(
    billed: str,
    final: tuple[Decimal | None, datetime | None] = WAS,
    read_at: datetime = LATER,
    period: str = "2026-08",
) -> Row:
    return month.row(
        schemas.DELIVERIES,
        billing_period=period,
        billed_cost=Decimal(billed),
        ingested_at=read_at,
        final_billed_cost=final[0],
        final_read_at=final[1],
    )


@pytest.mark.parametrize(
    ("now", "before", "final"),
    [
        (EARLY, None, OPEN),
        (FIRST, None, (Decimal(7), FIRST)),
        (FIRST, note("5", OPEN, EARLY), (Decimal(7), FIRST)),
        (LATER, note("5", WAS, FIRST), WAS),
        (LATER, note("5", OPEN, FIRST), (Decimal(5), FIRST)),
    ],
    ids=["open", "first read when final", "read again when final", "noted", "of older tables"],
)
def test_what_a_month_came_to_when_it_was_final_is_kept(
    now: datetime, before: Row | None, final: tuple[Decimal | None, datetime | None]
) -> None:
    assert final_of("2026-08", Decimal(7), now, before) == final


def test_a_restated_month_is_said_with_both_totals_and_days() -> None:
    assert restatement(note("1200"), "USD") == (
        "AWS has restated 2026-08 since it was final: 1,234.56 USD as read on 2026-09-15, "
        "1,200.00 USD as delivered again and read on 2026-11-03, 34.56 USD less. Credits, refunds "
        "and late corrections do that; the tables hold the newer delivery."
    )
    more = restatement(note("1300"))
    assert more is not None
    assert "65.44 more." in more


@pytest.mark.parametrize(
    "noted",
    [note("1234.56"), note("1234.560000001"), note("1200", final=OPEN)],
    ids=["the same", "the same to the cent", "not final yet"],
)
def test_a_month_that_came_to_the_same_is_not_told_of(noted: Row) -> None:
    assert restatement(noted, "USD") is None


@pytest.mark.parametrize(
    ("asked", "read_at", "told"),
    [
        ("2026-08", date(2026, 1, 1), True),
        ("2026-09", date(2026, 1, 1), True),
        ("2026-10", date(2026, 11, 3), True),
        ("2026-10", date(2026, 10, 1), False),
    ],
    ids=["its own", "compared with", "lately", "long ago"],
)
def test_a_report_tells_of_its_own_month_the_one_before_and_what_was_restated_lately(
    asked: str, read_at: date, told: bool
) -> None:
    restated_one = note("1200", read_at=datetime.combine(read_at, FIRST.time()))
    deliveries = {"2026-08": restated_one, "2026-10": note("7", OPEN, period="2026-10")}
    assert bool(restatements(asked, deliveries, "USD", TODAY)) is told


def test_a_report_of_finished_tables_says_what_was_noted_when_their_bill_was_read() -> None:
    row = note("1200")
    noted = Row(**{**row.asDict(), "notes": "The bill names no resource."})
    told = Chosen("2026-08", TODAY, {"2026-08": noted}).notes("USD")
    assert told[0] == "The bill names no resource."
    assert told[1].startswith("AWS has restated 2026-08")
    # Tables of an earlier version note nothing.
    assert Chosen("2026-08", TODAY, {"2026-08": note("1200", final=OPEN)}).notes("USD") == []


TEAM = KafkaTags("team", "streaming", "kafka-pool")


@pytest.mark.parametrize(
    ("made", "asked", "said"),
    [
        (TEAM.asked, TEAM, False),
        (TEAM.asked, OURS, False),
        (None, TEAM, False),
        (OURS.asked, TEAM, True),
    ],
    ids=["as asked", "nothing asked", "not noted", "other tags"],
)
def test_other_tags_than_are_asked_for_are_said(made: Any, asked: KafkaTags, *, said: bool) -> None:
    cluster, pool = made or (None, None)
    row = month.row(schemas.DELIVERIES, cluster_tag=cluster, pool_tag=pool)
    told = other_tags(row, asked)
    assert bool(told) is said
    assert made_by(row) == made
    if said:
        (sentence,) = told
        assert "made by the tags stillwater:cluster and, of pools, stillwater:pool" in sentence
        assert "by team = streaming and, of pools, kafka-pool they have" in sentence
