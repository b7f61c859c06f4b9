"""Decides which bills need Spark, and says what jobs rely on of its session, whoever starts it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

CONVENTIONS = {
    "spark.sql.session.timeZone": "UTC",
    # A number too large for its type is an error, never another number.
    "spark.sql.ansi.enabled": "true",
}
# Starts a session, or returns the one that there is.
Start = Callable[[], SparkSession]
# Returns the session that adds up a bill of about so many lines, or None for this process.
Engine = Callable[[int], SparkSession | None]
# Of fewer lines one process has added a bill up before Spark's workers would have started.
LINES_HERE = 20_000_000


def engine_of(start: Start) -> Engine:
    """Return the engine that starts Spark for bills that are too large for one process."""
    return lambda lines: None if lines < LINES_HERE else start()
