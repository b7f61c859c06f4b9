"""Reads a tag off a charge, under whatever spelling the export used for its key."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.tag_keys import spellings


def tagged(key: str) -> Column:
    """Return the value of a tag that a charge carries, or null where it has none or it is empty."""
    values = (F.col("tags")[spelling] for spelling in spellings(key))
    return F.coalesce(*(F.when(value != "", value) for value in values))
