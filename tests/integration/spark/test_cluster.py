"""The very wheel that EMR is given, on a cluster of processes, says what local[*] says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from core.cost.pricing import plain
from core.settings import facts
from infra.analytics import spark_wheel
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import truth
from spark import findings, tables
from spark.ingest import bill
from spark.jobs import cost, every, ingest, nodes
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


@pytest.mark.long
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
