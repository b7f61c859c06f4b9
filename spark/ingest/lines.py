"""Reads delimited text as every export writes it: quoted fields, a header, gzip or not.

A line that does not fit its header is kept whole in CORRUPT instead of being dropped or padded.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from core.errors import InvalidInput

CORRUPT = "_corrupt_line"
FORMATS = (".csv", ".csv.gz")


def header(path: Path, what: str) -> list[str]:
    """Return the column names of a file's first line, or say why it has none."""
    try:
        with _opened(path) as stream:
            names = next(csv.reader(stream), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput([f"{what} cannot be read: {error}."]) from None
    if not names:
        raise InvalidInput([f"{what} is empty; its first line must name its columns."])
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput([f"{what} names column {repeated[0]} twice; export it once."])
    return names


def literal(path: Path) -> str:
    """Return a path as Spark must be told it: absolute, and with nothing to be taken for a glob."""
    return literal_address(str(path.resolve()))


def literal_address(address: str) -> str:
    """Return an address, a path or a URI, with nothing in it to be taken for a glob."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", address)


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def read(session: SparkSession, paths: Sequence[Path], what: str) -> DataFrame:
    """Read files of one header as text columns, and CORRUPT."""
    names = header(paths[0], what)
    for path in paths[1:]:
        if header(path, what) != names:
            problem = (
                f"{what}: {path.name} has other columns than {paths[0].name}; export it again."
            )
            raise InvalidInput([problem])
    schema = StructType([StructField(name, StringType()) for name in [*names, CORRUPT]])
    # A pruned read does not notice a line with too few or too many columns.
    reader = session.read.option("columnPruning", "false")
    return reader.csv(
        [literal(path) for path in paths],
        schema=schema,
        header=True,
        quote='"',
        escape='"',
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=CORRUPT,
    )
