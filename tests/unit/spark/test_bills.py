"""Bills as they arrive: a row is read or keeps its reason, a bad file is a sentence."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from spark.ingest import bill
from spark.ingest.unread_lines import Control
from tests.unit.spark import bills, here


def reasons(path: Path) -> list[str]:
    return [row["reason"] for row in here.quarantine(path)]


def test_a_bad_row_keeps_its_reason_and_spoils_no_other(tmp_path: Path) -> None:
    path = bills.focus_file(
        tmp_path / "focus.csv",
        [
            {},
            {"BilledCost": "abc"},
            {"BilledCost": "NULL"},
            {"EffectiveCost": "1,5"},
            {"BillingPeriodStart": "NULL"},
            {"ChargePeriodStart": "yesterday"},
            {"BillingCurrency": ""},
            {},
        ],
    )
    assert reasons(path) == [
        "BilledCost 'abc' is not a number",
        "BilledCost is empty",
        "EffectiveCost '1,5' is not a number",
        "BillingPeriodStart is empty",
        "ChargePeriodStart 'yesterday' is not a time",
        "BillingCurrency is empty",
    ]
    assert {row.charges for row in here.usage(path) if not row.is_unreadable} == {2}


def test_a_broken_line_is_kept_whole_and_none_of_its_numbers_is_trusted(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus.csv", [{}])
    good = path.read_text().splitlines()[1]
    with path.open("a") as sink:
        sink.write(f'"us-east-1a","9.0"\n{good},"surplus"\n"never closed,1,2\n{good}\n')
    delivery = bill.read(path)
    bad = here.quarantine(path)
    assert next(row["line"] for row in bad) == '"us-east-1a","9.0"'
    assert {(row["billing_period"], row["billed_cost"]) for row in bad} == {("unknown", None)}
    broken, whole = sorted(here.usage_rows(delivery), key=lambda row: row.billing_period)[::-1]
    assert (broken.charges, broken.zone, broken.account, broken.billed_cost) == (3, None, None, 0)
    assert whole.charges == 2
    assert delivery.control == {
        "2026-11": Control(2, 0, Decimal(2)),
        "unknown": Control(3, 3, Decimal(0)),
    }


def test_scientific_notation_and_quotes_and_commas_in_fields_are_read(tmp_path: Path) -> None:
    path = bills.focus_file(
        tmp_path / "focus.csv.gz",
        [{"BilledCost": "8E-7", "Tags": '{"a, ""b""": "c"}', "ChargeDescription": 'x, "y"'}],
    )
    (row,) = here.usage(path)
    assert row.billed_cost == Decimal("8E-7")
    assert row.description == 'x, "y"'


def test_an_export_with_aws_columns_is_known_by_its_usage_type(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus.csv", [{}])
    header, line = path.read_text().splitlines()
    path.write_text(f"\ufeff{header},x_UsageType\n{line},APS1-EBS:VolumeUsage.gp3\n", "utf-8")
    (row,) = here.usage_rows(bill.read(path))
    assert row.usage_type == "EBS:VolumeUsage.gp3"


def test_a_missing_focus_column_names_itself_and_the_setting_that_adds_it(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus.csv", [{}], without=("EffectiveCost", "PricingUnit"))
    with pytest.raises(InvalidInput) as raised:
        bill.read(path)
    first, second = raised.value.problems
    assert "has no column EffectiveCost; list it in the export's column selection" in first
    assert "has no column PricingUnit" in second


def test_a_cur_row_without_a_finite_cost_or_its_own_month_is_quarantined(tmp_path: Path) -> None:
    export = bills.cur_export(
        tmp_path,
        [
            {"line_item_unblended_cost": float("nan")},
            {"line_item_unblended_cost": None},
            {"bill_billing_period_start_date": None},
            {"bill_billing_period_start_date": datetime(2026, 10, 1)},  # noqa: DTZ001 - CUR writes no zone
            {},
        ],
    )
    assert [row["reason"] for row in here.quarantine(export)] == [
        "line_item_unblended_cost 'NaN' is not a number",
        "line_item_unblended_cost is empty",
        "bill_billing_period_start_date is empty",
        "the line is of another month than the delivery it came in",
    ]
    unread = [row for row in here.usage_rows(bill.read(export)) if row.is_unreadable]
    assert sum(row.charges for row in unread) == 4
    assert here.quarantine(export)[2]["billed_cost"] == 1


def test_an_engine_is_told_that_text_takes_as_long_as_ten_times_its_lines(tmp_path: Path) -> None:
    told: list[int] = []
    parquet = bills.cur_export(tmp_path / "parquet", [{}] * 40)
    text = bills.cur_export_as_csv(tmp_path / "csv", [{}] * 40)
    for path in (parquet, text):
        bill.read(path, engine=told.append)
    pieces = bill.read(text).pieces
    assert told == [40, bill.TEXT_LINE * sum(piece.lines for piece in pieces)]
    assert told[1] > told[0]


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus {a} [1]*.csv", [{}])
    assert bill.read(path).control["2026-11"].lines == 1
    # CREATE_NEW_REPORT names its folders by time, and Hadoop takes a colon for a scheme.
    export = bills.cur_export(tmp_path / "2026-11-20T08:00:00.000Z-aaaa", [{}])
    assert bill.read(export).control["2026-11"].lines == 1


@pytest.mark.parametrize(
    ("column", "setting"),
    [
        ("line_item_resource_id", "set INCLUDE_RESOURCES = TRUE"),
        ("resource_tags", "activate the tags as cost allocation tags"),
        ("line_item_unblended_cost", "SELECT from COST_AND_USAGE_REPORT"),
    ],
)
def test_a_missing_cur_column_names_itself_and_the_setting_that_adds_it(
    tmp_path: Path, column: str, setting: str
) -> None:
    export = bills.cur_export(tmp_path, [{}], without=(column,))
    with pytest.raises(InvalidInput) as raised:
        bill.read(export)
    assert f"has no column {column}" in str(raised.value)
    assert setting in str(raised.value)


def test_a_column_only_savings_plans_need_is_missed_only_where_there_are_any(
    tmp_path: Path,
) -> None:
    lacking = ("savings_plan_savings_plan_effective_cost",)
    plain = bills.cur_export(tmp_path / "plain", [{}], without=lacking)
    assert [row.charges for row in here.usage(plain)] == [1]
    covered = {"line_item_line_item_type": "SavingsPlanCoveredUsage"}
    export = bills.cur_export(tmp_path / "covered", [covered], without=lacking)
    with pytest.raises(InvalidInput, match="SavingsPlanCoveredUsage lines but no column savings"):
        bill.read(export)


def test_a_damaged_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    bills.cur_export(tmp_path, [{}])
    (file,) = tmp_path.glob("data/*/*.parquet")
    file.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InvalidInput) as raised:
        bill.read(tmp_path)
    assert len(raised.value.problems) == 1
    assert "\n" not in str(raised.value)


def test_times_are_utc_whatever_the_machine_thinks(tmp_path: Path) -> None:
    path = bills.focus_file(
        tmp_path / "focus.csv",
        [
            {"BillingPeriodStart": "2026-11-01T00:00:00Z"},
            {"BillingPeriodStart": "2026-11-01"},
            *(
                {"BillingPeriodStart": month, "ChargePeriodStart": hour}
                for month, hour in (
                    ("2026-11-01T00:00:00+05:30", "2026-11-21T02:00:00+05:30"),
                    ("2026-11-01T05:30:00+05:30", "2026-11-20T05:30:00+05:30"),
                    ("2026-10-31T19:00:00-05:00", "2026-11-19T19:00:00-05:00"),
                )
            ),
        ],
    )
    rows = here.usage(path)
    assert {row.billing_period for row in rows} == {"2026-11"}
    assert {row.day for row in rows} == {date(2026, 11, 20)}
