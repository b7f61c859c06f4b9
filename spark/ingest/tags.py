"""Reads a line's tags under whatever names and in whatever form a bill writes them.

A tag stands in a map, in text that holds one, or in a column of its own. What a line's tags mean is
said later (spark.transforms.daily).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from spark.ingest.delivery import Shape, text_or_null
from spark.ingest.lines import CORRUPT
from spark.ingest.tag_texts import entries, map_of
from spark.schemas import TEXTS
from spark.tables import quoted_name
from spark.tag_keys import UNREAD_TAGS, column_spellings, tag_columns

UNREAD_CHARACTERS = 80


def tags(frame: DataFrame | Shape, maps: Sequence[str], keys: Iterable[str]) -> list[Column]:
    """Return `tag_names` and `tag_values`: a line's tags, under whatever names they came.

    A tag stands in a map, or in a column of its own where the export or legacy CUR spread it out.
    """
    columns = {name.lower(): name for name in frame.columns}
    own: dict[str, str] = {}
    for key in keys:
        known = column_spellings(key)
        for spelled in tag_columns(key, columns):
            # What is looked up are the names that exports give a tag's column.
            own.setdefault(spelled if spelled in known else known[0], columns[spelled])
    return named_tags(maps, own)


def every_tag(maps: Sequence[str], spread: Sequence[str]) -> list[Column]:
    """Return `tag_names` and `tag_values` of all tags, whichever columns they are in."""
    return named_tags(maps, {name: name for name in spread})


def named_tags(maps: Sequence[str], own: Mapping[str, str]) -> list[Column]:
    """Return the tags in maps, and before them those with a column of their own, by name."""
    names = [F.map_keys(name) for name in maps]
    values = [F.map_values(name) for name in maps]
    if own:
        names.insert(0, F.array(*(F.lit(name) for name in own)))
        values.insert(0, F.array(*(F.col(quoted_name(column)) for column in own.values())))
    # The cells of a broken line may have shifted: what is in them is no tag of anything.
    is_whole = F.col(CORRUPT).isNull()
    both = {"tag_names": _joined_arrays(names), "tag_values": _joined_arrays(values)}
    return [F.when(is_whole, each.cast(TEXTS)).alias(name) for name, each in both.items()]


def _joined_arrays(arrays: Sequence[Column]) -> Column:
    if not arrays:
        return F.array()
    if len(arrays) == 1:
        return arrays[0]
    return F.concat(*(F.coalesce(each, F.array().cast(TEXTS)) for each in arrays))


def as_map(frame: DataFrame, name: str) -> DataFrame:
    """Return the frame with a column of tags as a map, whichever way they were written.

    Text holds them in any of the ways that spark.ingest.tag_texts knows; Parquet that is not AWS's
    own may hold a list of keys with values, or a field for each key. Text that nobody can read is
    kept as the value of UNREAD_TAGS.
    """
    kind = frame.schema[name].dataType
    if isinstance(kind, MapType):
        return frame
    if isinstance(kind, StructType):
        fields = [F.lit(key) for key in kind.names]
        values = [F.col(name)[key].cast("string") for key in kind.names]
        return frame.withColumn(name, F.map_from_arrays(F.array(*fields), F.array(*values)))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        of = {field.lower(): field for field in kind.elementType.names}
        if {"key", "value"} <= set(of):
            parts = [of["key"], of["value"]]
            pairs = F.transform(name, lambda tag: F.struct(*(tag[p].cast("string") for p in parts)))
            return frame.withColumn(name, entries(pairs))
    written = text_or_null(name)
    unread = F.when(
        written.isNotNull(),
        F.create_map(F.lit(UNREAD_TAGS), F.substring(written, 1, UNREAD_CHARACTERS)),
    )
    return frame.withColumn(name, F.coalesce(map_of(written), unread))
