"""More traps of bills (45 to 56): what a spreadsheet, a download or another writer made of one."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark import tables
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills
from tests.unit.spark.written import ingested, legacy, refused, written

OURS = {"stillwater:cluster": "harbour", "stillwater:pool": "broker"}


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"bill/BillingPeriodStartDate": "11/1/2026 0:00"}, "'11/1/2026 0:00' is not a time"),
        ({"lineItem/UnblendedCost": "1,25"}, "'1,25' is not a number"),
    ],
)
def test_45_a_bill_of_which_nothing_can_be_read_is_refused_and_no_table_is_written(
    tmp_path: Path, changes: dict[str, str], value: str
) -> None:
    said = refused(written(tmp_path, legacy([changes, changes])))
    assert "None of the 2 lines of the bill bill.csv can be read" in said
    assert value in said
    assert "as AWS delivered it" in said
    store = ParquetStore(str(tmp_path / "tables"))
    assert store.rows(tables.DELIVERIES) == []


LINE = legacy([{}])
FILES: Mapping[str, tuple[str | bytes, str, str]] = {
    "gzip": (gzip.compress(LINE.encode(), mtime=0), "bill.csv", "call it .csv.gz"),
    "gzip cut off": (gzip.compress(LINE.encode(), mtime=0)[:25], "bill.csv.gz", "copy it again"),
    "no gzip": (b"not gzip at all", "bill.csv.gz", "cannot be read"),
    "bzip2": (bz2.compress(LINE.encode()), "bill.csv", "is compressed by bzip2: unpack it"),
    "zip": (b"PK\x03\x04" + bytes(60), "bill.csv", "call it .zip"),
    "parquet": (b"PAR1" + bytes(60), "bill.csv", "call it .parquet"),
    "excel": (b"PK", "bill.xlsx", "is neither .csv, .csv.gz, .zip nor .parquet"),
    "html": ("<!doctype html>\n<title>Sign in</title>", "bill.csv", "copy the bill again"),
    "xml": ('\ufeff\n<?xml version="1.0"?><Error/>', "bill.csv", "copy the bill again"),
    "json": ('{"BilledCost": 1, "EffectiveCost": 1}', "bill.csv", "choose csv or Parquet"),
    "list": ('[{"BilledCost": 1}]', "bill.csv", "choose csv or Parquet"),
    "nothing": ("", "bill.csv", "is empty; its first line must name its columns"),
    "an empty line": ("\n", "bill.csv", "is empty"),
    "a header alone": (legacy([]), "bill.csv", "holds no rows: nothing was charged yet"),
    "another bill": ("Service,Total\nEC2,1\n", "bill.csv", "its columns are Service, Total"),
    "capitals": (LINE, "BILL.CSV", "rename it bill.csv"),
    "hidden": (LINE, "_bill.csv", "a name that begins with an underscore"),
    "semicolons": (LINE.replace(",", ";"), "bill.csv", "separates its fields by semicolons"),
    "tabs": (LINE.replace(",", "\t"), "bill.csv", "separates its fields by tabs"),
    "bars": (LINE.replace(",", "|"), "bill.csv", "separates its fields by bars"),
    "utf-16": (LINE.encode("utf-16"), "bill.csv", "is written in UTF-16; save it as UTF-8"),
    "utf-16 unmarked": (LINE.encode("utf-16-le"), "bill.csv", "is written in UTF-16"),
    "latin-1": (
        legacy([{"resourceTags/user:\u00e9quipe": "x"}]).encode("latin-1"),
        "bill.csv",
        "is not written in UTF-8",
    ),
    "a column twice": (
        legacy([{"lineitem/unblendedcost": "2"}]),
        "bill.csv",
        "names column lineitem/unblendedcost twice, once as lineItem/UnblendedCost",
    ),
    "blanks": (LINE.replace(",", " , ", 4), "bill.csv", "has blanks around its columns' names"),
    "two currencies": (
        legacy([{}, {"lineItem/CurrencyCode": "EUR"}]),
        "bill.csv",
        "charges in EUR and USD",
    ),
    "a column of each line": (
        legacy([{}], without=["lineItem/CurrencyCode"]),
        "bill.csv",
        "has no column lineItem/CurrencyCode; choose it in the report's content",
    ),
    "a column of its kind": (
        legacy([{"lineItem/LineItemType": "SavingsPlanCoveredUsage"}]),
        "bill.csv",
        "no column savingsPlan/SavingsPlanEffectiveCost",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_47_a_file_that_cannot_be_read_is_named_in_one_sentence(tmp_path: Path, case: str) -> None:
    content, name, sentence = FILES[case]
    said = refused(written(tmp_path, content, name))
    assert sentence in said
    assert "\n" not in said
    assert "_corrupt_line" not in said


def cur(path: Path, *, kind: pa.DataType | None = None, **changes: Any) -> Path:
    """Write one line of a CUR 2.0; `kind` is that of its cost."""
    row = {**bills.CUR_ROW, "resource_tags": list(OURS.items()), **changes}
    columns = {name: pa.array([value]) for name, value in row.items() if name != "resource_tags"}
    if kind is not None:
        cost = "line_item_unblended_cost"
        columns[cost] = columns[cost].cast(kind)
    tagged = row["resource_tags"]
    is_list = tagged and isinstance(tagged[0], dict)
    of = None if is_list else pa.map_(pa.string(), pa.string())
    columns["resource_tags"] = pa.array([tagged], of)
    pq.write_table(pa.table(columns), path)
    return path


def test_49_tags_as_a_list_in_parquet_are_read_and_the_first_of_two_counts(tmp_path: Path) -> None:
    pairs = [{"key": key, "value": value} for key, value in OURS.items()]
    again = {"key": "stillwater:cluster", "value": "another"}
    path = cur(tmp_path / "bill.parquet", resource_tags=[*pairs, again])
    _, rows, _ = ingested(path)
    assert [(row.cluster, row.billed_cost) for row in rows] == [("harbour", 1)]


def test_61_tags_as_fields_of_their_own_in_an_export_are_read(tmp_path: Path) -> None:
    # As pandas and pyarrow write dictionaries of tags.
    folder = bills.cur_export(tmp_path, [{}, {}])
    (path,) = folder.glob("data/*/*.parquet")
    table = pq.ParquetFile(path).read()
    kind = pa.struct([(key, pa.string()) for key in OURS])
    place = table.schema.get_field_index("resource_tags")
    pq.write_table(
        table.set_column(place, "resource_tags", pa.array([OURS, dict.fromkeys(OURS)], kind)), path
    )
    _, rows, _ = ingested(folder)
    assert {(row.cluster, row.billed_cost) for row in rows} == {("harbour", 1), (None, 1)}


@pytest.mark.parametrize("kind", [pa.decimal128(38, 18), pa.int64()], ids=str)
def test_50_files_that_give_a_column_two_types_are_one_bill(
    tmp_path: Path, kind: pa.DataType
) -> None:
    folder = tmp_path / "month"
    folder.mkdir()
    cur(folder / "a.parquet", line_item_unblended_cost=2.5)
    cur(folder / "b.parquet", line_item_unblended_cost=1.0, kind=kind)
    came, rows, _ = ingested(folder)
    assert came.billed == sum(row.billed_cost for row in rows) == Decimal("3.5")
    assert came.lines == 2


def test_51_any_codec_of_parquet_is_read(tmp_path: Path) -> None:
    path = cur(tmp_path / "bill.parquet")
    pq.write_table(pq.read_table(path), path, compression="brotli")
    came, _, _ = ingested(path)
    assert (came.lines, came.billed) == (1, 1)


def test_53_of_tags_that_differ_by_case_the_one_that_is_asked_for_is_found(tmp_path: Path) -> None:
    tags = {"resourceTags/user:Owner": "first", "resourceTags/user:owner": "second"}
    path = written(tmp_path, legacy([tags]))
    for key, value in (("Owner", "first"), ("owner", "second"), ("OWNER", "first")):
        came, rows, _ = ingested(path, KafkaTags(cluster=key))
        assert (came.lines, [row.billed_cost for row in rows]) == (1, [1.25])
        assert [row.cluster for row in rows] == [value]


def locked(content: str) -> bytes:
    """Pack an archive that says of its file that a password is needed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bill.csv", content)
    raw = bytearray(packed.getvalue())
    for place in (6, raw.rfind(b"PK\x01\x02") + 8):
        raw[place] |= 1
    return bytes(raw)


@pytest.mark.parametrize("kind", ["cut off", "locked"])
def test_55_a_file_that_is_cut_off_or_locked_says_so(tmp_path: Path, kind: str) -> None:
    whole = legacy([{}] * 50)
    if kind == "locked":
        path = written(tmp_path, locked(whole), "bill.zip")
        assert "needs a password; pack it again without one" in refused(path)
    else:
        path = written(tmp_path, gzip.compress(whole.encode(), mtime=0)[:-20], "bill.csv.gz")
        assert "ends before its data does; copy it again" in refused(path)


def test_56_times_of_another_type_are_named_by_their_column(tmp_path: Path) -> None:
    path = cur(tmp_path / "bill.parquet", line_item_usage_start_date=True)
    said = refused(path)
    assert "line_item_usage_start_date 'True' is not a time" in said
