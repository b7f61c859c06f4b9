"""A standalone Spark cluster on loopback: a master and two workers, from the pyspark package."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

LOOPBACK = "127.0.0.1"
HOME = Path(pyspark.__file__).parent
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.2
# A cluster of a few hundred lines: what starts fastest.
SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Yield the master's address when every worker is registered; all end with the block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        options = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        log = folder / "master.log"
        started.append(_start("org.apache.spark.deploy.master.Master", options, log))
        address = _wait_for_log(_MASTER, log, started)
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            options = (
                *("--host", LOOPBACK, "--port", "0", "--webui-port", "0"),
                *("--cores", "1", "--memory", "1g"),
                *("--work-dir", str(folder / f"worker-{number}"), address),
            )
            started.append(_start("org.apache.spark.deploy.worker.Worker", options, log))
        for number in range(workers):
            _wait_for_log(re.compile(f"({_REGISTERED})"), folder / f"worker-{number}.log", started)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def submit(
    master: str,
    python: Path,
    jobs: Path,
    launcher: Path,
    arguments: Sequence[str],
    folder: Path,
    *,
    variables: Mapping[str, str] | None = None,
    packages: Mapping[str, str] | None = None,
    driver_python: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the jobs by spark-submit, where `python` is all the Python that there is.

    The driver and every executor have the variables beside their own, and the packages by the
    setting that a job on EMR has. `driver_python` is the driver's, where it is another one.
    """
    beside = variables or {}
    settings = {
        # Everything stays on loopback: a driver that asks the resolver for its name waits for it.
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SMALL_JAVA,
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        **{f"spark.executorEnv.{name}": value for name, value in beside.items()},
        **(packages or {}),
    }
    return subprocess.run(
        [
            *(str(HOME / "bin" / "spark-submit"), "--master", master),
            *("--driver-java-options", SMALL_JAVA, "--driver-memory", "512m"),
            *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
            *("--py-files", str(jobs), str(launcher), *arguments),
        ],
        cwd=folder,
        env={
            **_environment(),
            **beside,
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(driver_python or python),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * PATIENCE_SECONDS,
    )


def fresh_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment that holds nothing."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def wheel_of(name: str, folder: Path) -> Path:
    """Zip an installed package as its wheel holds it: what pip would fetch for this machine."""
    made = folder / f"{name}.zip"
    with zipfile.ZipFile(made, "w") as wheel:
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                wheel.write(str(file.locate()), file.as_posix())
    return made


def _environment() -> dict[str, str]:
    """Return the caller's environment without what would lead to another Spark or other modules."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and not name.startswith(("SPARK_", "PYSPARK_"))
    }
    return {**kept, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": LOOPBACK}


def _start(main: str, options: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**_environment(), "SPARK_DAEMON_JAVA_OPTS": SMALL_JAVA}
    with log.open("wb") as sink:
        return subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), main, *options],
            cwd=log.parent,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


def _wait_for_log(
    wanted: re.Pattern[str], log: Path, started: Sequence[subprocess.Popen[bytes]]
) -> str:
    """Return what a log says, once it does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        text = log.read_text(errors="replace")
        if found := wanted.search(text):
            return found[1]
        ended = [process.returncode for process in started if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            pytest.fail(f"The cluster did not start; {log.name} says:\n{text[-3000:]}")
        time.sleep(POLL_SECONDS)
