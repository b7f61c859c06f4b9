"""One Spark session for every test that needs one: its JVM takes seconds to start."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from local.spark import iceberg
from spark.session import CONVENTIONS

CATALOG = "here"
SETTINGS = {
    **CONVENTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Java written and compiled for each plan costs a test a third of its time, and a bill of ten
    # lines gains nothing by it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with an Iceberg catalog called `here`."""
    folder = tmp_path_factory.mktemp("spark")
    tables = iceberg.settings(iceberg.jar(), folder.as_uri(), CATALOG)
    settings = {**SETTINGS, **tables, "spark.local.dir": str(folder / "scratch")}
    with pytest.MonkeyPatch.context() as patched:
        # Workers would otherwise take the first python3 on the PATH, which lacks our packages.
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        started = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        yield started
        started.stop()
