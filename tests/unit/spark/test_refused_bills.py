"""What is refused of a bill: a line with its reason, a file or a folder of them in one sentence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from spark.files import LocalFiles
from spark.ingest import bill
from spark.ingest.bill import said_by_folders
from spark.ingest.layout import letters
from spark.ingest.manifest import unlisted
from spark.ingest.unread_lines import Control
from tests.every_case import every_case
from tests.unit.spark import bills
from tests.unit.spark.bills import (
    KIND,
    NOVEMBER,
    Written,
    archive,
    focus,
    ingested,
    legacy,
    parquet,
    refused,
    several,
    written,
)


def test_a_bad_row_keeps_its_reason_and_spoils_no_other(tmp_path: Path) -> None:
    odd = {
        "BilledCost 'abc' is not a number": {"BilledCost": "abc"},
        "BilledCost is empty": {"BilledCost": "NULL"},
        "EffectiveCost '1,5' is not a number": {"EffectiveCost": "1,5"},
        "BillingPeriodStart is empty": {"BillingPeriodStart": "NULL"},
        "ChargePeriodStart 'yesterday' is not a time": {"ChargePeriodStart": "yesterday"},
        "BillingCurrency is empty": {"BillingCurrency": ""},
    }
    path = focus(tmp_path, {}, *odd.values(), {})
    assert [row["reason"] for row in bills.quarantine(path)] == [*odd]
    assert {row.charges for row in bills.usage(path) if not row.is_unreadable} == {2}


def test_a_cur_row_without_a_finite_cost_or_its_own_month_is_quarantined(tmp_path: Path) -> None:
    odd = {
        "line_item_unblended_cost 'NaN' is not a number": {
            "line_item_unblended_cost": float("nan")
        },
        "line_item_unblended_cost is empty": {"line_item_unblended_cost": None},
        "bill_billing_period_start_date is empty": {"bill_billing_period_start_date": None},
        "the line is of another month than the delivery it came in": {
            "bill_billing_period_start_date": NOVEMBER.replace(month=10)
        },
    }
    export = bills.cur_export(tmp_path, [*odd.values(), {}])
    found = bills.quarantine(export)
    assert [row["reason"] for row in found] == [*odd]
    assert [row["billed_cost"] for row in found] == [None, None, 1, 1]
    unread = [row for row in bills.usage(export) if row.is_unreadable]
    assert sum(row.charges for row in unread) == 4


def test_a_broken_line_is_kept_and_neither_its_numbers_nor_its_tags_are_trusted(
    tmp_path: Path,
) -> None:
    path = focus(tmp_path, {})
    good = path.read_text().splitlines()[1]
    with path.open("a") as sink:
        sink.write(f'"us-east-1a","9.0"\n{good},"stillwater:cluster"\n{good}\n')
    delivery = bill.read(path)
    bad = bills.quarantine(path)
    assert bad[0]["line"] == "us-east-1a,9.0"
    assert {(row["billing_period"], row["billed_cost"]) for row in bad} == {("unknown", None)}
    broken, whole = sorted(bills.usage_rows(delivery), key=lambda row: row.billing_period)[::-1]
    assert (broken.charges, broken.zone, broken.account, broken.billed_cost) == (2, None, None, 0)
    assert whole.charges == 2
    assert delivery.control == {
        "2026-11": Control(2, 0, Decimal(2)),
        "unknown": Control(2, 2, Decimal(0)),
    }


def test_a_file_that_lacks_the_cost_is_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    export = bills.cur_export(tmp_path / "bill", [{}])
    later = bills.cur_export(tmp_path / "later", [{}], without=["line_item_unblended_cost"])
    for path in later.rglob("*.*"):
        place = export / str(path.relative_to(later)).replace("2026-11", "2026-12")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes().replace(b"2026-11", b"2026-12"))
    came, _, _ = ingested(export)
    assert (came.billed, came.lines, sum(came.quarantined.values())) == (1, 2, 1)


LINE = legacy([{}])
PACKED = gzip.compress(LINE.encode() * 50, mtime=0)
COVERED = {KIND: "SavingsPlanCoveredUsage"}
FILES: Mapping[str, tuple[str | bytes, str, str]] = {
    "gzip": (PACKED, "bill.csv", "call it .csv.gz"),
    "gzip cut off in its header": (PACKED[:25], "bill.csv.gz", "copy it again"),
    "gzip cut off": (PACKED[:-20], "bill.csv.gz", "ends before its data does; copy it again"),
    "no gzip": (b"not gzip at all", "bill.csv.gz", "cannot be read"),
    "zip": (b"PK\x03\x04" + bytes(60), "bill.csv", "call it .zip"),
    "no zip": (b"x", "bill.zip", "is not a zip archive, or holds no csv file"),
    "parquet": (b"PAR1" + bytes(60), "bill.csv", "call it .parquet"),
    "no parquet": (b"PAR1 and then nothing", "bill.parquet", "is damaged, or no Parquet file"),
    "excel": (b"PK", "bill.xlsx", "is neither .csv, .csv.gz, .zip nor .parquet"),
    "html": ("<!doctype html>\n<title>Sign in</title>", "bill.csv", "copy the bill again"),
    "json": ('{"BilledCost": 1, "EffectiveCost": 1}', "bill.csv", "choose csv or Parquet"),
    "nothing": ("", "bill.csv", "is empty; its first line must name its columns"),
    "a header alone": (legacy([]), "bill.csv", "holds no rows: nothing was charged yet"),
    "another bill": ("Service,Total\nEC2,1\n", "bill.csv", "its columns are Service, Total"),
    "utf-16": (LINE.encode("utf-16-le"), "bill.csv", "is not written in UTF-8"),
    "latin-1": (
        legacy([{"resourceTags/user:\u00e9quipe": "x"}]).encode("latin-1"),
        "bill.csv",
        "is not written in UTF-8",
    ),
    "a quote that is never closed": (
        legacy([{"lineItem/LineItemDescription": "QUOTE"}, {}]).replace("QUOTE", '"an hour'),
        "bill.csv",
        "has a quote that its field does not end with",
    ),
    "a header that is longer than its lines": (
        LINE.replace("\n", ",\n", 1),
        "bill.csv",
        "None of the 1 lines of the bill bill.csv can be read: the line does not hold the columns",
    ),
    "no time": (
        legacy([{"bill/BillingPeriodStartDate": "11/1/2026 0:00"}] * 2),
        "bill.csv",
        "bill_billing_period_start_date '11/1/2026 0:00' is not a time; a spreadsheet or a script",
    ),
    "a column twice": (
        legacy([{"lineitem/unblendedcost": "2"}]),
        "bill.csv",
        "names column lineitem/unblendedcost twice, once as lineItem/UnblendedCost",
    ),
    "two currencies": (
        legacy([{}, {"lineItem/CurrencyCode": "EUR"}]),
        "bill.csv",
        "charges in EUR and USD",
    ),
    "without a column of each line": (
        legacy([{}], without=["lineItem/CurrencyCode"]),
        "bill.csv",
        "has no column lineItem/CurrencyCode; choose it in the report's content",
    ),
    "without a column of its kind": (
        legacy([COVERED]),
        "bill.csv",
        "no column savingsPlan/SavingsPlanEffectiveCost",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read_is_named_in_one_sentence_and_no_table_is_written(
    tmp_path: Path, case: str
) -> None:
    content, name, sentence = FILES[case]
    said = refused(written(tmp_path, content, name))
    assert sentence in said
    assert "\n" not in said
    assert "_corrupt_line" not in said
    assert not (tmp_path / "tables").exists()


def locked() -> bytes:
    """Pack an archive that says of its file that a password is needed."""
    raw = bytearray(archive("bill.csv"))
    for place in (6, raw.rfind(b"PK\x01\x02") + 8):
        raw[place] |= 1
    return bytes(raw)


BOTH = {**bills.CUR_ROW, "resource_tags": "{}"}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda f: written(f, locked(), "bill.zip"), "needs a password; pack it again without one"),
        (lambda f: parquet(f, {"line_item_usage_start_date": True}), "'True' is not a time"),
        (
            several(a_csv=LINE, b_csv=",".join(bills.FOCUS_ROW) + "\n"),
            "b.csv has other columns than a.csv",
        ),
        (
            lambda f: bills.cur_file(f / "a.parquet", [bills.FOCUS_ROW]),
            "holds bills of two formats",
        ),
        (
            lambda f: focus(f, {}, without=["EffectiveCost", "PricingUnit"]),
            "has no column EffectiveCost; list it in the export's column selection",
        ),
        *(
            (lambda f, name=name: bills.cur_export(f, [{}], without=[name]), sentence)
            for name, sentence in (
                ("line_item_resource_id", "set INCLUDE_RESOURCES = TRUE"),
                ("resource_tags", "activate the tags as cost allocation tags"),
                ("line_item_unblended_cost", "SELECT from COST_AND_USAGE_REPORT"),
            )
        ),
    ],
)
def test_a_bill_that_would_say_what_is_not_so_is_refused(
    tmp_path: Path, made: Written, sentence: str
) -> None:
    assert sentence in refused(made(tmp_path))


def test_a_column_that_a_kind_of_line_needs_is_missed_only_where_there_are_any(
    tmp_path: Path,
) -> None:
    lacking = ("savings_plan_savings_plan_effective_cost",)
    plain = bills.cur_export(tmp_path / "plain", [{}], without=lacking)
    assert [row.charges for row in bills.usage(plain)] == [1]
    covered = {"line_item_line_item_type": "SavingsPlanCoveredUsage"}
    said = refused(bills.cur_export(tmp_path / "covered", [covered], without=lacking))
    assert "SavingsPlanCoveredUsage lines but no column savings" in said


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus {a} [1]*.csv", [{}])
    # CREATE_NEW_REPORT names its folders by time, and Hadoop takes a colon for a scheme.
    export = bills.cur_export(tmp_path / "2026-11-20T08:00:00.000Z-aaaa", [{}])
    assert [bill.read(each).control["2026-11"].lines for each in (path, export)] == [1, 1]


def test_an_engine_is_told_that_text_takes_as_long_as_ten_times_its_lines(tmp_path: Path) -> None:
    told: list[int] = []
    exports = [
        bills.cur_export(tmp_path / "parquet", [{}] * 40),
        bills.cur_export_as_csv(tmp_path / "csv", [{}] * 40),
    ]
    for path in exports:
        bill.read(path, engine=told.append)
    pieces = bill.read(exports[1]).pieces
    assert told == [40, bill.TEXT_LINE * sum(piece.lines for piece in pieces)]
    assert told[1] > told[0]


PERIOD = "BILLING_PERIOD=2026-11"


def _written(folder: Path, *names: str, content: str | None = None) -> list[str]:
    """Write files that differ, or hold this content all."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n\n" if content is None else content)
    return [str(folder / name) for name in names]


def _refused(folder: Path) -> str:
    with pytest.raises(InvalidInput) as raised:
        unlisted(LocalFiles(), str(folder))
    assert len(raised.value.problems) == 1
    return str(raised.value)


def _found(folder: Path) -> list[str]:
    return unlisted(LocalFiles(), str(folder))


def test_without_a_manifest_every_data_file_is_the_bill(tmp_path: Path) -> None:
    names = ("BILLING_PERIOD=2026-10/a-00001.parquet", "BILLING_PERIOD=2026-11/a-00001.parquet")
    there = _written(tmp_path, *names)
    _written(tmp_path, "_SUCCESS", "_temporary/0/b.parquet", ".c.parquet", "README.md", "a.csv.md5")
    _written(tmp_path, "cost_and_usage_data_status/status.parquet")
    assert _found(tmp_path) == there


def test_with_a_manifest_no_other_file_is_the_bill_and_its_data_are_read_by_it_alone(
    tmp_path: Path,
) -> None:
    _written(tmp_path, f"data/{PERIOD}/export-00001.csv.gz")
    _written(tmp_path, f"metadata/{PERIOD}/export-Manifest.json", content=json.dumps({}))
    assert _found(tmp_path) == []
    for below in ("data", f"data/{PERIOD}"):
        assert f"is the data of an export; name {tmp_path}," in _refused(tmp_path / below)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("2026-11-01T0/a.csv", "2026-11-02T0/a.csv"), "a.csv twice"),
        ((f"{PERIOD}/run-1/a.csv", f"{PERIOD}/run-2/a.csv"), "a.csv twice for one month"),
        (("a.csv", "b.parquet"), "mixes .parquet, .csv"),
        (("a.csv", "b.csv.zip"), "mixes .zip, .csv"),
        *(
            (("a.csv", name), f"{name}, which may be part of the bill")
            for name in ("b.csv.zst", "B.CSV", "b.xlsx", "a.csv.20261101", "0000_part_00")
        ),
        *(
            (("a.csv", name), f"{name}, which may be part of the bill and cannot be read. Copy it")
            for name in ("b.csv.part", "b.parquet.6eA3f09C")
        ),
        (("data/part-0.parquet", "_delta_log/00000000000000000000.json"), "table of Delta Lake"),
        (("data/part-0.parquet", "metadata/00001-a.metadata.json"), "Lake, Iceberg or Hudi"),
        (("data/part-0.parquet", ".hoodie/hoodie.properties"), "its log alone says"),
    ],
)
def test_without_a_manifest_what_may_count_twice_or_not_at_all_is_refused(
    tmp_path: Path, names: tuple[str, ...], sentence: str
) -> None:
    _written(tmp_path, *names)
    assert sentence in _refused(tmp_path)
    if names[1].startswith("metadata"):
        assert sentence in _refused(tmp_path / "data")


def test_a_copy_of_a_file_is_refused_and_a_header_alone_is_none(tmp_path: Path) -> None:
    _written(tmp_path, "october.csv", "november.csv", content="a,b")
    assert len(_found(tmp_path)) == 2
    _written(tmp_path, "bill.csv", "bill (1).csv", content="a,b\n1,2\n")
    assert "bill (1).csv and" in _refused(tmp_path)
    assert "hold the same; take one of them out" in _refused(tmp_path)


def test_the_same_lines_are_others_in_a_folder_that_says_another_day(tmp_path: Path) -> None:
    for day in (1, 2):
        name = f"line_item_usage_start_date=2026-11-0{day}/part-0.csv"
        _written(tmp_path / "days", name, content="a\n1\n")
        _written(tmp_path / "months", f"billing_period=2026-1{day}/{day}.csv", content="a\n1\n")
    assert len(_found(tmp_path / "days")) == 2
    assert "hold the same" in _refused(tmp_path / "months")


def test_links_are_followed_and_a_folder_is_read_once(tmp_path: Path) -> None:
    _written(tmp_path, "elsewhere/november.csv", "bill/october.csv")
    (tmp_path / "bill" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "bill")
    found = _found(tmp_path / "bill")
    assert [Path(path).name for path in found] == ["november.csv", "october.csv"]


CUR = ("line_item_unblended_cost", "bill_billing_period_start_date")
FOCUS = ("BilledCost", "BillingPeriodStart")


@every_case(
    ("columns", "folder", "said"),
    [
        (CUR[:1], "BILLING_PERIOD=2026-11", {CUR[1]: "2026-11"}),
        (FOCUS[:1], "billing_period=2026-11", {FOCUS[1]: "2026-11"}),
        (CUR, "billing_period=2026-11", {}),
        (CUR, "team=web", {"team": "web"}),
        (CUR, "team=__HIVE_DEFAULT_PARTITION__", {}),
        (CUR, "plain", {}),
    ],
)
def test_a_folder_says_what_no_column_of_its_files_does(
    columns: tuple[str, ...], folder: str, said: dict[str, str]
) -> None:
    known = map(letters, columns)
    assert said_by_folders("/bill", f"/bill/{folder}/part-0.parquet", known) == said
