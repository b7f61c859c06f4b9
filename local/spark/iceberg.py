"""Fetches Iceberg's jar, with Maven, once, into the per-user cache.

Without it tables are plain Parquet (spark.tables), which is what the command writes; on EMR the
same jar is part of the release.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from core.ground.errors import StillwaterError
from local.place import cache_directory
from local.processes import Processes
from local.tools import prerequisites
from local.tools.build import making

POM = Path(__file__).with_name("pom.xml")
NAME = "iceberg"
JAR = "iceberg-spark-runtime-*.jar"
# Spark takes jars when it starts, and no later.
JARS = "spark.jars"


def jar() -> Path:
    """Return the jar, fetched unless it is there.

    Raises MissingPrerequisite without Java or Maven, StillwaterError when Maven fails.
    """
    home = cache_directory() / NAME / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    if not home.is_dir():
        prerequisites.require("Java", "Maven")
        with making(home, lambda: None) as staging:
            if staging is not None:
                _copy(staging, staging / "work")
                shutil.rmtree(staging / "work", ignore_errors=True)
    return next(home.glob(JAR))


def settings(path: Path, warehouse: str, catalog: str) -> dict[str, str]:
    """Return the settings of a session with an Iceberg catalog of folders."""
    return {
        JARS: str(path),
        f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{catalog}.type": "hadoop",
        f"spark.sql.catalog.{catalog}.warehouse": warehouse,
    }


def _copy(target: Path, work: Path) -> None:
    """Let Maven copy what the pom names; it finds its repositories in the user's own settings."""
    processes = Processes(work / "pids", work / "logs")
    try:
        child = processes.start(
            "maven",
            [
                *("mvn", "--quiet", "--batch-mode", "--file", str(POM)),
                *("dependency:copy-dependencies", f"-DoutputDirectory={target}"),
                "-DexcludeTransitive=true",
            ],
            directory=POM.parent,
        )
        code = child.popen.wait()
        if code != 0 or not any(target.glob(JAR)):
            raise StillwaterError(
                f"Iceberg's jar could not be fetched: `mvn` ended with exit code {code}. Its last "
                f"lines:\n{child.tail()}\nIf they are about downloads, check the network or the "
                f"mirrors in Maven's settings.xml, and try again."
            )
    finally:
        processes.close()
