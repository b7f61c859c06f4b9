"""Records the classes that Spark's Java loads, so that every later session maps them.

Half of a cold report is Java reading and verifying some twenty thousand classes. The record is an
optimisation and never a condition: without one, or with one that Java does not take, a session
starts as it always did.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata, util
from pathlib import Path

from local.place import cache_directory
from local.processes import REPOSITORY
from local.tools.cache import making
from spark.java import JAVA_OPTIONS, SETTINGS

NAME, ARCHIVE = "spark", "classes.jsa"
ESTIMATE_SECONDS = 60
# Java writes the archive when it ends.
DUMP_SECONDS = 180
RECORD_SECONDS = 600


def version() -> str:
    """Return Spark's version, without the seconds that importing it takes."""
    return metadata.version("pyspark")


def home() -> Path:
    """Return the record's folder, one for each Java and each Spark, whether or not it is there."""
    root = os.environ.get("JAVA_HOME")
    java = str(Path(root) / "bin" / "java") if root else shutil.which("java") or ""
    built = Path(java).stat().st_mtime_ns if Path(java).is_file() else 0
    # The record knows its jars by their paths.
    found = util.find_spec("pyspark")
    jars = found.origin if found else ""
    known = f"{version()} {jars} {os.path.realpath(java)} {built}"
    return cache_directory() / NAME / hashlib.sha256(known.encode()).hexdigest()[:12]


def is_installed() -> bool:
    """Say whether there is a Spark: the command line installs without it."""
    return util.find_spec("pyspark") is not None


def are_recorded() -> bool:
    """Say whether `record` has nothing left to do."""
    return not is_installed() or home().is_dir()


def java_options() -> str:
    """Return what tells Java to map the record; nothing where there is none."""
    if not is_installed():
        return ""
    archive = home() / ARCHIVE
    # Java would complain of an archive that does not fit on stdout; it starts without it.
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable" if archive.exists() else ""


def settings() -> dict[str, str]:
    """Return what a local session starts with to map the record."""
    options = java_options()
    if not options:
        return {}
    return {JAVA_OPTIONS: f"{SETTINGS[JAVA_OPTIONS]} {options}"}


def record() -> None:
    """Run every job on two small bills in a process of its own, and keep the classes it loaded.

    A Java that records nothing leaves an empty folder: it will not do better the next time.
    """
    with making(home(), lambda: None) as staging:
        if staging is None:
            return
        made = staging / ARCHIVE
        try:
            done = subprocess.run(
                [sys.executable, "-m", "local.spark.classes", str(made)],
                cwd=REPOSITORY,
                capture_output=True,
                timeout=RECORD_SECONDS,
                check=False,
            )
            is_made = done.returncode == 0
        except subprocess.TimeoutExpired:
            is_made = False
        if not is_made:
            made.unlink(missing_ok=True)


def _record(archive: Path) -> None:
    """Make the reports in a session whose Java writes the archive when it ends."""
    from local.bills import cluster, export  # noqa: PLC0415 - only the recording process runs jobs
    from spark import java, session  # noqa: PLC0415 - the same
    from spark.jobs import report  # noqa: PLC0415 - the same
    from spark.tables import ParquetStore  # noqa: PLC0415 - the same

    java.EXIT_SECONDS = DUMP_SECONDS
    options = {JAVA_OPTIONS: f"{java.SETTINGS[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={archive}"}
    kinds = ((export.Layout.CUR2, ".snappy.parquet"), (export.Layout.FOCUS_10, ".csv.gz"))
    with (
        tempfile.TemporaryDirectory(prefix="stillwater-classes-") as scratch,
        session.local_session(settings=options) as started,
    ):
        for layout, suffix in kinds:
            folder = Path(scratch) / layout.name
            lines = cluster.lines(cluster.ClusterBill())
            bill = export.write(folder / "bill", lines, layout=layout, suffix=suffix)
            store = ParquetStore(started, str(folder / "tables"))
            report.run(started, store, report.Inputs(bill=bill))


if __name__ == "__main__":
    _record(Path(sys.argv[1]))
