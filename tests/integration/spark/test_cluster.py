"""The very code that EMR is given, on a cluster of processes, says what local[*] says."""

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from core.cost.pricing import plain
from core.settings import facts
from infra.analytics import report_job
from local.bills import bulk
from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from local.bills.line import truth
from spark import tables
from spark.ingest import bill
from spark.jobs import every, ingest
from spark.tables import ParquetStore
from tests.unit.spark import simulated
from tests.unit.spark.simulated import FACTS, Rotation

pytestmark = pytest.mark.integration
LOOPBACK = "127.0.0.1"
HOME = Path(pyspark.__file__).parent
PATIENCE_SECONDS = 120.0
# A cluster of a few hundred lines: what starts fastest.
SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
# Two workers of a core and a GiB, each executor a process of its own.
MASTER = "local-cluster[2,1,1024]"


@dataclass(frozen=True)
class Submitter:
    """Runs the jobs by spark-submit on a cluster, where every Python is one that holds nothing.

    The driver and every executor have the packages by the setting that a job on EMR has.
    """

    folder: Path

    def run(
        self,
        *arguments: str,
        packages: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        driver_python: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Return what became of the jobs; `driver_python` is the driver's, where it is another."""
        python = fresh_python(self.folder / "fresh")
        launcher = self.folder / "launcher.py"
        launcher.write_text(ON_WORKERS)
        beside = variables or {}
        settings = {
            # Everything stays on loopback: a driver that asks the resolver for its name waits.
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SMALL_JAVA,
            "spark.local.dir": str(self.folder / "scratch"),
            "spark.sql.warehouse.dir": (self.folder / "warehouse").as_uri(),
            **{f"spark.executorEnv.{name}": value for name, value in beside.items()},
            **(packages or {}),
        }
        return subprocess.run(
            [
                *(str(HOME / "bin" / "spark-submit"), "--master", MASTER),
                *("--driver-java-options", SMALL_JAVA, "--driver-memory", "512m"),
                *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
                *("--py-files", str(report_job.build(self.folder / "jobs")), str(launcher)),
                *(*arguments, "--tables", str(self.folder / "there")),
            ],
            cwd=self.folder,
            env={
                **_environment(),
                **beside,
                "SPARK_HOME": str(self._spark_home()),
                "PYSPARK_PYTHON": str(python),
                "PYSPARK_DRIVER_PYTHON": str(driver_python or python),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=3 * PATIENCE_SECONDS,
        )

    @property
    def tables(self) -> ParquetStore:
        return ParquetStore(str(self.folder / "there"))

    def _spark_home(self) -> Path:
        """Return a home of Spark's in which its workers may write."""
        home = self.folder / "spark-home"
        home.mkdir()
        for path in HOME.iterdir():
            (home / path.name).symlink_to(path)
        return home


def fresh_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment that holds nothing."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def wheels(folder: Path) -> dict[str, str]:
    """Return the setting that brings EMR's packages, each zipped as pip would fetch it for here."""
    made = {}
    for name in PACKAGES:
        path = folder / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as wheel:
            for file in importlib.metadata.files(name) or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    wheel.write(str(file.locate()), file.as_posix())
        made[name] = path.as_uri()
    return report_job.packages(made, HERE)


def _environment() -> dict[str, str]:
    """Return the caller's environment without what would lead to another Spark or other modules."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and not name.startswith(("SPARK_", "PYSPARK_"))
    }
    return {**kept, "SPARK_LOCAL_IP": LOOPBACK}


ROTATION = Rotation(10, simulated.at(10, 1, 1), 240)
PACKAGES = ("numpy", "pandas", "pyarrow", "python-dateutil", "pytz", "six", "tzdata")
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
# Two days: of a bill whose lines all stand on the first of the month no volume is judged.
BILL = ClusterBill(name=FACTS.cluster, hours=30)
TABLES = (
    *(tables.USAGE, tables.COST, tables.TRANSFER, tables.NODE_SHARES, tables.UNIT),
    *(tables.ANOMALIES, tables.STORAGE, tables.RESYNC, tables.ECONOMICS),
)
# As a bill that is too large for the driver has it.
ON_WORKERS = f"from spark import session\n\nsession.LINES_HERE = 0\n{report_job.LAUNCHER}"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bill and what is known beside it, as files: what the jobs are told."""
    folder = tmp_path_factory.mktemp("given")
    files = {"metrics": "metrics.json", "history": "history", "facts": "facts.json"}
    paths = {name: folder / file for name, file in {"bill": "bill", **files}.items()}
    write(paths["bill"], lines(BILL), files=2)
    series = [*simulated.series(ROTATION), *simulated.load(ROTATION)]
    simulated.write_metrics(paths["metrics"], series)
    simulated.write_history(paths["history"], [ROTATION])
    paths["facts"].write_text(facts.to_json(FACTS))
    return paths


def told(given: Mapping[str, Path]) -> list[str]:
    return [word for name, path in given.items() for word in (f"--{name}", str(path))]


@pytest.fixture(scope="module")
def here(
    session: SparkSession, given: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> ParquetStore:
    """The tables as local[*] makes them."""
    store = ParquetStore(str(tmp_path_factory.mktemp("here")))
    delivery = bill.read(given["bill"], engine=lambda _: session)
    ingest.run(delivery, store, now=datetime.now(UTC), cluster=FACTS.cluster)
    ingest.write_node_shares(store, delivery, [BILL.period])
    files = {name: str(given[name]) for name in ("metrics", "history")}
    known = every.Inputs(month=BILL.period, facts=FACTS, book=every.book_of(FACTS), **files)
    every.run(store, known)
    return store


@pytest.fixture
def jobs(tmp_path: Path) -> Submitter:
    return Submitter(tmp_path)


@pytest.mark.long
def test_a_job_without_packages_for_its_python_says_so_and_what_to_do(
    given: dict[str, Path], jobs: Submitter, tmp_path: Path
) -> None:
    # Packages that this Python cannot import, as wheels for another machine are.
    broken = {}
    for name in ("numpy", "pyarrow"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", f"from {name}._of_another_machine import x\n")
        broken[name] = (tmp_path / f"{name}.zip").as_uri()
    done = jobs.run(*told(given), packages=report_job.packages(broken, HERE))
    assert done.returncode == 1
    assert f"Python {HERE} lacks pyarrow, numpy or pandas" in done.stdout
    assert "`stillwater up` brings them" in done.stdout
    assert not (tmp_path / "there").exists()


@pytest.mark.long
def test_workers_that_alone_lack_arrow_are_told_of(given: dict[str, Path], jobs: Submitter) -> None:
    done = jobs.run("--bill", str(given["bill"]), driver_python=Path(sys.executable))
    assert done.returncode == 1
    assert "its workers lack pyarrow" in done.stdout


@pytest.mark.long
def test_every_job_says_on_a_cluster_what_it_says_on_one_machine(
    given: dict[str, Path], here: ParquetStore, jobs: Submitter, tmp_path: Path
) -> None:
    done = jobs.run(*told(given), packages=wheels(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    known = truth(lines(BILL))
    assert f"{known.lines} lines of {BILL.period} worth {plain(known.billed)}" in done.stdout
    for table in TABLES:
        rows = set(jobs.tables.rows(table))
        assert rows == set(here.rows(table)), table.name
        assert rows or table is tables.ANOMALIES, table.name


@pytest.mark.long
def test_workers_with_emrs_packages_add_up_a_bill_in_s3_as_this_process_does(
    jobs: Submitter, bucket: tuple[Any, dict[str, str]], tmp_path: Path
) -> None:
    s3, variables = bucket
    folder = tmp_path / "bill"
    rows = bulk.write(folder, rows=40_000, months=["2026-09", "2026-10"])
    for path in folder.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), "bills", f"export/{path.relative_to(folder)}")
    # All the Python that there is holds no package: pyarrow and numpy come as they do on EMR.
    asked = ("--bill", "s3://bills/export")
    done = jobs.run(*asked, variables=variables, packages=wheels(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{rows} lines of 2026-09, 2026-10 worth" in done.stdout
    here = ParquetStore(str(tmp_path / "here"))
    ingest.run(bill.read(folder), here, now=datetime.now(UTC))
    for table in (tables.USAGE, tables.COST, tables.TRANSFER):
        found = sorted(map(repr, jobs.tables.rows(table)))
        assert found == sorted(map(repr, here.rows(table))), table.name
        assert found, table.name
