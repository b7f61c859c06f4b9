"""Sums a bill's lines to one row per day and meter: the pass over the whole bill.

In two grains. Of a line that is Kafka's its resource, zone and tags are kept; of all others what
was bought, by which account: a bill may hold as many resources as lines, and none of those is ours
to explain. Text is tidied once there is a fraction of it, and what a line says is read once of all
the days on which a bill says it: those are gathered, and spread again.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from pyspark.sql.window import Window

from spark import money
from spark.expressions import made_once, surely
from spark.schemas import CHARGES, EMPTY, HAS_NET, IS_UNREADABLE, LINE_AMOUNTS, LINE_KEYS
from spark.tag_keys import CLAIM_TAG, NODE_GROUP_TAG, OURS, KafkaTags, column_spellings, spellings
from spark.transforms.amortise import DISCOUNT
from spark.transforms.classify import IS_PRICED

# Two-region forms (USE1-CAN1-AWS-Out-Bytes) and EU-, which has no number, are in real bills; zones
# away from a region stand behind it (USW2-LAX1-, USE1-WL1-BOS1-). Looser patterns cut off what is
# no place: EMR-SERVERLESS, EKS-EC2-vCPU-Hours.
REGION_PREFIX = r"^(?:(?:[A-Z]{3,8}\d{1,2}|WL\d(?:[A-Z]{3}\d)?|EU)-){1,6}"
TOTALS = {name: name for name in LINE_AMOUNTS}
# Kafka's whatever pool it is of: somebody else says so, or a tag of the user's own, who set none
# for pools.
IS_KNOWN = "is_known"
# Kept of Kafka's lines alone.
_OF_KAFKAS = ("resource_id", "zone", "tag_names", "tag_values")
_KEPT = [name for name in LINE_KEYS.names if name not in ("billing_period", "day", "reason")]
_TEXTS = [name for name in _KEPT if isinstance(LINE_KEYS[name].dataType, StringType)]
# All that is read of a line, of whatever day.
_SAYING = (*_KEPT, IS_UNREADABLE, IS_PRICED)
_DAYS = "_days"


def daily_totals(lines: DataFrame, kafka: KafkaTags) -> DataFrame:
    """Return one row per month, day and what a line says, its charges counted and summed exactly.

    HAS_NET and IS_PRICED are beside them. The amounts are parts of sums (spark.money), which can be
    added up again.
    """
    is_unreadable = F.col("reason").isNotNull().alias(IS_UNREADABLE)
    known = lines.withColumn("_kafkas", is_kafkas(kafka))
    kept = known.withColumns({name: F.when(F.col("_kafkas"), F.col(name)) for name in _OF_KAFKAS})
    days = kept.groupBy("billing_period", "day", *_KEPT, is_unreadable).agg(
        F.sum(CHARGES).alias(CHARGES),
        F.max(HAS_NET).alias(HAS_NET),
        *money.sums(lines, TOTALS),
    )
    return days.withColumn(IS_PRICED, money.is_something(days, "billed_cost"))


def lines_with_days(days: DataFrame) -> DataFrame:
    """Return one row per different line with all its days, of what `summed` returns."""
    of_a_day = F.struct(*(name for name in days.columns if name not in _SAYING))
    # By a number first: texts that begin alike are slow to sort.
    number = F.xxhash64(*_SAYING).alias("_number")
    lines = days.groupBy(number, *_SAYING).agg(F.collect_list(of_a_day).alias(_DAYS))
    return lines.drop("_number")


def rows_per_day(lines: DataFrame) -> DataFrame:
    """Return one row per day again of `gathered` lines, whatever was added to them since."""
    return lines.select(*(name for name in lines.columns if name != _DAYS), F.inline(_DAYS))


@made_once
def is_kafkas(kafka: KafkaTags) -> Column:
    """Say whether anything makes a line Kafka's, from its tags as delivered and its resource."""
    cluster, pool, claim = (_tag(key) for key in (kafka.cluster, kafka.pool, CLAIM_TAG))
    by_cluster = cluster.isNotNull() if kafka.value is None else cluster == F.lit(kafka.value)
    by_tag = [(kafka.cluster, by_cluster), (kafka.pool, pool.isNotNull())]
    if kafka.claims is not None:
        by_tag.append((CLAIM_TAG, claim.rlike(kafka.claims)))
    known = [_has_key(key) & test for key, test in by_tag]
    if kafka.resources:
        known.append(F.col("resource_id").isin(*sorted(kafka.resources)))
    return reduce(lambda left, right: left | right, map(surely, known))


def line_attributes(rows: DataFrame, kafka: KafkaTags) -> DataFrame:
    """Return what rows say: tidied, a region's prefix cut off, owners' tags looked up."""
    # The values once: asked for within each look at a key they would be tidied at every one.
    tidied = rows.withColumn("tag_values", F.transform("tag_values", _blank))
    return tidied.withColumns(_attribute_columns(kafka)).drop("tag_names", "tag_values")


@made_once
def _attribute_columns(kafka: KafkaTags) -> dict[str, Column]:
    blank = {name: _blank(F.col(name)) for name in _TEXTS}
    usage_type = F.regexp_replace(blank["usage_type"], REGION_PREFIX, "")
    cluster, claim = _tidied_tag(kafka.cluster), _tidied_tag(CLAIM_TAG)
    if kafka.value is not None:
        cluster = F.when(cluster == F.lit(kafka.value), F.lit(kafka.called))
    nothing = F.lit(None).cast("boolean")
    ids = sorted(kafka.resources)
    is_known = F.col("resource_id").isin(*ids) if ids else nothing
    is_claimed = claim.rlike(kafka.claims) if kafka.claims else nothing
    named = F.when(surely(is_known) | surely(is_claimed), F.lit(kafka.called))
    by_own_tag = cluster.isNotNull() if kafka.is_own and kafka.pool == OURS.pool else nothing
    owners = {
        "tag_cluster": F.coalesce(cluster, named).cast("string"),
        "tag_pool": _tidied_tag(kafka.pool),
        "tag_claim": claim,
        "tag_node_group": _tidied_tag(NODE_GROUP_TAG),
        IS_KNOWN: surely(is_known) | surely(by_own_tag),
    }
    # Of one currency, however a tool in between wrote its code.
    currency = F.upper(blank["currency"])
    return {**blank, **owners, "usage_type": usage_type, "currency": currency}


def net_of_discounts(rows: DataFrame) -> DataFrame:
    """Take out of the net cost of summed rows the discounts that net columns already hold.

    An export of the compatible kind writes them as lines and leaves the net columns empty; one
    that has both would otherwise count them twice.
    """
    month = Window.partitionBy("billing_period", "account")
    has_net = F.max(HAS_NET).over(month) == 1
    already = has_net & is_discount()
    return rows.withColumns(
        {
            part: F.when(already, F.lit(0).cast(rows.schema[part].dataType)).otherwise(F.col(part))
            for part in money.parts_of(rows, "net_cost")
        }
    )


def is_discount() -> Column:
    """Say whether a row is a discount written as a line of its own."""
    return surely(F.col("category").endswith(DISCOUNT))


def _places(key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*column_spellings(key), *spellings(key))))


def _has_key(key: str) -> Column:
    """Say whether a line has a tag at all: one look at its keys, before any is looked up."""
    return F.arrays_overlap("tag_names", F.array(*(F.lit(spelled) for spelled in _places(key))))


def _tag(key: str) -> Column:
    """Return a tag's value under whatever spelling this export used for its key."""
    return F.coalesce(*(_blank(value) for value in _values_of(key)))


def _tidied_tag(key: str) -> Column:
    """Return the same of values that were tidied before."""
    return F.coalesce(*_values_of(key))


def _values_of(key: str) -> list[Column]:
    places = [F.array_position("tag_names", F.lit(spelled)) - 1 for spelled in _places(key)]
    return [F.get("tag_values", place) for place in places]


def _blank(value: Column) -> Column:
    trimmed = F.trim(value)
    return F.when(~trimmed.isin(*EMPTY), trimmed)
