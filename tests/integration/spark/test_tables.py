"""Tables keep whole months, in Iceberg and in Parquet alike, and nothing moves a total."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

from core.ground.errors import InvalidInput
from spark import tables
from spark.rows import LONG, STRING, struct
from spark.tables import IcebergStore, ParquetStore, Store, Table

pytestmark = pytest.mark.integration
NOW = datetime(2026, 11, 20, tzinfo=UTC)
OLD = Table("counts", struct(billing_period=STRING, a=LONG))
NEW = Table("counts", struct(billing_period=STRING, a=LONG, b=LONG))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a bucket of moto's, which Arrow is led to."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    name = f"tables-{port}"
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket=name)
    yield f"s3://{name}/tables"
    server.stop()


@pytest.fixture(params=["iceberg", "parquet", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "iceberg":
        session = request.getfixturevalue("session")
        return IcebergStore(session, f"here.{tmp_path.name.replace('-', '_')}")
    if request.param == "s3":
        return ParquetStore(request.getfixturevalue("bucket"))
    return ParquetStore(str(tmp_path / "tables"))


def test_a_write_replaces_its_months_and_leaves_the_others(store: Store) -> None:
    assert store.rows(OLD) == []
    store.replace(OLD, [("2026-09", 1), ("2026-10", 2), ("2026-10", 3)], ["2026-09", "2026-10"])
    store.replace(OLD, [("2026-10", 4)], ["2026-10"])
    assert sorted(map(tuple, store.rows(OLD))) == [("2026-09", 1), ("2026-10", 4)]
    store.replace(OLD, [], ["2026-10"])
    assert [tuple(row) for row in store.rows(OLD)] == [("2026-09", 1)]


def test_a_column_that_a_newer_version_adds_is_null_in_older_months(store: Store) -> None:
    store.replace(OLD, [("2026-09", 1)], ["2026-09"])
    assert [tuple(row) for row in store.rows(NEW)] == [("2026-09", 1, None)]
    store.replace(NEW, [("2026-10", 2, 3)], ["2026-10"])
    assert sorted(map(tuple, store.rows(NEW))) == [
        ("2026-09", 1, None),
        ("2026-10", 2, 3),
    ]


def test_iceberg_keeps_what_each_refresh_said(session: SparkSession) -> None:
    store = IcebergStore(session, "here.audit")
    store.replace(OLD, [("2026-10", 1)], ["2026-10"])
    store.replace(OLD, [("2026-10", 2)], ["2026-10"])
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
    assert [tuple(row) for row in store.rows(OLD)] == [("2026-10", 3)]
