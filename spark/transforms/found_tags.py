"""Says which tags a bill carries, for somebody to say which of them means Kafka.

Asked only of a bill on which nothing is known to be Kafka's: its tags are read once more.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.frames import first_of
from spark.schemas import EMPTY, MONEY, TAGS_FOUND, require_schema

# Words in a key or a value by which a tag is likely to mean Kafka.
KAFKA_WORDS = r"(?i)kafka|strimzi|streaming|event-?bus"
KEYS_KEPT = 30
# AWS's own are no longer; of another's the beginning says enough.
LONGEST = 256
# How exports write the keys of tags that somebody set (spark.tag_keys).
_PREFIX = r"^(resourceTags/user:|resourceTags/|resource_tags_user_|user:|user_)"


def found_tags(tagged: DataFrame) -> DataFrame:
    """Return TAGS_FOUND of lines with `billing_period`, their tags and `billed_cost`."""
    pairs = tagged.select(
        "billing_period",
        F.col("billed_cost").try_cast(MONEY).alias("cost"),
        F.inline(F.arrays_zip(F.col("tag_names").alias("key"), F.col("tag_values").alias("value"))),
    ).where(~F.trim("value").isin(*EMPTY))
    key = F.regexp_replace("key", _PREFIX, "")
    named = pairs.withColumns(
        {"key": _shortened_text(key), "value": _shortened_text(F.col("value"))}
    )
    each = named.groupBy("billing_period", "key", "value").agg(
        F.count("*").alias("charges"), F.sum("cost").alias("cost")
    )
    says_so = F.col("key").rlike(KAFKA_WORDS) | F.col("value").rlike(KAFKA_WORDS)
    rank = F.struct(says_so, F.coalesce("cost", F.lit(0).cast(MONEY)))
    keys = each.groupBy("billing_period", "key").agg(
        F.max_by("value", rank).alias("value"),
        F.max(says_so).alias("names_kafka"),
        F.count("*").alias("different_values"),
        F.sum("charges").alias("charges"),
        F.coalesce(F.sum("cost"), F.lit(0)).cast(MONEY).alias("billed_cost"),
    )
    dearest = (F.col("names_kafka").desc(), F.col("billed_cost").desc(), "key")
    kept = first_of(keys, ["billing_period"], *dearest, rows=KEYS_KEPT)
    return require_schema(kept, TAGS_FOUND, "The tags found")


def _shortened_text(text: Column) -> Column:
    is_long = F.length(text) > LONGEST
    ellipsis = F.lit("\N{HORIZONTAL ELLIPSIS}")
    return F.when(is_long, F.concat(F.substring(text, 1, LONGEST), ellipsis)).otherwise(text)
