"""`stillwater report --warehouse` as a user runs it: Iceberg in a folder, with snapshots."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from cli.main import app
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import truth
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.tables import IcebergStore

pytestmark = pytest.mark.integration
BILL = ClusterBill(name="orders")


@pytest.mark.long
def test_a_report_in_a_warehouse_leaves_tables_that_remember(
    session: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "bill", lines(BILL), execution="first")
    folders = {name: tmp_path / name for name in ("bill", "warehouse", "tables", "output")}
    given = [word for name, path in folders.items() for word in (f"--{name}", str(path))]
    result = CliRunner().invoke(
        app, ["report", *given, "--namespace", "kept.orders", "--format", "md"]
    )
    assert result.exception is None, result.output
    assert (tmp_path / "output" / "report.md").is_file()
    assert not (tmp_path / "tables").exists()
    store = IcebergStore(session, "kept.orders")
    assert billed(store) == truth(lines(BILL)).billed
    more = ClusterBill(name="orders", hours=3)
    write(tmp_path / "bill", lines(more), execution="second")
    ingest.run(bill.read(lambda _: session, tmp_path / "bill"), store, now=datetime.now(UTC))
    assert billed(store) == truth(lines(more)).billed
    name = f"kept.orders.{tables.USAGE.name}"
    first, _ = session.table(f"{name}.history").orderBy("made_current_at").collect()
    then = session.read.option("versionAsOf", first.snapshot_id).table(name).collect()
    assert sum((row.billed_cost for row in then), Decimal(0)) == truth(lines(BILL)).billed


def billed(store: IcebergStore) -> Decimal:
    return sum((row.billed_cost for row in store.read(tables.USAGE).collect()), Decimal(0))
