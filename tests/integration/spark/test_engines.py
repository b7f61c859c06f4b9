"""A bill added up by Spark and by this process: the same tables, row by row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from local.bills import bulk
from local.bills.cluster import ClusterBill, lines
from local.bills.export import Layout, write
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.tables import ParquetStore
from tests.unit.spark import bills

pytestmark = pytest.mark.integration
NOW = datetime(2026, 12, 20, tzinfo=UTC)
TABLES = (
    *(tables.USAGE, tables.COST, tables.TRANSFER, tables.NODE_SHARES),
    *(tables.QUARANTINE, tables.TAGS_FOUND),
)


def many(folder: Path) -> Path:
    """Two months in pieces, of which the second has columns that the first has not."""
    bulk.write(folder, rows=400_000, months=["2026-09", "2026-10"])
    for number, path in enumerate(sorted(folder.glob("data/*/*.parquet"))):
        table = pq.read_table(path, partitioning=None)
        if "2026-09" in str(path):
            table = table.drop_columns(["line_item_net_unblended_cost", "resource_tags"])
        pq.write_table(table, path, row_group_size=50_000 + number)
    return folder


def odd(folder: Path) -> Path:
    """Lines that cannot be read, discounts beside net columns, and tags of nobody."""
    broken = [{}, {"lineItem/UnblendedCost": "x"}, {"lineItem/UsageStartDate": "yesterday"}]
    discount = {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-0.25"}
    net = {"lineItem/NetUnblendedCost": "1.5", "resourceTags/user:team": "web"}
    folder.mkdir()
    for name, rows in (("a.csv", [*broken, discount]), ("b.csv", [net, net])):
        bills.written(folder, bills.legacy(rows), name)
    return folder


def clusters_bill(layout: Layout, suffix: str) -> Callable[[Path], Path]:
    return lambda folder: write(folder, lines(ClusterBill(hours=30)), layout=layout, suffix=suffix)


MADE: dict[str, Callable[[Path], Path]] = {
    "many": many,
    "odd": odd,
    "CUR 2.0": clusters_bill(Layout.CUR2, ".snappy.parquet"),
    "legacy": clusters_bill(Layout.LEGACY, ".csv.zip"),
    "FOCUS": clusters_bill(Layout.FOCUS_12, ".csv.gz"),
    "by hand": lambda folder: bills.cur_export(folder, [{}, {"line_item_unblended_cost": None}]),
}
LARGE = ("many", "odd")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long if each in LARGE else ()) for each in MADE]
)
def test_both_make_the_same_tables(session: SparkSession, tmp_path: Path, name: str) -> None:
    place = MADE[name](tmp_path / "bill")
    stores = []
    for engine in (None, lambda _: session):
        store = ParquetStore(str(tmp_path / f"{len(stores)}"))
        delivery = bill.read(place, engine=engine)
        months = ingest.run(delivery, store, now=NOW).months
        ingest.write_node_shares(store, delivery, list(months))
        stores.append(store)
    for table in TABLES:
        here, there = (sorted(map(repr, store.rows(table))) for store in stores)
        assert here == there, table.name
