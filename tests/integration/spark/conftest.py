"""One Spark session for every test that needs one: its JVM takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import local_session


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    with local_session() as started:
        yield started
