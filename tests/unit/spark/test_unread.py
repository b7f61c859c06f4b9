"""What a report on one's own machine reads again of a bill: what is not final, or has changed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.ground.errors import InvalidInput
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import BillLine
from spark import tables
from spark.jobs import every
from spark.jobs.every import Inputs, Known
from spark.report.formats import as_json
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills

BEFORE, FINAL, OPEN = "2024-01", "2024-02", f"{datetime.now(UTC):%Y-%m}"


def month(period: str, hours: int = 2) -> Iterable[BillLine]:
    return lines(ClusterBill(period=period, hours=hours))


def spoilt(files: Iterable[Path]) -> None:
    """Make files unreadable by any reader, and leave their sizes and times as they are."""
    for path in files:
        was = path.stat()
        path.write_bytes(b"?" * was.st_size)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def data_of(bill: Path, *periods: str) -> list[Path]:
    return [each for period in periods for each in bill.glob(f"data/*={period}/**/*.parquet")]


@pytest.mark.long
def test_a_final_month_is_read_once_and_again_where_aws_restates_it(tmp_path: Path) -> None:
    store, bill = ParquetStore(str(tmp_path / "tables")), tmp_path / "bill"
    asked = Inputs(bill=bill, month=FINAL)

    def reported(**changes: object) -> Known:
        return every.run(store, dataclasses.replace(asked, **changes))

    for period in (BEFORE, FINAL, OPEN):
        write(bill, month(period), execution="first")
    first = reported()
    assert first.kept == []
    spoilt(data_of(bill, BEFORE, FINAL))
    write(bill, month(OPEN, 3), execution="second")
    again = reported()
    assert again.kept == [BEFORE, FINAL]
    said = "there is also"
    told, was = (as_json(made.document) for made in (again, first))
    assert [row for row in told.splitlines() if said not in row] == [
        row for row in was.splitlines() if said not in row
    ]
    # By another tag Kafka is something else in every month.
    with pytest.raises(InvalidInput, match="is damaged"):
        reported(kafka=KafkaTags("team"))
    write(bill, month(FINAL, 3), execution="restated")
    restated = reported()
    assert restated.kept == [BEFORE]
    assert restated.bill_total > first.bill_total
    assert f"AWS has restated {FINAL} since it was final" in as_json(restated.document)


def test_files_without_a_manifest_are_read_again_where_one_of_them_changed(tmp_path: Path) -> None:
    store, folder = ParquetStore(str(tmp_path / "tables")), tmp_path / "bill"
    folder.mkdir()
    for number, period in enumerate((BEFORE, FINAL), start=1):
        start = f"{period}-01 00:00:00"
        row = {"BillingPeriodStart": start, "ChargePeriodStart": start, "ResourceId": f"i-{number}"}
        bills.focus_file(folder / f"{period}.csv", [row])
    first = every.run(store, Inputs(bill=folder))
    spoilt([folder / f"{FINAL}.csv"])
    again = every.run(store, Inputs(bill=folder))
    assert (first.kept, again.kept) == ([], [BEFORE, FINAL])
    assert again.bill_total == first.bill_total == 1
    bills.focus_file(folder / "late.csv", [{"ResourceId": "i-3"}])
    # Then all of them are read, and the one that is spoilt is found.
    with pytest.raises(InvalidInput, match="2024-02"):
        every.run(store, Inputs(bill=folder))


def test_a_month_that_is_delivered_again_without_a_line_holds_nothing(tmp_path: Path) -> None:
    bill = tmp_path / "bill"
    for period in (FINAL, OPEN):
        write(bill, month(period), execution="first")
    store = ParquetStore(str(tmp_path / "tables"))
    every.run(store, Inputs(bill=bill))
    (data,) = data_of(bill, OPEN)
    bills.emptied(data)
    every.run(store, Inputs(bill=bill))
    noted = {row.billing_period: row for row in store.rows(tables.DELIVERIES)}
    assert (noted[OPEN].lines, noted[OPEN].billed_cost) == (0, 0)
    assert noted[OPEN].previous_billed_cost > 0
    left = {row.billing_period for row in store.rows(tables.USAGE)}
    assert left == {FINAL}
