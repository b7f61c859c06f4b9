"""Fetches Iceberg's jar, with Maven, once, into the per-user cache.

Without it tables are plain Parquet (spark.tables), which is what the command writes; on EMR the
same jar is part of the release.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from local.kafka.jars import copy_dependencies
from local.place import cache_directory
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
                copy_dependencies(POM, staging, "Iceberg's jar", "-DexcludeTransitive=true")
    return next(home.glob(JAR))


def settings(path: Path, warehouse: str, catalog: str) -> dict[str, str]:
    """Return the settings of a session with an Iceberg catalog of folders."""
    return {
        JARS: str(path),
        f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{catalog}.type": "hadoop",
        f"spark.sql.catalog.{catalog}.warehouse": warehouse,
    }
