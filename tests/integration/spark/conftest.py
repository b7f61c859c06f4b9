"""One Spark session for every test that needs one: its JVM takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from local.spark import iceberg
from spark.session import JAVA_OPTIONS, local_session

CATALOG = "here"
# Java written and compiled for each plan costs a test a third of its time and a bill of ten lines
# gains nothing by it. The commands that tests run as a user does have it, as users have.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Hundreds of small bills are one long run, which Java's second compiler repays: by the tenth bill
# each takes a third less.
BOTH_COMPILERS = {JAVA_OPTIONS: "-XX:+UseParallelGC"}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with an Iceberg catalog called `here`."""
    warehouse = tmp_path_factory.mktemp("warehouse").as_uri()
    tables = iceberg.settings(iceberg.jar(), warehouse, CATALOG)
    settings = {**BOTH_COMPILERS, **INTERPRETED, **tables}
    with local_session(settings=settings) as started:
        yield started
