"""Which months a daily job makes again: those AWS may still correct, and what it has not read."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark import schemas
from spark.months import Refresh, last_complete_day, settled_on, unsettled
from spark.rows import Found
from spark.tag_keys import KafkaTags
from tests.every_case import every_case
from tests.unit.spark import month

FINAL = date(2026, 11, 15)
A, B = Refresh("a"), Refresh("b")
DAYS = st.dates(date(2026, 9, 1), date(2027, 3, 1))


def held(execution: str, read_on: date, **noted: str | None) -> Found:
    """Return what DELIVERIES noted of a month."""
    read_at = datetime.combine(read_on, time())
    return month.row(schemas.DELIVERIES, execution=execution, ingested_at=read_at, **noted)


@pytest.mark.parametrize(("period", "final"), [("2026-10", FINAL), ("2026-12", date(2027, 1, 15))])
def test_a_month_is_final_two_weeks_after_it_closed(period: str, final: date) -> None:
    assert settled_on(period) == final


def test_what_the_tables_do_not_hold_is_made() -> None:
    assert unsettled({"2026-09": A, "2026-10": B}, {}) == ["2026-09", "2026-10"]


@pytest.mark.parametrize(
    ("read_on", "again"), [(FINAL - timedelta(days=1), ["2026-10"]), (FINAL, [])]
)
def test_a_month_read_before_it_was_final_is_made_once_more(
    read_on: date, again: list[str]
) -> None:
    assert unsettled({"2026-10": A}, {"2026-10": held("a", read_on)}) == again


def test_a_final_month_that_aws_delivers_again_is_made_again() -> None:
    assert unsettled({"2026-10": B}, {"2026-10": held("a", FINAL)}) == ["2026-10"]


def test_a_month_that_is_no_longer_delivered_is_left_as_it_is() -> None:
    assert unsettled({}, {"2026-10": held("a", date(2026, 10, 3))}) == []


@pytest.mark.parametrize(
    ("tags", "again"),
    [
        (("team = streaming", "pool"), []),
        (None, []),
        (("stillwater:cluster", "pool"), ["2026-10"]),
        (("team = streaming", "another"), ["2026-10"]),
    ],
)
def test_a_final_month_made_by_other_tags_is_made_again(
    tags: tuple[str, str] | None, again: list[str]
) -> None:
    there = {"2026-10": held("a", FINAL, cluster_tag=tags and tags[0], pool_tag=tags and tags[1])}
    asked = KafkaTags("team", "streaming", pool="pool")
    assert unsettled({"2026-10": A}, there, asked) == again


@pytest.mark.parametrize(
    ("execution", "noted", "now", "again"),
    [
        ("a", "7f", "7f", False),
        ("a", "7f", "80", True),
        ("a", "7f", "", False),
        ("a", None, "80", False),
        ("", "7f", "7f", False),
        ("", None, "80", True),
    ],
    ids=[
        "the same files",
        "other files",
        "files that are gone",
        "of older tables",
        "no execution and the same files",
        "nothing that says so",
    ],
)
def test_a_final_month_is_made_again_where_its_files_are_others(
    execution: str, noted: str | None, now: str, again: bool
) -> None:
    there = {"2026-10": held(execution, FINAL, fingerprint=noted)}
    found = unsettled({"2026-10": Refresh(execution, 1, now)}, there)
    assert found == (["2026-10"] if again else [])


KNOWN = KafkaTags(name="harbour", learnt_on=(date(2026, 11, 1), FINAL))


@pytest.mark.parametrize(
    ("told_by", "again"),
    [
        (KNOWN.told_by(FINAL), False),
        ("harbour; instances that its ledger knew: 1", False),
        (None, False),
        (KafkaTags().told_by(FINAL), True),
        (KafkaTags(name="harbour").told_by(FINAL), True),
        (KafkaTags(name="another", learnt_on=KNOWN.learnt_on).told_by(FINAL), True),
    ],
    ids=[
        "the same",
        "and what the ledger learnt since counts for later months",
        "older tables",
        "no cluster",
        "no ledger",
        "another",
    ],
)
def test_a_final_month_is_made_again_where_kafkas_was_told_by_something_else(
    told_by: str | None, again: bool
) -> None:
    there = {"2026-10": held("a", FINAL, told_by=told_by)}
    assert unsettled({"2026-10": A}, there, KNOWN) == (["2026-10"] if again else [])


@given(DAYS, st.integers(1, 80))
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
    ("last", "read_on", "complete"),
    [
        (date(2026, 11, 30), date(2026, 12, 15), date(2026, 11, 30)),
        (date(2026, 11, 30), date(2026, 12, 14), date(2026, 11, 29)),
        (date(2026, 11, 30), None, date(2026, 11, 29)),
        (date(2028, 2, 28), date(2028, 4, 1), date(2028, 2, 27)),
        (date(2028, 2, 29), date(2028, 4, 1), date(2028, 2, 29)),
        (date(2026, 12, 31), date(2027, 1, 15), date(2026, 12, 31)),
        (date(2026, 11, 20), date(2027, 1, 20), date(2026, 11, 19)),
        (date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 19)),
        (date(2026, 11, 30), date(2026, 11, 21), date(2026, 11, 20)),
    ],
    ids=[
        "the last of a final month",
        "the last of a month that may still change",
        "nobody knows when it was read",
        "not the last in a leap year",
        "the last in a leap year",
        "the last of a year",
        "a final month's bill that ends before it",
        "an open month",
        "a fee that begins on a day to come",
    ],
)
def test_a_bills_last_day_is_complete_where_its_month_was_final_when_it_was_read(
    last: date, read_on: date | None, complete: date
) -> None:
    assert last_complete_day(last, read_on) == complete
