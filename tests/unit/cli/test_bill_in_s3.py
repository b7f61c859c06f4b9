"""Bills in S3, on moto: of an export what its newest manifests name, of the rest everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pyspark.sql import Row

from cli import emr
from core.ground.errors import InvalidInput, StillwaterError
from spark import schemas, tables
from spark.files import LocalFiles, fingerprint
from spark.ingest import manifest
from spark.months import Refresh
from spark.tables import Table
from spark.tag_keys import KafkaTags
from tests.unit.spark import month

EXPORT = "s3://bills/prefix/export"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="bills")
        yield client


def put(s3: Any, name: str, body: bytes = b"x") -> None:
    s3.put_object(Bucket="bills", Key=f"prefix/export/{name}", Body=body)


def deliver(s3: Any, period: str, execution: str) -> str:
    """Put a month's refresh as an export that keeps each of them does; return its folder."""
    folder = f"BILLING_PERIOD={period}/{execution}"
    file = f"data/{folder}/bill-00001.snappy.parquet"
    put(s3, file, execution.encode())
    manifest = {"dataFiles": [f"{EXPORT}/{file}"]}
    put(s3, f"metadata/{folder}/bill-Manifest.json", json.dumps(manifest).encode())
    return folder


def copied_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_the_newest_refresh_of_a_month_is_copied_and_nothing_else(
    s3: Any, tmp_path: Path, scheme: str
) -> None:
    deliver(s3, "2026-10", "2026-11-01")
    newest = deliver(s3, "2026-10", "2026-11-02")
    deliver(s3, "2026-11", "2026-11-02")
    put(s3, "data/BILLING_PERIOD=2026-10/left-behind.snappy.parquet")
    address = EXPORT.replace("s3:", f"{scheme}:", 1)
    found = emr.copy_bill(s3, f"{address}/", tmp_path / "copy", ["2026-10"])
    assert copied_files(found) == {
        f"data/{newest}/bill-00001.snappy.parquet",
        f"metadata/{newest}/bill-Manifest.json",
    }
    file = found / "data" / newest / "bill-00001.snappy.parquet"
    assert file.read_bytes() == b"2026-11-02"


def test_a_delivery_that_lacks_a_file_is_refused(s3: Any, tmp_path: Path) -> None:
    folder = deliver(s3, "2026-10", "2026-11-01")
    s3.delete_object(Bucket="bills", Key=f"prefix/export/data/{folder}/bill-00001.snappy.parquet")
    with pytest.raises(InvalidInput, match="the delivery is not complete"):
        emr.copy_bill(s3, EXPORT, tmp_path)


def test_one_file_is_copied_under_its_name(s3: Any, tmp_path: Path) -> None:
    put(s3, "focus.csv.gz", b"bill")
    put(s3, "focus.csv.gz.old", b"other")
    found = emr.copy_bill(s3, f"{EXPORT}/focus.csv.gz", tmp_path / "copy")
    assert (found.name, found.read_bytes()) == ("focus.csv.gz", b"bill")


def test_of_another_folder_everything_is_copied_and_nothing_leads_out_of_it(
    s3: Any, tmp_path: Path
) -> None:
    for name in ("day=1/a.jsonl", "day=2/b.jsonl", "day=2/", "../outside.jsonl"):
        put(s3, name)
    found = emr.copy_everything(s3, EXPORT, tmp_path / "copy")
    assert copied_files(found) == {"day=1/a.jsonl", "day=2/b.jsonl"}
    assert copied_files(tmp_path) == {"copy/day=1/a.jsonl", "copy/day=2/b.jsonl"}


def test_nothing_at_an_address_is_said(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is nothing at s3://bills/absent"):
        emr.copy_bill(s3, "s3://bills/absent", tmp_path)


def test_what_s3_refuses_names_the_rights_that_are_needed(s3: Any, tmp_path: Path) -> None:
    with pytest.raises(StillwaterError, match="You need s3:ListBucket on the bucket"):
        emr.copy_bill(s3, "s3://another/export", tmp_path)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (None, ["2026-10", "2026-11"]),
        ("2026-11", ["2026-10", "2026-11"]),
        ("2026-10", ["2026-10"]),
        ("2026-08", ["2026-08"]),
    ],
)
def test_the_month_asked_for_comes_with_the_one_before_it(
    s3: Any, asked: str | None, named: list[str]
) -> None:
    for period in ("2026-08", "2026-10", "2026-11"):
        deliver(s3, period, "first")
    assert emr.months(s3, EXPORT, asked) == named


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("2026-09", "has no delivery of 2026-09, only 2026-10"),
        ("October", "--month October is no month; write YYYY-MM"),
    ],
)
def test_a_month_that_was_never_delivered_is_named(s3: Any, asked: str, sentence: str) -> None:
    deliver(s3, "2026-10", "first")
    with pytest.raises(InvalidInput, match=sentence):
        emr.months(s3, EXPORT, asked)


def test_of_a_bill_that_is_one_file_no_month_is_named(s3: Any) -> None:
    put(s3, "focus.csv.gz", b"bill")
    assert emr.months(s3, f"{EXPORT}/focus.csv.gz", "2026-10") == []


def test_a_folder_is_kept_once_something_is_in_it(s3: Any) -> None:
    assert emr.existing_folder(s3, f"{EXPORT}/metrics") is None
    put(s3, "metrics/answer.json", b"{}")
    assert emr.existing_folder(s3, f"{EXPORT}/metrics") == f"{EXPORT}/metrics"
    assert emr.existing_folder(s3, None) is None


class Tables:
    """A store that holds months as they were when they were last final."""

    def __init__(self, *noted: Row) -> None:
        self._noted = noted

    def rows(self, table: Table) -> list[Row]:
        assert table is tables.DELIVERIES
        return list(self._noted)


def noted(bill: Path, label: str, **months: str) -> Tables:
    """Return tables as a report leaves them that has read a copy of a bill."""
    files = LocalFiles()
    if bill.is_dir():
        found = manifest.refreshes(files, str(bill))[1]
    else:
        found = dict.fromkeys(months, Refresh("", 1, _fingerprint(bill)))
    return Tables(
        *(
            month.row(
                schemas.DELIVERIES,
                billing_period=period,
                bill=label,
                execution=found[period].execution,
                fingerprint=found[period].fingerprint,
                ingested_at=datetime.fromisoformat(read_on),
            )
            for period, read_on in months.items()
        )
    )


def _fingerprint(path: Path) -> str:
    return fingerprint(LocalFiles().versions(str(path)), str(path), [str(path)])


def test_a_final_month_that_tables_hold_is_not_copied_again(s3: Any, tmp_path: Path) -> None:
    folders = {p: deliver(s3, p, "first") for p in ("2026-09", "2026-10", "2026-11")}
    copy = emr.copy_bill(s3, EXPORT, tmp_path)
    held = noted(copy, "bill", **{"2026-10": "2026-11-15", "2026-11": "2026-11-20"})
    assert to_copy(s3, EXPORT, None, held) == (["2026-11"], ["2026-10"])
    assert to_copy(s3, EXPORT, "2026-10", held) == (["2026-09"], ["2026-10"])
    put(s3, f"data/{folders['2026-10']}/bill-00001.snappy.parquet", b"longer")
    assert to_copy(s3, EXPORT, None, held) == (["2026-10", "2026-11"], [])


def test_one_file_that_tables_hold_is_not_copied_again(s3: Any, tmp_path: Path) -> None:
    put(s3, "focus.csv.gz", b"bill")
    copy = emr.copy_bill(s3, f"{EXPORT}/focus.csv.gz", tmp_path)
    held = noted(copy, "focus.csv.gz", **{"2026-10": "2026-11-15"})
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, held) == ([], ["2026-10"])
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, Tables()) == (None, [])
    put(s3, "focus.csv.gz", b"longer")
    assert to_copy(s3, f"{EXPORT}/focus.csv.gz", None, held) == (None, [])


def to_copy(
    s3: Any, address: str, asked: str | None, held: Tables
) -> tuple[list[str] | None, list[str]]:
    return emr.months_to_copy(s3, address, asked, held, KafkaTags())  # type: ignore[arg-type] # all it asks
