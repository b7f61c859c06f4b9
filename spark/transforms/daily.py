"""Sums a bill's lines to one row per day, resource and meter: the pass over the whole bill.

What a line says apart from its hour and its amounts comes back every day. It is kept as one value,
`line`, and each of them is read once (tags looked up, a region's prefix cut off, blanks made null):
doing so for every day, or for every hour, took longer than the sums.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from pyspark.sql.window import Window

from core.naming import CLUSTER_TAG, POOL_TAG
from spark import money
from spark.ingest.delivery import EMPTY
from spark.schemas import CHARGES, HAS_NET, IS_UNREADABLE, LINE_AMOUNTS, LINE_KEYS
from spark.tag_keys import CLAIM_TAG, NODE_GROUP_TAG, column_spellings, spellings
from spark.transforms.amortise import DISCOUNTS

# Two-region forms (USE1-CAN1-AWS-Out-Bytes) and EU-, which has no number, are in real bills. Looser
# patterns cut off what is no region: EMR-SERVERLESS, EKS-EC2-vCPU-Hours.
REGION_PREFIX = r"^(?:(?:[A-Z]{3}\d|EU)-){1,2}"
# By which later rooms know whose a charge is.
OWNERS = {
    "tag_cluster": CLUSTER_TAG,
    "tag_pool": POOL_TAG,
    "tag_claim": CLAIM_TAG,
    "tag_node_group": NODE_GROUP_TAG,
}
TOTALS = {name: name for name in LINE_AMOUNTS}
LINE = "line"
# What a line says that is the same tomorrow.
_KEPT = [name for name in LINE_KEYS.names if name not in ("billing_period", "day", "reason")]
_TEXTS = [name for name in _KEPT if isinstance(LINE_KEYS[name].dataType, StringType)]
SAID = (*_KEPT, IS_UNREADABLE)


def summed(lines: DataFrame) -> DataFrame:
    """Return one row per month, day and LINE: `charges`, HAS_NET, exact sums.

    The amounts are parts of sums (spark.money), which can be added up again.
    """
    is_unreadable = F.col("reason").isNotNull().alias(IS_UNREADABLE)
    rows = lines.groupBy("billing_period", "day", *_KEPT, is_unreadable).agg(
        F.sum(CHARGES).alias(CHARGES),
        F.max(HAS_NET).alias(HAS_NET),
        *money.sums(lines, TOTALS),
    )
    sums = [name for name in rows.columns if name not in ("billing_period", "day", *SAID)]
    return rows.select("billing_period", "day", F.struct(*SAID).alias(LINE), *sums)


def said(rows: DataFrame) -> DataFrame:
    """Return each LINE of summed rows once, and what it says: tidied, owners' tags looked up."""
    once = rows.select(LINE).distinct().select(LINE, f"{LINE}.*")
    blank = {name: _blank(F.col(name)) for name in _TEXTS}
    owners = {name: _tag(key) for name, key in OWNERS.items()}
    usage_type = F.regexp_replace(blank["usage_type"], REGION_PREFIX, "")
    return once.withColumns({**blank, **owners, "usage_type": usage_type}).drop(
        "tag_names", "tag_values"
    )


def net_of_discounts(rows: DataFrame) -> DataFrame:
    """Take out of the net cost of summed rows the discounts that net columns already hold.

    An export of the compatible kind writes them as lines and leaves the net columns empty; one
    that has both would otherwise count them twice.
    """
    month = Window.partitionBy("billing_period", F.col(f"{LINE}.account"))
    has_net = F.max(HAS_NET).over(month) == 1
    is_discount = F.col(f"{LINE}.category").isin(*DISCOUNTS)
    already = F.coalesce(has_net & is_discount, F.lit(False))  # noqa: FBT003 - a literal column
    return rows.withColumns(
        {
            part: F.when(already, F.lit(0).cast(rows.schema[part].dataType)).otherwise(F.col(part))
            for part in money.parts_of(rows, "net_cost")
        }
    )


def _tag(key: str) -> Column:
    """Return a tag's value under whatever spelling this export used for its key."""
    known = dict.fromkeys((*column_spellings(key), *spellings(key)))
    places = [F.array_position("tag_names", F.lit(spelled)) - 1 for spelled in known]
    return F.coalesce(*(_blank(F.get("tag_values", place)) for place in places))


def _blank(value: Column) -> Column:
    trimmed = F.trim(value)
    return F.when(~trimmed.isin(*EMPTY), trimmed)
