"""More traps of bills (81 to 90): what folders, manifests, months and letters say of lines."""

from __future__ import annotations

import json
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark import tables
from tests.unit.spark import bills
from tests.unit.spark.written import ingested, legacy, refused, written

ACCOUNTS = ("123456789012", "000000000012")
TODAY = date(2026, 12, 20)


@pytest.mark.parametrize("called", ["{}", "lineItem_UsageAccountId={}", "account={}"])
def test_81_an_account_that_only_a_folder_is_named_for_is_read(tmp_path: Path, called: str) -> None:
    for number, account in enumerate(ACCOUNTS):
        folder = tmp_path / "bill" / called.format(account)
        folder.mkdir(parents=True)
        lines = [{"lineItem/UnblendedCost": f"{number}.5"}]
        written(folder, legacy(lines, without=["lineItem/UsageAccountId"]), f"{number}.csv")
    came, rows, _ = ingested(tmp_path / "bill")
    assert came.billed == 2
    assert {row.account: row.billed_cost for row in rows} == dict(
        zip(ACCOUNTS, (Decimal("0.5"), Decimal("1.5")), strict=True)
    )


def test_81_a_column_of_the_files_own_counts_before_their_folders(tmp_path: Path) -> None:
    folder = tmp_path / "bill" / ACCOUNTS[1]
    folder.mkdir(parents=True)
    written(folder, legacy([{}]))
    _, rows, _ = ingested(tmp_path / "bill")
    assert [row.account for row in rows] == [ACCOUNTS[0]]


def test_82_a_month_whose_manifest_names_no_files_keeps_no_other_from_being_read(
    tmp_path: Path,
) -> None:
    bill = bills.cur_export(tmp_path / "bill", [{}])
    (manifest,) = bill.rglob("*-Manifest.json")
    empty = Path(str(manifest).replace("2026-11", "2026-12"))
    empty.parent.mkdir(parents=True)
    empty.write_text('{"dataFiles": []}')
    came, rows, _ = ingested(bill)
    assert came.billed == sum(row.billed_cost for row in rows) == 1
    assert "The manifest of 2026-12 names no files: nothing of it was delivered." in came.notes
    manifest.unlink()
    assert "names no files" in refused(bill)


def test_85_a_month_that_does_not_name_the_cluster_is_told_of_where_another_does(
    tmp_path: Path,
) -> None:
    ours = '{"stillwater:cluster": "harbour"}'
    was = {"BillingPeriodStart": "2026-10-01 00:00:00", "ChargePeriodStart": "2026-10-07 00:00:00"}
    path = bills.focus_file(tmp_path / "bill.csv", [{}, {**was, "Tags": ours}])
    _, _, store = ingested(path, cluster="harbour")
    noted = {row.billing_period: row.notes for row in store.rows(tables.DELIVERIES)}
    assert "No line of 2026-11 carries the tag stillwater:cluster = harbour" in noted["2026-11"]
    assert "carries the tag" not in noted["2026-10"]


def in_capitals(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([name.upper() for name in table.column_names]), path)


def test_88_files_and_months_that_write_columns_in_other_letters_are_one_bill(
    tmp_path: Path,
) -> None:
    ours = {"user_stillwater_cluster": "harbour"}
    bill = bills.cur_export(tmp_path / "bill", [{"resource_tags": ours}])
    (data,) = bill.rglob("*.parquet")
    in_capitals(shutil.copy(data, data.with_name("export-00002.snappy.parquet")))
    (manifest,) = bill.rglob("*-Manifest.json")
    (named,) = json.loads(manifest.read_text())["dataFiles"]
    both = [named, named.replace("00001", "00002")]
    manifest.write_text(json.dumps({"dataFiles": both}))
    _, rows, _ = ingested(bill)
    assert {row.cluster: row.billed_cost for row in rows} == {"harbour": 2}


def test_89_a_file_that_lacks_the_cost_is_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    bill = bills.cur_export(tmp_path / "bill", [{}])
    later = bills.cur_export(tmp_path / "later", [{}], without=["line_item_unblended_cost"])
    for path in later.rglob("*.*"):
        place = bill / str(path.relative_to(later)).replace("2026-11", "2026-12")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes().replace(b"2026-11", b"2026-12"))
    came, _, _ = ingested(bill)
    assert (came.billed, came.lines, sum(came.quarantined.values())) == (1, 2, 1)


def test_90_a_tag_longer_than_any_of_awss_is_cut_short(tmp_path: Path) -> None:
    tags = json.dumps({"kafka-note": "x" * 100_000, "k" * 5000: "v"})
    _, _, store = ingested(bills.focus_file(tmp_path / "bill.csv", [{"Tags": tags}]))
    found = store.rows(tables.TAGS_FOUND)
    assert [len(row.value) for row in found if row.key == "kafka-note"] == [257]
    assert max(len(row.key) for row in found) == 257
