"""One Spark session for every test that needs one: its JVM takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from local.spark import classes, iceberg
from spark.session import local_session

CATALOG = "here"


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with an Iceberg catalog called `here`."""
    warehouse = tmp_path_factory.mktemp("warehouse").as_uri()
    settings = {**classes.settings(), **iceberg.settings(iceberg.jar(), warehouse, CATALOG)}
    with local_session(settings=settings) as started:
        yield started
