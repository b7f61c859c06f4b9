"""Asks a cluster's workers whether they can add a bill up in columns, and says why not.

Apart from that reader (spark.ingest.arrow): a worker without pyarrow could not even import the
question.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.pandas.utils import (
    require_minimum_pandas_version,
    require_minimum_pyarrow_version,
)

REASON_CHARACTERS = 120
SLOWLY = (
    "Spark read every line of this bill by itself, several times slower than by adding them up in "
    "columns, since {reason}."
)
REMEDY = (
    "on EMR Serverless `stillwater up` brings them, from a machine whose pip finds them; another "
    "cluster's Python needs them installed"
)


class LineByLine(Exception):
    """Says why Spark has to read a bill line by line, as the end of SLOWLY."""


def reason_against(session: SparkSession, address: str) -> str | None:
    """Return why some worker cannot read a Parquet file of the bill; None where all can."""
    context = session.sparkContext
    count = context.defaultParallelism
    found = context.parallelize(range(count), count).map(partial(_reason, address=address))
    return next((reason for reason in found.collect() if reason), None)


def require_packages() -> None:
    """Raise ImportError where this Python cannot add a bill up in columns.

    Spark hands Arrow's batches to Python only where there is pandas as well (mapInArrow).
    """
    importlib.import_module("spark.ingest.arrow")
    require_minimum_pandas_version()
    require_minimum_pyarrow_version()


def without_packages(error: ImportError) -> str:
    """Return what this Python lacks: the packages, or those of its own version."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    lacking = f"lacks pyarrow, numpy or pandas ({_first_line(error)})"
    return f"the job's Python {version} {lacking}: {REMEDY}"


def not_opened(address: str, error: Exception) -> str:
    """Return that Arrow cannot open a file which Spark, with its own S3, may."""
    return f"Arrow cannot open {address} ({_first_line(error)})"


def _reason(_: int, address: str) -> str | None:
    try:
        require_packages()
        from spark.ingest import objects  # noqa: PLC0415 - needs pyarrow

        with objects.parquet(address):
            return None
    except ImportError as error:
        return without_packages(error)
    except (OSError, ValueError) as error:
        return not_opened(address, error)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0].rstrip(" .:")[:REASON_CHARACTERS]
