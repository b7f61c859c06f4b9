"""More traps of bills (13 to 24, 41, 42): how files are written."""

from __future__ import annotations

import io
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from spark import tables
from tests.unit.spark.written import ingested, legacy, refused, written


def test_15_a_byte_order_mark_and_carriage_returns_are_read(tmp_path: Path) -> None:
    content = "\ufeff" + legacy([{}, {}]).replace("\n", "\r\n")
    came, rows, _ = ingested(written(tmp_path, content))
    assert (came.lines, came.billed, sum(came.quarantined.values())) == (2, Decimal("2.5"), 0)
    assert sum(row.billed_cost for row in rows) == Decimal("2.5")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_16_a_field_over_several_lines_is_read(tmp_path: Path, end: str) -> None:
    text = legacy([{}, {"lineItem/LineItemDescription": f"two{end}lines, or{end}three"}, {}])
    came, _, store = ingested(written(tmp_path, text))
    assert (came.lines, came.billed) == (3, Decimal("3.75"))
    assert store.rows(tables.QUARANTINE) == []


def test_17_a_quote_that_is_never_closed_swallows_no_line(tmp_path: Path) -> None:
    lines = legacy([{}] * 6).splitlines()
    for damaged in (2, 5):
        lines[damaged] = lines[damaged].replace("an hour", '"an hour')
    came, rows, _ = ingested(written(tmp_path, "\n".join(lines) + "\n"))
    assert (came.lines, sum(came.quarantined.values())) == (6, 2)
    assert sum(row.billed_cost for row in rows) == 4 * Decimal("1.25")


@pytest.mark.parametrize("same", [True, False], ids=["the same header", "another"])
def test_18_two_files_glued_together_are_named(tmp_path: Path, same: bool) -> None:
    second = legacy([{}])
    if not same:
        header, *rest = second.splitlines()
        second = "\n".join([",".join(reversed(header.split(","))), *rest]) + "\n"
    said = refused(written(tmp_path, legacy([{}]) + second))
    assert "a second header among its lines" in said


def test_22_legacy_without_resource_ids_is_read_by_component_and_says_so(tmp_path: Path) -> None:
    came, rows, _ = ingested(written(tmp_path, legacy([{}, {}])))
    assert [(row.component, row.charges, row.resource_id) for row in rows] == [
        ("EC2 instances", 2, None)
    ]
    assert "Include resource IDs" in came.notes[0]


def test_41_every_file_of_a_zip_archive_is_read(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("export/", "")
        archive.writestr("export/a.csv", legacy([{}]))
        archive.writestr("export/b.csv", legacy([{}, {}]))
        archive.writestr("__MACOSX/export/._a.csv", "resources")
    came, _, _ = ingested(written(tmp_path, packed.getvalue(), "bill.zip"))
    assert (came.lines, came.billed) == (3, Decimal("3.75"))


def test_42_a_folder_without_a_manifest_is_read_whole_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    for month in ("2026-10", "2026-11"):
        (folder / f"billing_period={month}").mkdir(parents=True)
        dated = {
            "bill/BillingPeriodStartDate": f"{month}-01T00:00:00Z",
            "lineItem/UsageStartDate": f"{month}-20T12:00:00Z",
        }
        written(folder / f"billing_period={month}", legacy([dated]), "part-0.csv")
    came, rows, _ = ingested(folder)
    assert {row.billing_period: row.billed_cost for row in rows} == {
        "2026-10": Decimal("1.25"), "2026-11": Decimal("1.25")
    }  # fmt: skip
    assert "all 2 data files" in " ".join(came.notes)
