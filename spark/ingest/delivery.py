"""Defines what every reader of a bill hands to a job, and what all readers share.

First stop of a dollar's walk: a bill's own columns become lines of one shape. A row that cannot be
read keeps a reason instead of vanishing. Text is left as it is delivered: it is tidied when there
is a hundredth of it (spark.transforms.daily).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    FloatType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from core.ground.errors import InvalidInput, passed_on
from spark import money
from spark.expressions import surely
from spark.ingest.control import Control
from spark.ingest.lines import CORRUPT
from spark.months import Refresh
from spark.schemas import CHARGES, EMPTY
from spark.tables import quoted_name
from spark.tag_keys import OURS, TAG_COLUMNS, KafkaTags

LINE_CHARACTERS = 300
BROKEN_LINE = "the line does not hold the columns of its header"
SECOND_HEADER = "the line is a header again: two files are glued together"
HEADER_CELL = r"^(bill|lineitem|identity|pricing|product|reservation|savingsplan)(/|_)[a-z_/]+$"
NO_CODEC = re.compile(r"ClassNotFoundException: org\.apache\.hadoop\.io\.compress\.(\w+)Codec")
MISTYPED = re.compile(
    r'IS NULL\) THEN (\S+) END AS (?:DATE|TIMESTAMP).*?cannot cast "(\w+)"', re.DOTALL
)
TWICE = re.compile(r"\[COLUMN_ALREADY_EXISTS\] The column `([^`]+)`")
# Spark takes a time without a day (a spreadsheet's 00:00.0) for today's, and a spreadsheet's number
# of a day (46327) for a year.
DATED, YEARS = r"^\s*[12]\d{3}-\d{1,2}(\D|$)", (1000, 2999)
# Azure and Oracle write times to the minute (2026-11-01T00:00Z), which Spark takes for none.
TO_THE_MINUTE = r"^(\s*\d{4}-\d{1,2}-\d{1,2}[T ]\d{1,2}:\d{2})(\s*([Zz]|UTC|GMT|[+-].*)?\s*)$"
# What Java says of a file that is not whole -> what it means.
DAMAGE = {
    "EOFException": "it ends before its data does; copy it again",
    "Relative path in absolute URI": "a name has a colon, which Spark cannot list; rename it",
    "encrypted ZIP entry": "its archive needs a password; pack it again without one",
}
# Times as numbers, as databases hand them on: what each unit of an epoch counts up to. No digits of
# a day are as many, but those of seconds, which text may not be.
EPOCH = r"^\s*(\d{13}|\d{16}|\d{19})\s*$"
LEAST_SECONDS, LEAST_MILLIS, LEAST_MICROS, LEAST_NANOS = (10**places for places in (9, 12, 15, 18))
OWN, CAUSED = f"{InvalidInput.__module__}.{InvalidInput.__name__}: ", "Caused by: "


class Format(StrEnum):
    """The bills that can be read."""

    CUR2 = "CUR 2.0"
    CUR = "legacy CUR"
    FOCUS = "FOCUS"


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a frame, which are all that its expressions depend on."""

    schema: StructType

    @property
    def columns(self) -> list[str]:
        return self.schema.names


@dataclass(frozen=True)
class Splits:
    """Split cost allocation data: pods' shares (POD_HOURS), and their nodes' hours (NODE_HOURS).

    A second view of money that `Delivery.parts` hold: never summed with it (spark.ingest.splits).
    """

    pods: DataFrame
    hours: DataFrame


@dataclass(frozen=True)
class Delivery:
    """One bill as delivered.

    `parts` hold lines: LINE_KEYS, HAS_NET, LINE_AMOUNTS, and of how many delivered lines a row is
    the sum. Parts are summed apart and then put together, since Spark copies every row of a union.
    `control` takes the control totals straight from the files, past every transform. `every_line`
    reads each line as it was delivered, with `line`, its text. `refreshes` are the months that
    manifests describe; files that none does have a `fingerprint` together.
    """

    label: str
    format: Format
    parts: Sequence[DataFrame]
    control: Callable[[], Mapping[str, Control]]
    every_line: Callable[[], Sequence[DataFrame]]
    refreshes: Mapping[str, Refresh] = field(default_factory=dict)
    fingerprint: str = ""
    simulated: bool = False
    # What says that a line is Kafka's.
    kafka: KafkaTags = OURS
    # Every tag of every line, for somebody to say which means Kafka: TAGGED columns.
    tagged: Callable[[], DataFrame] | None = None
    # The same bill with fields over several lines, where that is all that is wrong with it.
    joined: Callable[[], Delivery | None] = lambda: None
    # What the bill cannot say, and what would make it.
    notes: Sequence[str] = ()
    # Asked for by one job alone, so that no other waits for its plan.
    splits: Callable[[], Splits | None] = lambda: None

    @property
    def lines(self) -> DataFrame:
        return reduce(DataFrame.unionByName, self.every_line())


def named_columns(
    frame: DataFrame,
    required: Mapping[str, str],
    optional: Iterable[str],
    what: str,
    called: Callable[[str], str] = str,
) -> DataFrame:
    """Return the required and the optional columns under their own names, and CORRUPT.

    Neither case nor what stands between words matters (Athena lowers names, dbt has billed_cost);
    an optional column that is absent is null. Raises InvalidInput with one sentence per missing
    column, naming the setting that adds it; `called` is what the bill itself calls one.
    """
    spelled = spellings(frame.columns)

    def place(name: str) -> str | None:
        return spelled.get(name.lower(), spelled.get(letters(name)))

    missing = [
        f"{what} has no column {called(name)}; {remedy}."
        for name, remedy in required.items()
        if place(name) is None
    ]
    if missing:
        raise InvalidInput(missing)
    wanted = {name.lower(): name for name in [*required, *optional, CORRUPT]}
    return frame.select(
        *(
            F.lit(None).cast("string").alias(name)
            if (there := place(name)) is None
            else _exact_column(frame, there).alias(name)
            for name in wanted.values()
        )
    )


def require_each_once(
    columns: Iterable[str], called: Callable[[str], str], wanted: Collection[str], what: str
) -> None:
    """Refuse a bill that has a wanted column under two names: which of them counts is not known."""
    places: dict[str, list[str]] = {}
    for name in columns:
        places.setdefault(called(name), []).append(name)
    problems = [
        f"{what} has one column under {len(names)} names, {' and '.join(names)}; export it once."
        for meant, names in places.items()
        if len(names) > 1 and meant in wanted
    ]
    if problems:
        raise InvalidInput(problems)


def left_out(
    effects: Mapping[str, str], known: Collection[str], called: Callable[[str], str] = str
) -> list[str]:
    """Say what a bill cannot tell for want of columns that are not required, one sentence each."""
    return [
        f"The bill has no column {called(name)}: {effect}."
        for name, effect in effects.items()
        if name.lower() not in known and letters(name) not in known
    ]


def letters(name: str) -> str:
    """Return a column's name without case and without what stands between its words."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def spellings(columns: Iterable[str]) -> dict[str, str]:
    """Return where columns are, by their names in lower case and by their letters.

    Tags are told apart by what stands between their words: those have no second name.
    """
    names = list(columns)
    loose = {letters(name): name for name in names if not name.lower().startswith(TAG_COLUMNS)}
    return {**loose, **{name.lower(): name for name in names}}


def _exact_column(frame: DataFrame, name: str) -> Column:
    """Return a column, of floats as text: as doubles 0.1 of theirs would be 0.10000000149."""
    column = F.col(quoted_name(name))
    kind = frame.schema[name].dataType
    return column.cast("string") if isinstance(kind, FloatType | NullType) else column


def text(name: str) -> Column:
    """Return a column as it is delivered, as text."""
    return _trusted_column(name).cast("string")


def text_or_null(name: str) -> Column:
    """Return a column's text, null where the export writes a literal for "nothing"."""
    trimmed = F.trim(text(name))
    return F.when(~trimmed.isin(*EMPTY), trimmed)


def amount(name: str, kind: DataType) -> Column:
    """Return an amount as it is carried until it is added up, null where it cannot be."""
    return money.amount(_trusted_column(name), kind)


def charges() -> Column:
    """Return of how many delivered lines a row is the sum."""
    return F.coalesce(F.col(CHARGES).cast("long"), F.lit(1)).alias(CHARGES)


def moment(frame: DataFrame | Shape, name: str) -> Column:
    """Return a time; text is one only where it says its year and month (DATED)."""
    return _date_column(frame, name).try_cast("timestamp")


def day(frame: DataFrame | Shape, name: str) -> Column:
    """Return the UTC day of a time; text that names another zone says another day at times."""
    known = _date_column(frame, name)
    return F.coalesce(known.try_cast("timestamp").cast("date"), known.try_cast("date"))


def month_from(frame: DataFrame | Shape, name: str) -> Column:
    """Return the first day of the month that begins at a time.

    East of UTC a month begins up to 14 hours before it does there.
    """
    return F.trunc((moment(frame, name) + F.expr("INTERVAL 14 HOURS")).cast("date"), "month")


def _date_column(frame: DataFrame | Shape, name: str) -> Column:
    value, kind = _trusted_column(name), frame.schema[name].dataType
    if isinstance(kind, StringType):
        of_number = _of_epoch(value.try_cast("long")).cast("string")
        return F.when(value.rlike(DATED), F.regexp_replace(value, TO_THE_MINUTE, "$1:00$2")).when(
            value.rlike(EPOCH), of_number
        )
    if isinstance(kind, NumericType):
        return _of_epoch(value.try_cast("long"))
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return F.when(F.year(value).between(*YEARS), value)
    return value


def _of_epoch(number: Column) -> Column:
    """Return the time that a number counts to from 1970, in the unit that its size tells."""
    micros = (
        F.when(number >= LEAST_NANOS, F.floor(number / F.lit(1000.0)))
        .when(number >= LEAST_MICROS, number)
        .when(number >= LEAST_MILLIS, number * 1000)
        .when(number >= LEAST_SECONDS, number * 1_000_000)
    )
    return F.timestamp_micros(micros)


def _trusted_column(name: str) -> Column:
    # The columns of a broken line may have shifted: nothing in them is what it is called.
    return F.when(F.col(CORRUPT).isNull(), F.col(name))


def line_excerpt(names: Iterable[str]) -> Column:
    """Return what a reader of the report needs to find a bad row in the bill."""
    return F.substring(
        F.coalesce(F.col(CORRUPT), F.concat_ws(", ", *(text_or_null(name) for name in names))),
        1,
        LINE_CHARACTERS,
    )


def reason(
    frame: DataFrame | Shape,
    *,
    numbers: Mapping[str, DataType],
    days: Iterable[str],
    present: Iterable[str],
) -> Column:
    """Return why a row cannot be read, or null for one that can.

    Only the test is made for every row; the sentence is written for those that fail it.
    """
    problems = [
        *(
            (_is_header(n, kind, frame.columns), F.lit(SECOND_HEADER))
            for n, kind in numbers.items()
        ),
        (F.col(CORRUPT).isNotNull(), F.lit(BROKEN_LINE)),
        *((amount(n, kind).isNull(), _sentence(n, "a number")) for n, kind in numbers.items()),
        *((_is_no_day(frame, name), _sentence(name, "a time")) for name in days),
    ]
    for name in present:
        empty = F.lit(f"{name} is empty")
        is_text = isinstance(frame.schema[name].dataType, StringType)
        missing = text(name).isNull()
        problems.append((missing | text(name).isin(*EMPTY) if is_text else missing, empty))
    nothing = F.lit(None).cast("string")
    return reduce(
        lambda rest, case: F.when(case[0], case[1]).otherwise(rest), problems[::-1], nothing
    )


def _is_header(name: str, kind: DataType, columns: Sequence[str]) -> Column:
    """Say whether a line is a header again: where its amount should be stands a column's name."""
    if isinstance(kind, DoubleType | StructType):
        return F.lit(False)  # noqa: FBT003 - a literal column
    # Legacy CUR's own spelling of a name has a slash, and another header may have other columns.
    written = F.lower(F.trim(F.col(name).cast("string")))
    known = sorted({column.lower() for column in columns})
    is_name = written.isin(*known) | written.rlike(HEADER_CELL)
    return surely(F.col(name).try_cast("double").isNull() & is_name)


def _is_no_day(frame: DataFrame | Shape, name: str) -> Column:
    # What is delivered as a time is one, wherever it is: only text needs to be read.
    is_text = isinstance(frame.schema[name].dataType, StringType)
    return day(frame, name).isNull() if is_text else _date_column(frame, name).isNull()


def _sentence(name: str, kind: str) -> Column:
    trimmed = F.trim(text(name))
    # A double that is no number is delivered, unlike what a database writes for nothing.
    written = F.when(~trimmed.isin(*(each for each in EMPTY if each != "NaN")), trimmed)
    written = F.substring(written, 1, 40)
    return F.coalesce(
        F.concat(F.lit(f"{name} '"), written, F.lit(f"' is not {kind}")), F.lit(f"{name} is empty")
    )


def kind_of(frame: DataFrame | Shape, name: str) -> DataType:
    """Return how a bill's money is carried: doubles and sums as they are, all else decimal."""
    return money.kind_of(frame.schema[name].dataType)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn Spark's complaint about a file it cannot read into one sentence."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidInput([complaint(what, str(error))]) from error


def complaint(what: str, theirs: str) -> str:
    """Return what cannot be read and what to do, of a cause that nobody knows in Spark's words."""
    if known := _cause(theirs):
        return f"{what} cannot be read: {known}"
    lines = [line.strip() for line in theirs.splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith(CAUSED)]
    ours = f"{what} cannot be read by Spark. Copy it again, or export it anew as Parquet."
    return passed_on(ours, (caused or lines[:1] or [""])[-1].removeprefix(CAUSED))


def _cause(theirs: str) -> str | None:
    """Return what a complaint of Spark's means and what to do, or None where that is not known."""
    codec = NO_CODEC.search(theirs)
    if codec:
        return f"it is compressed by {codec[1]}, which Spark has no codec for; export with Snappy"
    mistyped = MISTYPED.search(theirs)
    if mistyped:
        return f"its column {mistyped[1]} holds {mistyped[2]}, which are no times; export it again"
    twice = TWICE.search(theirs)
    if twice:
        return f"it names column {twice[1]} twice, whatever the case of its letters; export it once"
    known = next((said for words, said in DAMAGE.items() if words in theirs), None)
    if known is not None:
        return known
    # A worker in Python says why in a sentence of ours, which stands below its stack.
    said = [line.strip() for line in theirs.splitlines() if line.strip().startswith(OWN)]
    return said[-1].removeprefix(OWN) if said else None
