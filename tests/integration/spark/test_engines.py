"""A bill added up by Spark and by this process, tables in Iceberg and in Parquet: all the same."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from core.ground.errors import InvalidInput
from local.bills import bulk
from local.bills.cluster import ClusterBill, lines
from local.bills.export import Layout, write
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.rows import LONG, STRING, struct
from spark.tables import IcebergStore, ParquetStore, Store, Table
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


# --- Tables keep whole months, and nothing moves a total.

OLD = Table("counts", struct(billing_period=STRING, a=LONG))
NEW = Table("counts", struct(billing_period=STRING, a=LONG, b=LONG))


@pytest.fixture(params=["iceberg", "parquet", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "iceberg":
        session = request.getfixturevalue("session")
        return IcebergStore(session, f"here.{tmp_path.name.replace('-', '_')}")
    if request.param == "s3":
        _, variables = request.getfixturevalue("bucket")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return ParquetStore(f"s3://bills/{tmp_path.name}")
    return ParquetStore(str(tmp_path / "tables"))


def kept(store: Store, table: Table) -> list[tuple[object, ...]]:
    return sorted(map(tuple, store.rows(table)))


def test_a_write_replaces_its_months_and_leaves_the_others(store: Store) -> None:
    assert kept(store, OLD) == []
    store.replace(OLD, [("2026-09", 1), ("2026-10", 2), ("2026-10", 3)], ["2026-09", "2026-10"])
    store.replace(OLD, [("2026-10", 4)], ["2026-10"])
    assert kept(store, OLD) == [("2026-09", 1), ("2026-10", 4)]
    store.replace(OLD, [], ["2026-10"])
    assert kept(store, OLD) == [("2026-09", 1)]
    # A column that a newer version adds is null in older months.
    assert kept(store, NEW) == [("2026-09", 1, None)]
    store.replace(NEW, [("2026-10", 2, 3)], ["2026-10"])
    assert kept(store, NEW) == [("2026-09", 1, None), ("2026-10", 2, 3)]


def test_iceberg_keeps_what_each_refresh_said(session: SparkSession) -> None:
    store = IcebergStore(session, "here.audit")
    for count in (1, 2):
        store.replace(OLD, [("2026-10", count)], ["2026-10"])
    first, _ = session.sql("SELECT snapshot_id FROM here.audit.counts.history").collect()
    then = session.read.option("versionAsOf", first[0]).table("here.audit.counts").collect()
    assert [row.a for row in then] == [1]
    changed = Table("counts", struct(billing_period=STRING, a=STRING))
    with pytest.raises(InvalidInput, match="holds a as another type"):
        store.replace(changed, [("2026-10", "x")], ["2026-10"])


@pytest.mark.long
def test_iceberg_lets_go_of_snapshots_that_are_too_old_for_an_audit(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SNAPSHOTS_KEPT", 2)
    store = IcebergStore(session, "here.expiry")
    for number in range(4):
        store.replace(OLD, [("2026-10", number)], ["2026-10"])
    snapshots = "SELECT snapshot_id FROM here.expiry.counts.snapshots"
    store.tidy(datetime.now(UTC))
    assert session.sql(snapshots).count() == 4
    store.tidy(datetime.now(UTC) + timedelta(days=tables.SNAPSHOT_DAYS + 1))
    assert session.sql(snapshots).count() == 2
    assert kept(store, OLD) == [("2026-10", 3)]
