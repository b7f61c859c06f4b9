"""What every reader of a bill hands to a job, and what all readers share.

First stop of a dollar's walk: a bill's own columns become charges. A row that cannot be read
keeps a reason instead of vanishing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from core.errors import InvalidInput
from spark.ingest.lines import CORRUPT
from spark.schemas import MONEY, TAGS

# Two-region forms (USE1-CAN1-AWS-Out-Bytes) and EU-, which has no number, are in real bills.
REGION_PREFIX = r"^(?:[A-Z]{2,4}\d?-){1,2}"
LINE_CHARACTERS = 300
BROKEN_LINE = "the line does not hold the columns of its header"


@dataclass(frozen=True)
class Delivery:
    """One bill as delivered.

    `rows` is INGESTED. `costs` holds the delivered cost alone, as money, straight from the files:
    the control total is taken from it, past every transform.
    """

    label: str
    rows: DataFrame
    costs: DataFrame
    simulated: bool = False


def named(
    frame: DataFrame, required: Mapping[str, str], optional: Iterable[str], what: str
) -> DataFrame:
    """Return the required and the optional columns under their own names, and CORRUPT.

    Case does not matter (Athena lowers it); an optional column that is absent is null. Raises
    InvalidInput with one sentence per missing column, naming the setting that adds it.
    """
    spelled = {name.lower(): name for name in frame.columns}
    missing = [
        f"{what} has no column {name}; {remedy}."
        for name, remedy in required.items()
        if name.lower() not in spelled
    ]
    if missing:
        raise InvalidInput(missing)
    return frame.select(
        *(
            F.col(f"`{spelled[name.lower()]}`").alias(name)
            if name.lower() in spelled
            else F.lit(None).cast("string").alias(name)
            for name in dict.fromkeys([*required, *optional, CORRUPT])
        )
    )


def text(name: str) -> Column:
    """Return a column as trimmed text, the literals that exports write for "nothing" as null."""
    trimmed = F.trim(_trusted(name).cast("string"))
    return F.when(~trimmed.isin("", "NULL", "null"), trimmed)


def money(name: str) -> Column:
    """Return a cost as money, or null where it is no finite number."""
    return _trusted(name).try_cast(MONEY)


def moment(name: str) -> Column:
    return _trusted(name).try_cast("timestamp")


def _trusted(name: str) -> Column:
    # The columns of a broken line may have shifted: nothing in them is what it is called.
    return F.when(F.col(CORRUPT).isNull(), F.col(name))


def tags(frame: DataFrame, name: str) -> Column:
    """Return a map column as it is, and one that csv carries as JSON, as a map."""
    if isinstance(frame.schema[name].dataType, MapType):
        return F.col(name).cast(TAGS)
    return F.from_json(text(name), "map<string,string>")


def usage_type(name: str) -> Column:
    """Return a usage type without its region's prefix."""
    return F.regexp_replace(text(name), REGION_PREFIX, "")


def shown(names: Iterable[str]) -> Column:
    """Return what a reader of the report needs to find a bad row in the bill."""
    return F.substring(
        F.coalesce(F.col(CORRUPT), F.concat_ws(", ", *(text(name) for name in names))),
        1,
        LINE_CHARACTERS,
    )


def reason(*, numbers: Iterable[str], moments: Iterable[str], filled: Iterable[str]) -> Column:
    """Return why a row cannot be read, or null for one that can."""
    broken = F.when(F.col(CORRUPT).isNotNull(), F.lit(BROKEN_LINE))
    return F.coalesce(
        broken,
        *(_unreadable(name, money(name), "a number") for name in numbers),
        *(_unreadable(name, moment(name), "a time") for name in moments),
        *(F.when(text(name).isNull(), F.lit(f"{name} is empty")) for name in filled),
    )


def _unreadable(name: str, value: Column, kind: str) -> Column:
    written = F.substring(text(name), 1, 40)
    sentence = F.concat(F.lit(f"{name} '"), written, F.lit(f"' is not {kind}"))
    return F.when(value.isNull(), F.coalesce(sentence, F.lit(f"{name} is empty")))


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn Spark's complaint about a file it cannot read into one sentence."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        causes = [line for line in lines if line.startswith("Caused by:")]
        cause = (causes or lines[:1])[-1].removeprefix("Caused by: ")
        raise InvalidInput([f"{what} cannot be read: {cause}"]) from error
