"""The very wheel that EMR is given, on a cluster of processes, says what local[*] says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

from core.cost.pricing import plain
from core.settings import facts
from infra.analytics import spark_wheel
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import truth
from spark import findings, tables
from spark.ingest import arrow, bill
from spark.jobs import cost, every, ingest, nodes, transfer
from spark.tables import ParquetStore
from tests.integration.spark import simulated, standalone
from tests.integration.spark.simulated import FACTS, Rotation

pytestmark = pytest.mark.integration
ROTATION = Rotation(10, simulated.at(10, 1, 1), 240)
BILL = ClusterBill(name=FACTS.cluster, hours=6)
TABLES = (
    *(tables.USAGE, tables.COST, tables.TRANSFER, tables.NODE_SHARES),
    *(findings.UNIT_TABLE, findings.ANOMALIES_TABLE, findings.STORAGE_TABLE),
    *(findings.RESYNC_TABLE, findings.ECONOMICS_TABLE),
)


@dataclass(frozen=True)
class Given:
    """A bill and what is known beside it, as files."""

    folder: Path

    @property
    def arguments(self) -> list[str]:
        named = ("bill", "metrics", "history", "facts")
        return [word for name in named for word in (f"--{name}", str(self.path(name)))]

    def path(self, name: str) -> Path:
        return self.folder / {"metrics": "metrics.json", "facts": "facts.json"}.get(name, name)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    found = Given(tmp_path_factory.mktemp("given"))
    write(found.path("bill"), lines(BILL), files=2)
    series = [*simulated.series(ROTATION), *simulated.load(ROTATION)]
    simulated.write_metrics(found.path("metrics"), series)
    simulated.write_history(found.path("history"), [ROTATION])
    found.path("facts").write_text(facts.to_json(FACTS))
    return found


@pytest.fixture(scope="module")
def here(session: SparkSession, given: Given, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables as local[*] makes them."""
    store = ParquetStore(session, str(tmp_path_factory.mktemp("here")))
    delivery = bill.read(session, given.path("bill"))
    ingest.run(session, delivery, store, now=datetime.now(UTC), cluster=FACTS.cluster)
    cost.run(store, [BILL.period])
    nodes.run(session, store, delivery, [BILL.period])
    inputs = every.Inputs(
        month=BILL.period,
        metrics=str(given.path("metrics")),
        history=str(given.path("history")),
        facts=FACTS,
        book=every.book_of(FACTS),
    )
    every.run(session, store, inputs)
    return store


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone.cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def test_every_job_says_on_a_cluster_what_it_says_on_one_machine(
    session: SparkSession, given: Given, here: ParquetStore, master: str, tmp_path: Path
) -> None:
    python = standalone.fresh_python(tmp_path / "fresh")
    launcher = tmp_path / "launcher.py"
    launcher.write_text(spark_wheel.LAUNCHER)
    arguments = [*given.arguments, "--all-jobs", "--tables", str(tmp_path / "there")]
    wheel = spark_wheel.build(tmp_path / "wheel")
    done = standalone.submit(master, python, wheel, launcher, arguments, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    known = truth(lines(BILL))
    assert f"{known.lines} lines of {BILL.period} worth {plain(known.billed)}" in done.stdout
    there = ParquetStore(session, str(tmp_path / "there"))
    for table in TABLES:
        rows = set(there.read(table).collect())
        assert rows == set(here.read(table).collect()), table.name
        assert rows or table is findings.ANOMALIES_TABLE, table.name


@pytest.fixture(scope="module")
def s3(given: Given) -> Iterator[dict[str, str]]:
    """A stand-in for S3 with the bill in it: what a process must know to reach it."""
    server = ThreadedMotoServer(standalone.LOOPBACK, 0)
    server.start()
    host, port = server.get_host_and_port()
    reached = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "standin",
        "AWS_SECRET_ACCESS_KEY": "standin",
        "AWS_REGION": "us-east-1",
    }
    client = boto3.client(
        "s3",
        region_name=reached["AWS_REGION"],
        endpoint_url=reached["AWS_ENDPOINT_URL"],
        aws_access_key_id="standin",
        aws_secret_access_key="standin",
    )
    client.create_bucket(Bucket="bills")
    root = given.path("bill")
    for path in (path for path in root.rglob("*") if path.is_file()):
        client.upload_file(str(path), "bills", f"exports/{path.relative_to(root)}")
    yield reached
    server.stop()


def test_workers_add_up_in_arrow_what_they_read_from_s3_as_spark_reads_it_line_by_line(
    session: SparkSession,
    given: Given,
    s3: dict[str, str],
    master: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No Spark here can read S3: an answer at all is one of Arrow's.
    launcher = tmp_path / "launcher.py"
    launcher.write_text(spark_wheel.LAUNCHER)
    arguments = ["--bill", "s3://bills/exports", "--tables", str(tmp_path / "there")]
    wheel = spark_wheel.build(tmp_path / "wheel")
    python = Path(sys.executable)
    done = standalone.submit(master, python, wheel, launcher, arguments, tmp_path, s3)
    assert done.returncode == 0, done.stderr[-3000:]
    monkeypatch.setattr(arrow, "opened", lambda *_: None)
    slow = ParquetStore(session, str(tmp_path / "slow"))
    ingest.run(session, bill.read(session, given.path("bill")), slow, now=datetime.now(UTC))
    cost.run(slow, [BILL.period])
    transfer.run(session, slow, [BILL.period])
    there = ParquetStore(session, str(tmp_path / "there"))
    for table in (tables.USAGE, tables.COST, tables.TRANSFER):
        rows = there.read(table).collect()
        assert sorted(map(repr, rows)) == sorted(map(repr, slow.read(table).collect())), table.name
        assert rows
