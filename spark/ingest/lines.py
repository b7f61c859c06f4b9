"""Reads delimited text as every export writes it: quoted fields, a header, plain, gzip or zip.

A line that does not fit its header is kept whole in CORRUPT instead of being dropped or padded.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from core.ground.errors import InvalidInput, passed_on
from spark.ingest.files import Files, HadoopFiles
from spark.tables import literal_address, quoted_name
from spark.tag_keys import TAG_COLUMNS

CORRUPT = "_corrupt_line"
# The longest header known has 300 columns.
HEADER_BYTES = 1 << 18
GZIP_WINDOW = 31
# Lines that are compared with their header: a few of another length are broken lines, all are not.
LINES_COMPARED = 100
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# What a file begins with that is no delimited text, whatever it is called.
OTHER_KINDS = {
    b"\x1f\x8b": "is a gzip archive by another name: call it .csv.gz",
    b"BZh": "is compressed by bzip2: unpack it, or pack it by gzip",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd: unpack it, or pack it by gzip",
    b"\xfd7zXZ": "is compressed by xz: unpack it, or pack it by gzip",
    b"\x04\x22\x4d\x18": "is compressed by lz4: unpack it, or pack it by gzip",
    b"PK\x03\x04": "is a zip archive by another name: call it .zip",
    b"PAR1": "is a Parquet file by another name: call it .parquet",
    b"<": "holds HTML or XML, which a refused download leaves behind: copy the bill again",
    b"{": "holds JSON: choose csv or Parquet for the export",
    b"[": "holds JSON: choose csv or Parquet for the export",
}
# What tells a column of a tag from one that differs by case alone.
APART = re.compile(r" \(\d+\)$")
# Between letters of a field: a quote that is written twice, and one behind a backslash.
DOUBLED_QUOTE = re.compile(rb'[^,"\r\n]""[^,"\r\n]|"""')
MARKED_QUOTE = re.compile(rb'\\"[^,\r\n]')
OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class Header:
    """A file's columns, and by what a quote within a quoted field is marked."""

    names: tuple[str, ...]
    escape: str


def header(files: Files, address: str, what: str) -> Header:
    """Return what a file's beginning says of its columns, or say why it has none."""
    try:
        data = files.read(address, HEADER_BYTES)
        is_whole = len(data) < HEADER_BYTES
        if address.endswith(".gz"):
            data = _inflated_bytes(data)
        names = _names(data, what)
    except UnicodeDecodeError:
        problem = f"{what} cannot be read: it is not written in UTF-8; save it as UTF-8."
        raise InvalidInput([problem]) from None
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        raise InvalidInput([passed_on(f"{what} cannot be read; copy it again.", error)]) from None
    if not any(names):
        raise InvalidInput([f"{what} is empty; its first line must name its columns."])
    found = Header(tuple(_told_apart(names, what)), _escape(data))
    _require_its_length(found, data if is_whole else data[: data.rfind(b"\n") + 1], what)
    return found


def _require_its_length(found: Header, data: bytes, what: str) -> None:
    """Refuse a file whose lines all hold fewer or more cells than its header has names."""
    is_doubled = found.escape == '"'
    text = io.StringIO(data.decode("utf-8-sig", errors="replace"), newline="")
    escape = None if is_doubled else "\\"
    # Of a quote that is never closed nothing is known: those lines are broken one by one.
    rows = csv.reader(text, doublequote=is_doubled, escapechar=escape, strict=True)
    try:
        lengths = {len(row) for row in islice(filter(None, rows), 1, LINES_COMPARED)}
    except csv.Error:
        return
    names = len(found.names)
    if len(lengths) != 1 or names in lengths:
        return
    (cells,) = lengths
    excess = "name in its header" if names > cells else "cell in its lines"
    problem = (
        f"{what} names {names} columns and its lines hold {cells} cells, so that no cell is known "
        f"to be of its column. Find the {excess} that is too many (a comma at the end makes one), "
        f"or name the file as AWS delivered it."
    )
    raise InvalidInput([problem])


def _escape(data: bytes) -> str:
    """Return what marks a quote within a field: another quote or, as Spark writes csv, \\."""
    is_doubled = DOUBLED_QUOTE.search(data) is not None
    return "\\" if not is_doubled and MARKED_QUOTE.search(data) else '"'


def _told_apart(names: list[str], what: str) -> list[str]:
    """Return the names with those of tags told apart that differ by case alone; refuse any others.

    Spark knows no case in names. Of such tags the first is found by its key, as anywhere else,
    unless another is spelled as the key that is asked for (spark.ingest.cur). A column without a
    name, as of a table's index or a comma too many, is one that nobody asks for; blanks around a
    tag's key are the key's own.
    """
    names = [
        name.strip() if name.lower().startswith(TAG_COLUMNS) else name or f"unnamed {place}"
        for place, name in enumerate(names, start=1)
    ]
    blank = next((name for name in names if name != name.strip()), None)
    if blank is not None:
        problem = f"{what} has blanks around its columns' names ('{blank}'); take them out."
        raise InvalidInput([problem])
    apart: list[str] = []
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if name in apart or (other != name and not name.lower().startswith(TAG_COLUMNS)):
            also = "" if other == name else f", once as {other}"
            raise InvalidInput([f"{what} names column {name} twice{also}; export it once."])
        apart.append(name if other == name else f"{name} ({len(apart)})")
    return apart


def _names(data: bytes, what: str) -> list[str]:
    """Return the cells of a first line, or say in which other way the file is written."""
    start = data.removeprefix(BYTE_ORDER_MARK).lstrip()
    others = [said for begins, said in OTHER_KINDS.items() if start.startswith(begins)]
    if others:
        raise InvalidInput([f"{what} {others[0]}."])
    # Without its mark every other byte of a header's ASCII is nought.
    is_wide = len(data) > 3 and (not any(data[1:40:2]) or not any(data[:40:2]))
    if data.startswith(UTF_16) or is_wide:
        raise InvalidInput([f"{what} is written in UTF-16; save it as UTF-8."])
    first = re.split(rb"\r?\n|\r", data, maxsplit=1)[0].decode("utf-8-sig")
    names = next(csv.reader([first]), [])
    others = [said for letter, said in OTHER_DELIMITERS.items() if first.count(letter) > 2]
    if len(names) <= 2 and others:
        raise InvalidInput(
            [f"{what} separates its fields by {others[0]}; export it with commas, as AWS does."]
        )
    return names


def _inflated_bytes(data: bytes) -> bytes:
    stream = zlib.decompressobj(GZIP_WINDOW)
    inflated = stream.decompress(data)
    if b"\n" not in inflated and not stream.eof:
        raise EOFError("it ends within its first line")
    return inflated


def read(
    session: SparkSession,
    files: Files,
    addresses: Sequence[str],
    what: str,
    *,
    joined: bool = False,
) -> DataFrame:
    """Read files as text columns, and CORRUPT; a column that a file lacks is null in its lines.

    Months that somebody put into one folder have other tags, and some writers order columns anew
    for every file; a file that has little in common with the first is refused. `joined` reads a
    quoted field over several lines; a file is read whole by one task then.
    """
    alike: dict[Header, list[str]] = {}
    for address in addresses:
        one = what if len(addresses) == 1 else f"{what}: {address.rsplit('/', 1)[-1]}"
        alike.setdefault(header(files, address, one), []).append(address)
    first, *others = alike
    for other in others:
        shared = {name.lower() for name in other.names} & {name.lower() for name in first.names}
        if 2 * len(shared) < min(len(other.names), len(first.names)):
            this, one = (alike[each][0].rsplit("/", 1)[-1] for each in (other, first))
            problem = f"{what}: {this} has other columns than {one}; name one bill's files alone."
            raise InvalidInput([problem])
    frames = [_of_one_header(session, each, same, joined=joined) for each, same in alike.items()]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)


def _of_one_header(
    session: SparkSession, first: Header, addresses: Sequence[str], *, joined: bool
) -> DataFrame:
    schema = StructType([StructField(name, StringType()) for name in [*first.names, CORRUPT]])
    # A pruned read does not notice a line with too few or too many columns.
    reader = session.read.option("columnPruning", "false")
    return reader.csv(
        [literal_address(address) for address in addresses],
        schema=schema,
        header=True,
        quote='"',
        escape=first.escape,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=CORRUPT,
        multiLine=joined,
    )


def is_joined(apart: DataFrame, joined: DataFrame) -> bool:
    """Say whether fields that hold line breaks are all that is wrong with broken lines.

    Read as joined no line is broken, and every line that is whole by itself still is: a quote that
    was never closed would have swallowed some of those.
    """
    cells = [F.col(quoted_name(name)) for name in joined.columns if name != CORRUPT]
    # Spark answers no question about broken lines alone.
    counted = apart.agg(F.count_if(F.col(CORRUPT).isNull()), F.max(cells[0])).head()
    whole = counted[0] if counted else 0
    # Spark ends a line at a carriage return as well, though it is alone.
    spread = F.concat_ws("", *(cell.cast("string") for cell in cells)).rlike(r"[\r\n]")
    found = joined.agg(
        F.count_if(F.col(CORRUPT).isNotNull()), F.count_if(F.col(CORRUPT).isNull() & ~spread)
    ).head()
    return found is not None and (found[0], found[1]) == (0, whole)


def unzipped_files(session: SparkSession, addresses: Sequence[str], scratch: str) -> list[str]:
    """Return the csv files that these zip archives hold, written below `scratch`.

    Spark reads no zip. On a cluster `scratch` is an address that every worker can reach.
    """
    files = HadoopFiles(session)
    targets = []
    for number, address in enumerate(addresses, start=1):
        name = address.rsplit("/", 1)[-1].removesuffix(".zip").removesuffix(".csv")
        targets += files.unzip(address, f"{scratch}/{number:05d}-{name}")
    return targets
