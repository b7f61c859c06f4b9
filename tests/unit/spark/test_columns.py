"""What columns are called, whose tags they hold, and what their texts, times and costs say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from core.ground.naming import CLUSTER_TAG, POOL_TAG
from spark.ingest import bill, cur, focus
from spark.ingest.bill import Source
from spark.ingest.columns import day_of, month_of, tags_in
from spark.ingest.cur import modern_name
from spark.ingest.pieces import Piece
from spark.tag_keys import (
    UNREAD_TAGS,
    KafkaTags,
    category_name,
    column_spellings,
    export_key,
    parse_tags,
    spellings,
    tag_columns,
)
from tests.every_case import every_case
from tests.unit.spark import bills

CUR = [*cur.REQUIRED, "resource_tags"]
LEGACY = ["lineItem/UsageType", "lineItem/UnblendedCost", "lineItem/UsageStartDate"]
FOCUS = list(focus.REQUIRED)
ACCENTED = "\N{LATIN SMALL LETTER E WITH ACUTE}quipe"


def refused(columns: Sequence[str], kafka: KafkaTags | None = None) -> str:
    """Return why a bill of these columns is refused before a line of it is read."""
    piece = Piece("/bill.parquet", None, list(columns))
    with pytest.raises(InvalidInput) as raised:
        bill._delivery(None, Source("x", [piece]), "The bill x", kafka or KafkaTags())
    return str(raised.value)


@every_case(
    ("columns", "twice", "tag"),
    [
        (
            [*CUR, "reservation_reservation_arn", "reservation_reservation_a_r_n"],
            "reservation_reservation_arn and reservation_reservation_a_r_n",
            None,
        ),
        ([*CUR, "lineItem/UsageType"], "line_item_usage_type and lineItem/UsageType", None),
        ([*FOCUS, "Billed Cost"], "BilledCost and Billed Cost", None),
        ([*FOCUS, "Tags", "tags_"], "Tags and tags_", None),
        # Tags and categories only where they are asked for.
        (
            [*CUR, "costCategory/cost center", "costCategory/cost-center"],
            "costCategory/cost center and costCategory/cost-center",
            "cost center",
        ),
        (
            [*CUR, "resourcetags_user_team", "resourcetags.user.team"],
            "resourcetags_user_team and resourcetags.user.team",
            "team",
        ),
    ],
)
def test_a_column_under_two_names_is_refused_by_both(
    columns: Sequence[str], twice: str, tag: str | None
) -> None:
    said = refused(columns, parse_tags(tag, None))
    assert said == f"The bill x has one column under 2 names, {twice}; export it once."


@every_case(
    ("columns", "reader"),
    [
        (CUR, cur.opened),
        (LEGACY, cur.opened),
        ([name.upper() for name in CUR], cur.opened),
        (FOCUS, focus.opened),
        (["Billed Cost", "Effective Cost", "Service Name"], focus.opened),
        (["line_item_id", "line_item_description", "line_item_amount"], None),
        (["lineItem/Id", "lineItem/Amount"], None),
        (["invoice", "effective_cost", "amount"], None),
        (["id", "Billed Cost", "vendor"], None),
        (["line_item_usage_type"], None),
    ],
)
def test_a_format_is_known_by_several_of_its_columns(columns: Sequence[str], reader: Any) -> None:
    assert bill.reader_of(columns) is reader


@every_case(
    ("legacy", "modern"),
    [
        ("lineItem/UnblendedCost", "line_item_unblended_cost"),
        ("bill/BillingPeriodStartDate", "bill_billing_period_start_date"),
        ("reservation/ReservationARN", "reservation_reservation_a_r_n"),
        ("savingsPlan/SavingsPlanEffectiveCost", "savings_plan_savings_plan_effective_cost"),
        ("pricing/unit", "pricing_unit"),
    ],
)
def test_a_column_is_known_whatever_the_case_of_its_letters(legacy: str, modern: str) -> None:
    odd = "".join(c.upper() if n % 2 else c.lower() for n, c in enumerate(legacy))
    assert {modern_name(each) for each in (legacy, legacy.lower(), legacy.upper(), odd)} == {modern}


@every_case(
    ("written", "key"),
    [
        ("resourceTags/user:stillwater:cluster", CLUSTER_TAG),
        ("RESOURCETAGS/USER:STILLWATER:CLUSTER", CLUSTER_TAG),
        ("costCategory/team", "team"),
        ("COSTCATEGORY/TEAM", "team"),
    ],
)
def test_a_tags_or_categorys_column_is_found_by_its_key(written: str, key: str) -> None:
    assert modern_name(written).lower() in column_spellings(key)


@every_case(
    ("asked", "name"),
    [
        *(
            (each, "team")
            for each in ("costCategory/team", "cost_category_team", "Cost Category:team")
        ),
        ("x_CostCategories.team", "team"),
        *((each, each) for each in ("team", "cost_centre", "costCategory")),
    ],
)
def test_a_cost_category_is_found_by_any_of_its_names(asked: str, name: str) -> None:
    assert category_name(asked) == name
    assert asked == name or {"costCategory/team", "team"} <= set(spellings(asked))


def test_a_bill_with_the_asked_category_does_not_lack_tags() -> None:
    maps = (*focus.TAGS, focus.CATEGORIES)
    assert not any("Tags" in each for each in focus._lacking({"xcostcategories"}, maps))
    assert any("Tags" in each for each in focus._lacking(set(), maps))


@every_case(
    ("key", "spelled"),
    [
        ("stillwater:pool", "user_stillwater_pool"),
        ("kubernetes.io/created-for/pvc/name", "user_kubernetes_io_created_for_pvc_name"),
        ("Name", "user_name"),
        ("aws:autoscaling:groupName", "aws_autoscaling_group_name"),
        ("aws:eks:cluster-name", "aws_eks_cluster_name"),
    ],
)
def test_cur_2_spells_a_key_in_lower_snake(key: str, spelled: str) -> None:
    assert export_key(key) == spelled


def test_a_key_is_looked_for_under_every_spelling_of_every_export() -> None:
    assert spellings("team") == (
        *("user_team", "user:team", "team", "resourceTags/user:team", "resourceTags/team"),
        *("costCategory/team", "accountTag/team"),
    )
    # Nobody gives these to a category: every line is asked for each spelling of them.
    assert not any("/" in each.removeprefix("resourceTags/") for each in spellings(POOL_TAG))
    assert f"user_{ACCENTED}" in spellings(ACCENTED)


def test_a_column_may_be_called_by_the_words_of_a_tags_key_alone() -> None:
    known = {"user_team", "team", "stillwater_cluster", "product", "resource_tags_user_product"}
    assert tag_columns("team", known) == ["user_team", "team"]
    assert tag_columns(CLUSTER_TAG, known) == ["stillwater_cluster"]
    # A report has a column of its own that is called so.
    assert tag_columns("product", known) == ["resource_tags_user_product"]
    assert tag_columns("line-item:operation", {"line_item_operation"}) == []


NOTE = {"note": "a, b", "team": "web"}
LISTED = [{"key": key, "value": value} for key, value in NOTE.items()]


@every_case(
    ("written", "tags"),
    [
        (json.dumps(NOTE), NOTE),
        (json.dumps({"n": 1, "q": 'a "b"', "z": None}), {"n": "1", "q": 'a "b"', "z": None}),
        (json.dumps({"Key": "v", "of": {"x": "y"}}), {"Key": "v", "of": '{"x": "y"}'}),
        (json.dumps(LISTED), NOTE),
        (json.dumps([{"Key": "a", "Value": "b"}, ["c", "d"]]), {"a": "b", "c": "d"}),
        (str({**NOTE, "nothing": None}), {**NOTE, "nothing": None}),
        (str([*NOTE.items()]), NOTE),
        (str(LISTED), NOTE),
        ("{'a': nan}", {"a": None}),
        ("{note=a, b, team=web}", NOTE),
        *((each, None) for each in ("", " ", "NULL", None)),
        *(
            (each, {UNREAD_TAGS: each})
            for each in ("harbour", "a:b:harbour", "a=b;team", '{"team": "we', "[1, 2]", "{1}")
        ),
    ],
)
def test_tags_are_read_as_aws_athena_and_python_write_them_or_not_at_all(
    written: str | None, tags: Mapping[str, str | None] | None
) -> None:
    found = tags_in(written)
    assert (None if found is None else dict(found)) == tags


NOVEMBER, DAY = date(2026, 11, 1), date(2026, 11, 20)


@every_case(
    "written",
    [
        *("2026-11-20T12:00:00Z", "2026-11-20 12:00:00", "2026-11-20", "2026-11-20T12:00:00.123Z"),
        *("2026-11-20T12:00Z", "2026-11-20T12:00+00:00", " 2026-11-20 12:00:00.000 UTC"),
        *("2026-11-21T02:00:00+05:30", "2026-11-20T05:30:00+05:30", "2026-11-19T19:00:00-05:00"),
        *(datetime(2026, 11, 20, 12), DAY),  # noqa: DTZ001 - CUR writes no zone
    ],
)
def test_a_time_is_a_day_in_utc(written: Any) -> None:
    assert (day_of(written), month_of(written)) == (DAY, NOVEMBER)


@every_case("written", ["2026-11", "2026-11-01T00:00:00+05:30", "2026-10-31T19:00:00-05:00"])
def test_a_month_begins_up_to_half_a_day_before_it_does_in_utc(written: str) -> None:
    assert month_of(written) == NOVEMBER


@every_case(
    "written",
    [
        *(
            "",
            "NULL",
            "yesterday",
            "11/1/2026 0:00",
            "00:00.0",
            "2026-11-31",
            "0099-01-01",
            "46327",
        ),
        *("2026-11-20T25:00:00Z", 46327, 1_795_176_000, True, None, datetime(9999, 1, 1)),  # noqa: DTZ001 - the same
    ],
)
def test_what_is_no_time_is_none(written: Any) -> None:
    assert (day_of(written), month_of(written)) == (None, None)


FEE, REFUND = "SavingsPlanRecurringFee", "Refund for {} fee for Savings Plan ID : 1"
PREFIX = "line_item_line_item_"


@every_case(
    ("kind", "amounts", "description", "product", "amortised"),
    [
        ("Usage", {}, "", "AmazonEC2", "1"),
        ("Tax", {}, "", "AmazonEC2", "1"),
        (
            "SavingsPlanCoveredUsage",
            {"savings_plan_savings_plan_effective_cost": 0.66},
            *("", "AmazonEC2", "0.66"),
        ),
        ("SavingsPlanNegation", {"line_item_unblended_cost": -1.0}, "", "AmazonEC2", "0"),
        (
            FEE,
            {"savings_plan_total_commitment_to_date": 9.0, "savings_plan_used_commitment": 6.5},
            *("", "ComputeSavingsPlans", "2.5"),
        ),
        ("SavingsPlanUpfrontFee", {}, "", "ComputeSavingsPlans", "0"),
        ("DiscountedUsage", {"reservation_effective_cost": 0.6}, "", "AmazonEC2", "0.6"),
        (
            "RIFee",
            {
                "reservation_unused_amortized_upfront_fee_for_billing_period": 1.25,
                "reservation_unused_recurring_fee": 0.25,
            },
            *("", "AmazonEC2", "1.5"),
        ),
        ("Fee", {"reservation_reservation_a_r_n": "arn:ri"}, "", "AmazonEC2", "0"),
        ("Fee", {}, "", "AmazonEC2", "1"),
        ("Refund", {}, REFUND.format("one-time"), "MachineLearningSavingsPlans", "0"),
        ("Refund", {}, REFUND.format("one-time"), "AmazonEC2", "1"),
        ("Refund", {}, REFUND.format("recurring"), "ComputeSavingsPlans", "1"),
    ],
)
def test_commitments_are_spread_over_the_hours_they_cover(
    tmp_path: Path, kind: str, amounts: Mapping[str, Any], description: str, product: str,
    amortised: str,
) -> None:  # fmt: skip
    named = {f"{PREFIX}type": kind, f"{PREFIX}description": description}
    line = {**named, "line_item_product_code": product, **amounts}
    (row,) = bills.usage(bills.cur_file(tmp_path / f"{kind}.parquet", [line]))
    assert row.amortised_cost == row.net_cost == Decimal(amortised)
