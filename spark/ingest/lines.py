"""Reads delimited text as every export writes it: quoted fields, a header, plain, gzip or zip.

A line that does not fit its header is kept whole in CORRUPT instead of being dropped or padded.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from core.errors import InvalidInput
from spark.ingest.files import Files, HadoopFiles

CORRUPT = "_corrupt_line"
# The longest header known has 300 columns.
HEADER_BYTES = 1 << 18
GZIP_WINDOW = 31


def header(files: Files, address: str, what: str) -> list[str]:
    """Return the column names of a file's first line, or say why it has none."""
    try:
        data = files.read(address, HEADER_BYTES)
        if address.endswith(".gz"):
            data = _inflated(data)
        names = next(csv.reader([data.split(b"\n", 1)[0].decode("utf-8-sig")]), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise InvalidInput([f"{what} cannot be read: {error}."]) from None
    if not any(names):
        raise InvalidInput([f"{what} is empty; its first line must name its columns."])
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput([f"{what} names column {repeated[0]} twice; export it once."])
    return [name.rstrip("\r") for name in names]


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj(GZIP_WINDOW)
    inflated = stream.decompress(data)
    if b"\n" not in inflated and not stream.eof:
        raise EOFError("it ends within its first line")
    return inflated


def literal_address(address: str) -> str:
    """Return a path or URI as Spark must be told it: with nothing in it to be taken for a glob."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", address)


def read(session: SparkSession, files: Files, addresses: Sequence[str], what: str) -> DataFrame:
    """Read files of one header as text columns, and CORRUPT."""
    names = header(files, addresses[0], what)
    for address in addresses[1:]:
        if header(files, address, what) != names:
            this, first = address.rsplit("/", 1)[-1], addresses[0].rsplit("/", 1)[-1]
            problem = f"{what}: {this} has other columns than {first}; export it again."
            raise InvalidInput([problem])
    schema = StructType([StructField(name, StringType()) for name in [*names, CORRUPT]])
    # A pruned read does not notice a line with too few or too many columns.
    reader = session.read.option("columnPruning", "false")
    return reader.csv(
        [literal_address(address) for address in addresses],
        schema=schema,
        header=True,
        quote='"',
        escape='"',
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=CORRUPT,
    )


def unzipped(session: SparkSession, addresses: Sequence[str], scratch: str) -> list[str]:
    """Return the csv files that these zip archives hold, written below `scratch`.

    Spark reads no zip. On a cluster `scratch` is an address that every worker can reach.
    """
    files = HadoopFiles(session)
    targets = []
    for number, address in enumerate(addresses, start=1):
        name = address.rsplit("/", 1)[-1].removesuffix(".zip").removesuffix(".csv")
        target = f"{scratch}/{number:05d}-{name}.csv"
        files.unzip(address, target)
        targets.append(target)
    return targets
