"""Keeps the classes that Spark's Java loads as one archive, which the next Java maps.

Half of a cold report is Java loading and verifying some twenty thousand classes. The archive is
made once, by a small report, into the per-user cache; Java itself refuses one that is not of its
own version or of the same jars, and starts without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from core.errors import StillwaterError
from local.place import cache_directory
from local.tools.cache import making
from spark.session import SETTINGS

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
NAME, FILE = "spark-classes", "spark.jsa"
ESTIMATE_SECONDS = 60
# Java writes the archive when it ends.
DUMP_SECONDS = 120.0


def home() -> Path:
    """Return the archive's folder: one for each Java and each Spark."""
    java = shutil.which("java") or ""
    if root := os.environ.get("JAVA_HOME"):
        java = str(Path(root) / "bin" / "java")
    known = f"{pyspark.__version__} {pyspark.__file__} {Path(java).resolve()}"
    return cache_directory() / NAME / hashlib.sha256(known.encode()).hexdigest()[:12]


def settings() -> dict[str, str]:
    """Return what a session starts with to use the archive; nothing where there is none."""
    archive = home() / FILE
    if not archive.is_file():
        return {}
    # Java would write to stdout that an archive does not fit; it starts without it.
    return _with(f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable")


def make() -> None:
    """Make the archive, unless it is there, by a report on a small bill in a process of its own."""
    with making(home(), lambda: None) as staging:
        if staging is None:
            return
        done = subprocess.run(
            [sys.executable, "-m", "local.spark.class_archive", str(staging / FILE)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not (staging / FILE).is_file():
            raise StillwaterError(f"Spark's classes could not be kept:\n{done.stderr[-1000:]}")


def _with(options: str) -> dict[str, str]:
    return {JAVA_OPTIONS: f"{SETTINGS[JAVA_OPTIONS]} {options}"}


def _record(archive: Path) -> None:
    """Run every job on a small bill in a session whose Java writes the archive when it ends."""
    from local.bills import cluster, export  # noqa: PLC0415 - only the recording process runs jobs
    from spark.jobs import report  # noqa: PLC0415 - the same
    from spark.session import local_session  # noqa: PLC0415 - the same
    from spark.tables import ParquetStore  # noqa: PLC0415 - the same

    recording = _with(f"-XX:ArchiveClassesAtExit={archive}")
    with tempfile.TemporaryDirectory(prefix="stillwater-classes-") as scratch:
        bill = export.write(Path(scratch) / "bill", cluster.lines(cluster.ClusterBill()))
        with local_session(settings=recording, exit_seconds=DUMP_SECONDS) as session:
            store = ParquetStore(session, f"{scratch}/tables")
            report.run(session, store, report.Inputs(bill=bill))


if __name__ == "__main__":
    _record(Path(sys.argv[1]))
