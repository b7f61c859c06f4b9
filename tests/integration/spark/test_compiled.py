"""What a line says is methods that Java compiles, and no plan is one method that it would not.

Java leaves a method of more than 8,000 bytes uncompiled. A large bill once took six times as long
for one of 35,000, and nothing but its time told of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from local.bills.cluster import ClusterBill, lines
from local.bills.export import write
from spark.ingest import bill
from spark.java import CONVENTIONS
from spark.jobs import ingest

pytestmark = pytest.mark.integration
# HotSpot's HugeMethodLimit.
COMPILED_BYTES = 8000


def test_a_stage_of_longer_methods_is_made_of_shorter_ones(session: SparkSession) -> None:
    # Spark's own limit is eight times as high: it would run what Java never compiles.
    assert int(session.conf.get("spark.sql.codegen.hugeMethodLimit") or 0) <= COMPILED_BYTES
    assert "spark.sql.codegen.hugeMethodLimit" in CONVENTIONS


def test_what_a_line_says_is_methods_that_java_compiles(
    session: SparkSession, tmp_path: Path
) -> None:
    compiled = session.newSession()
    # A stage that would be too long a method runs as its expressions, compiled one by one.
    compiled.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    path = write(tmp_path / "bill", lines(ClusterBill(hours=1)))
    sizes = _method_sizes(session)
    known = sizes.getCount()
    ingest.usage(*bill.read(compiled, path).parts).collect()
    assert sizes.getCount() > known
    assert sizes.getSnapshot().getMax() <= COMPILED_BYTES


def _method_sizes(session: SparkSession) -> Any:
    """Return Spark's histogram of the bytes of every method that it has generated."""
    jvm: Any = session.sparkContext._jvm
    metrics = jvm.org.apache.spark.metrics.source.CodegenMetrics
    return metrics.METRIC_GENERATED_METHOD_BYTECODE_SIZE()
