"""Measures how fast a bill becomes tables: by Spark, by this process, in DuckDB and Polars.

Every engine reads the same synthetic CUR 2.0 export, sums it exactly to a day per resource and
meter with its tags and amortised cost, and makes the cost and transfer tables of that; every
measurement is a fresh process of its own, with a first run and warm ones. All must agree to the
last digit. The export's columns hold what one hour's lines repeat, so files are smaller on disk
than a real bill's: what is measured is reading and summing lines, not a disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import record
from bench.bill_queries import DUCKDB, polars_tables
from local.bills import bulk
from spark.session import CONVENTIONS

MONTHS = {
    1: ("2026-10",),
    10: ("2026-08", "2026-09", "2026-10"),
    100: tuple(f"2026-{month:02}" for month in range(1, 11)),
}
SHAPES = REPEATING, DISTINCT = ("repeating", "distinct")
ENGINES = ("spark", "python", "duckdb", "polars")
# Java compiles what is used much for some four runs; the median is of what comes after, too.
WARM_RUNS = 8
CORES = 2
SETTINGS = {
    **CONVENTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": f"{CORES}",
    "spark.sql.adaptive.enabled": "false",
}
ONCE = {"report_s": "report_seconds_of_1000_rows", "one_shot_s": "one_shot_seconds_at_10m"}
# Of the command's own process, which adds every bill up; Spark does on EMR.
LIMITS = {
    "warm_1m_s": 1.5,
    "warm_to_duckdb_at_10m": 2.0,
    "one_shot_seconds_at_10m": 16.0,
    "report_seconds_of_1000_rows": 7.0,
    "growth_30m_to_10m": 3.3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, nargs="*", default=[1, 10, 30])
    parser.add_argument("--engine", choices=ENGINES, help="measure one engine, in this process")
    parser.add_argument("--bill", type=Path)
    parser.add_argument(
        "--warm", type=int, default=WARM_RUNS, help="runs after the first, per engine and bill"
    )
    parser.add_argument(
        "--shape", choices=SHAPES, nargs="*", default=list(SHAPES),
        help="lines that repeat, one in 92 different; or a resource on every line",
    )  # fmt: skip
    chosen = parser.parse_args()
    if chosen.engine:
        print(json.dumps(measure(chosen.engine, chosen.bill, chosen.warm)))
        return
    rows = []
    for shape, millions in ((s, m) for s in chosen.shape for m in chosen.millions):
        with tempfile.TemporaryDirectory(prefix="stillwater-bill-") as folder:
            written = bulk.write(
                Path(folder),
                rows=millions * 1_000_000,
                months=MONTHS.get(millions, MONTHS[10]),
                distinct=shape == DISTINCT,
            )
            found = [
                {
                    "shape": shape,
                    "rows_million": millions,
                    "rows": written,
                    "engine": engine,
                    **_fresh(engine, folder, chosen.warm),
                }
                for engine in ENGINES
            ]
            _require_agreement(found)
            rows += found
            if millions == 10 and shape == REPEATING:
                rows.append({"rows_million": 10, "engine": "spark-submit", **_one_shot(folder)})
        for row in rows[-5:]:
            print(json.dumps(row), flush=True)
    rows.append({"engine": "report", **_report()})
    summary = _summary(rows)
    parameters = {"cores": CORES, "warm_runs": chosen.warm, "limits": LIMITS}
    record.write("analytics", parameters, rows, summary)


def measure(engine: str, bill: Path, warm_runs: int = WARM_RUNS) -> dict[str, Any]:
    """Make the tables again and again in this process; return seconds, memory and the total."""
    with tempfile.TemporaryDirectory(prefix="stillwater-tables-") as out:
        run = {"spark": _spark, "python": _python, "duckdb": _duckdb, "polars": _polars}[engine]
        return run(bill, Path(out), warm_runs)


def _spark(bill: Path, out: Path, warm_runs: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - one engine per process

    from spark.ingest import bill as bills  # noqa: PLC0415
    from spark.jobs import ingest  # noqa: PLC0415
    from spark.tables import ParquetStore  # noqa: PLC0415

    # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    started = time.perf_counter()
    # In Java's own GiB the sums of 30 million lines have no room, and Spark then waits forever.
    java = {"spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    settings: dict[str, Any] = {**SETTINGS, **java}
    session = SparkSession.builder.config(map=settings).master(f"local[{CORES}]").getOrCreate()
    start_seconds = time.perf_counter() - started
    pid = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
    store = ParquetStore(str(out))
    held: dict[str, Any] = {}

    def processor() -> float:
        return sum(map(_processor_seconds, _family(pid))) + time.process_time()

    def make() -> None:
        delivery = bills.read(bill, engine=lambda _: session)
        held["in"] = ingest.run(delivery, store, now=datetime.now(UTC))

    return {
        "start_s": round(start_seconds, 2),
        **_time_runs(make, processor, warm_runs),
        # Java's workers in Python are its descendants, and the driver is this process.
        "peak_mib": sum(map(_peak_mib, _family(pid))) + _own_peak_mib(),
        "total": f"{held['in'].billed:f}",
    }


def _python(bill: Path, out: Path, warm_runs: int) -> dict[str, Any]:
    """The same worker as Spark's, in this process alone: what a small report does."""
    from spark.ingest import bill as bills  # noqa: PLC0415 - one engine per process
    from spark.jobs import ingest  # noqa: PLC0415
    from spark.tables import ParquetStore  # noqa: PLC0415

    held: dict[str, Any] = {}

    def make() -> None:
        store = ParquetStore(str(out))
        held["in"] = ingest.run(bills.read(bill), store, now=datetime.now(UTC))

    return {
        **_time_runs(make, time.process_time, warm_runs),
        "peak_mib": _own_peak_mib(),
        "total": f"{held['in'].billed:f}",
    }


def _duckdb(bill: Path, out: Path, warm_runs: int) -> dict[str, Any]:
    import duckdb  # noqa: PLC0415 - one engine per process

    connection = duckdb.connect()
    connection.execute(f"SET threads={CORES}; SET TimeZone='UTC'")
    found: list[Any] = []

    def make() -> None:
        for statement in (*DUCKDB["cost"], *DUCKDB["transfer"]):
            connection.execute(statement.replace("$BILL", str(bill)).replace("$OUT", str(out)))
        found[:] = connection.execute("SELECT sum(billed) FROM usage").fetchone() or ()

    timed = _time_runs(make, time.process_time, warm_runs)
    return {"start_s": 0.0, **timed, "peak_mib": _own_peak_mib(), "total": _units(found[0])}


def _polars(bill: Path, out: Path, warm_runs: int) -> dict[str, Any]:
    os.environ["POLARS_MAX_THREADS"] = str(CORES)
    cost, transfer, total = polars_tables(bill, out)

    def make() -> None:
        cost()
        transfer()

    timed = _time_runs(make, time.process_time, warm_runs)
    return {"start_s": 0.0, **timed, "peak_mib": _own_peak_mib(), "total": _units(total())}


def _time_runs(
    make: Callable[[], None], processor: Callable[[], float], warm_runs: int
) -> dict[str, Any]:
    """Make the tables once cold and then warm; return the seconds and those of the processor."""
    runs = []
    for _ in range(1 + warm_runs):
        began, worked = time.perf_counter(), processor()
        make()
        runs.append((time.perf_counter() - began, processor() - worked))
    warm = runs[1:]
    return {
        "cold_s": round(runs[0][0], 2),
        "warm_s": round(statistics.median(seconds for seconds, _ in warm), 2),
        "warm_cpu_s": round(statistics.median(worked for _, worked in warm), 2),
    }


def _fresh(engine: str, folder: str, warm_runs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.analytics", "--engine", engine, "--bill", folder]
    told = _told_by(engine, [*command, "--warm", str(warm_runs)])
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    return found


def _told_by(what: str, command: Sequence[str], **environment: str) -> str:
    """Run a command in a process of its own; return what it printed."""
    environment = {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{what} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def _one_shot(folder: str) -> dict[str, Any]:
    """Return the seconds of one spark-submit of every job, from nothing to tables."""
    import pyspark  # noqa: PLC0415 - only this measurement needs to know where it is

    home = Path(pyspark.__file__).parent
    with tempfile.TemporaryDirectory(prefix="stillwater-shot-") as out:
        launcher = Path(out) / "launcher.py"
        launcher.write_text("from spark.entry import main\n\nmain()\n")
        options = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"
        began = time.perf_counter()
        _told_by(
            "spark-submit",
            [
                *(str(home / "bin" / "spark-submit"), "--master", f"local[{CORES}]"),
                *("--driver-java-options", options, "--driver-memory", "2g"),
                *(word for setting in SETTINGS.items() for word in ("--conf", "=".join(setting))),
                *(str(launcher), "--bill", folder, "--tables", f"{out}/tables"),
            ],
            SPARK_HOME=str(home),
            PYSPARK_PYTHON=sys.executable,
            PYSPARK_DRIVER_PYTHON=sys.executable,
            SPARK_LOCAL_IP="127.0.0.1",
        )
        return {"one_shot_s": round(time.perf_counter() - began, 2)}


def _report() -> dict[str, Any]:
    """Return the seconds of `stillwater report` on a bill of a thousand rows, from nothing."""
    with tempfile.TemporaryDirectory(prefix="stillwater-report-") as folder:
        bulk.write(Path(folder) / "bill", rows=1_000, months=MONTHS[1])
        began = time.perf_counter()
        command = [sys.executable, "-m", "cli", "report", "--bill", f"{folder}/bill"]
        _told_by(
            "The report", [*command, "--tables", f"{folder}/tables", "--output", f"{folder}/out"]
        )
        return {"report_s": round(time.perf_counter() - began, 2)}


def _require_agreement(found: list[dict[str, Any]]) -> None:
    totals = {row["engine"]: row["total"] for row in found}
    if len(set(totals.values())) != 1:
        sys.exit(f"The engines do not agree on what the bill comes to: {totals}")


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    warm = {
        (r["engine"], r["rows_million"]): r["warm_s"]
        for r in rows
        if "warm_s" in r and r["shape"] == REPEATING
    }
    summary: dict[str, Any] = {}
    for row in rows:
        if "warm_s" in row:
            shape = "" if row["shape"] == REPEATING else f"_{DISTINCT}"
            name = f"{row['engine']}_{row['rows_million']}m{shape}"
            summary[f"{name}_rows_per_s"] = round(row["rows"] / row["warm_s"])
            summary[f"{name}_peak_mib"] = row["peak_mib"]
        for key, name in ONCE.items():
            summary |= {name: row[key]} if key in row else {}
    if ("python", 10) in warm:
        summary["warm_to_duckdb_at_10m"] = round(warm["python", 10] / warm["duckdb", 10], 2)
        summary["spark_to_duckdb_at_10m"] = round(warm["spark", 10] / warm["duckdb", 10], 2)
    if ("python", 30) in warm and ("python", 10) in warm:
        summary["growth_30m_to_10m"] = round(warm["python", 30] / warm["python", 10], 2)
    summary |= {"warm_1m_s": warm["python", 1]} if ("python", 1) in warm else {}
    summary["load_average"] = [round(load, 1) for load in os.getloadavg()]
    summary["missed"] = [k for k, limit in LIMITS.items() if summary.get(k, 0) > limit]
    return summary


def _units(trillionths: int) -> str:
    whole = f"{int(trillionths):013d}"
    return f"{int(whole[:-12])}.{whole[-12:]}".rstrip("0").rstrip(".")


def _family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [pid, *(each for child in children for each in _family(child))]


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def _own_peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
