"""Reads split cost allocation data: what pods had of their nodes, and how each hour was paid for.

A pass of its own beside the one that sums a bill, since a pod's share is a second view of money
that its node's lines already hold: nothing here is ever added to a total. CUR 2.0 and legacy CUR
have such lines where the export includes them; an export without their columns costs nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark import money
from spark.ingest.delivery import Splits, moment, month_from, named_columns
from spark.ingest.lines import CORRUPT
from spark.ingest.source import DELIVERED_PERIOD
from spark.ingest.tags import as_map
from spark.schemas import EMPTY, NODE_HOURS, POD_HOURS, require_schema
from spark.tables import quoted_name
from spark.tag_keys import column_spellings, spellings

PARENT = "split_line_item_parent_resource_id"
SPLIT, UNUSED = "split_line_item_split_cost", "split_line_item_unused_cost"
NET = {SPLIT: "split_line_item_net_split_cost", UNUSED: "split_line_item_net_unused_cost"}
COLUMNS = (PARENT, SPLIT, UNUSED)
# AWS's own tags of a pod, which need no activation to be in the export's map.
EKS_TAGS = {
    "eks_cluster": "aws:eks:cluster-name",
    "namespace": "aws:eks:namespace",
    "workload_type": "aws:eks:workload-type",
    "workload": "aws:eks:workload-name",
}
_OF_LINE = (
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_resource_id",
    "line_item_line_item_type",
    "line_item_operation",
    "line_item_usage_type",
    "line_item_usage_amount",
)
# arn:aws:eks:REGION:ACCOUNT:pod/CLUSTER/NAMESPACE/POD/UID
_POD = r":pod/([^/]+)/([^/]+)/([^/]+)"
_EC2_HOURS = r"(Box|Spot|Dedicated|Host)Usage(:|$)"


def read(months: Sequence[DataFrame], maps: Sequence[str], known: Collection[str]) -> Splits | None:
    """Return the split lines and their nodes' hours, or None of a bill without the columns.

    `months` are a report's frames under CUR 2.0's names, `known` their columns in lower case.
    """
    if not set(COLUMNS) <= set(known):
        return None
    spread = [s for key in EKS_TAGS.values() for s in column_spellings(key) if s in known]
    required = dict.fromkeys([*COLUMNS, *_OF_LINE], "list it in the export's SELECT")
    optional = [*NET.values(), *maps, *spread, DELIVERED_PERIOD]
    frames = [named_columns(month, required, optional, "The bill") for month in months]
    pods = (require_schema(_pods(f, maps, spread), POD_HOURS, "Split lines") for f in frames)
    hours = (require_schema(_hours(f), NODE_HOURS, "Instances' hours") for f in frames)
    return Splits(reduce(DataFrame.unionByName, pods), reduce(DataFrame.unionByName, hours))


def _pods(frame: DataFrame, maps: Sequence[str], spread: Sequence[str]) -> DataFrame:
    # Filters on columns as they are delivered, so that a file without such lines is not read.
    rows = frame.where(
        F.col(PARENT).startswith("i-") & F.col(SPLIT).isNotNull() & F.col(CORRUPT).isNull()
    )
    for name in maps:
        rows = as_map(rows, name)
    tags = {name: _tag(key, maps, spread) for name, key in EKS_TAGS.items()}
    in_arn = {"eks_cluster": _in_arn(1), "namespace": _in_arn(2)}
    return rows.select(
        _period(rows),
        moment(rows, "line_item_usage_start_date").alias("at"),
        F.col(PARENT).cast("string").alias("instance_id"),
        *(F.coalesce(tags[name], in_arn[name]).alias(name) for name in in_arn),
        *(tags[name].alias(name) for name in tags if name not in in_arn),
        _in_arn(3).alias("pod"),
        _amount(SPLIT).alias("split_cost"),
        _amount(UNUSED).alias("unused_cost"),
        _net(SPLIT).alias("net_split_cost"),
        _net(UNUSED).alias("net_unused_cost"),
    )


def _hours(frame: DataFrame) -> DataFrame:
    kind, usage_type = F.col("line_item_line_item_type"), F.col("line_item_usage_type")
    rows = frame.where(
        F.col("line_item_resource_id").startswith("i-")
        & F.col("line_item_operation").startswith("RunInstances")
        & kind.isin("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage")
        & usage_type.rlike(_EC2_HOURS)
        & F.col(CORRUPT).isNull()
    )
    paid_by = (
        F.when(kind == "SavingsPlanCoveredUsage", "savings plan")
        .when(kind == "DiscountedUsage", "reserved")
        .when(usage_type.contains("SpotUsage"), "spot")
        .otherwise("on demand")
    )
    return rows.select(
        _period(rows),
        moment(rows, "line_item_usage_start_date").alias("at"),
        F.col("line_item_resource_id").cast("string").alias("instance_id"),
        paid_by.alias("paid_by"),
        F.col("line_item_usage_amount").try_cast("decimal(24,12)").alias("hours"),
    )


def _period(rows: DataFrame) -> Column:
    start = month_from(rows, "bill_billing_period_start_date")
    named_by_line = F.date_format(start, "yyyy-MM")
    return F.coalesce(F.col(DELIVERED_PERIOD), named_by_line).alias("billing_period")


def _amount(name: str) -> Column:
    value = F.col(name).try_cast("double")
    return F.coalesce(F.when(F.abs(value) < money.LARGEST, value), F.lit(0.0))


def _net(name: str) -> Column:
    """Return a share after private discounts; an account without any has nothing there, or 0."""
    net = _amount(NET[name])
    return F.when(net != 0, net).otherwise(_amount(name))


def _in_arn(group: int) -> Column:
    found = F.regexp_extract(F.col("line_item_resource_id"), _POD, group)
    return F.when(found != "", found)


def _tag(key: str, maps: Sequence[str], spread: Sequence[str]) -> Column:
    of_map = [F.try_element_at(name, F.lit(spelled)) for name in maps for spelled in spellings(key)]
    of_column = [F.col(quoted_name(name)) for name in column_spellings(key) if name in spread]
    nothing = F.lit(None).cast("string")
    values = (F.trim(each) for each in [*of_column, *of_map])
    return F.coalesce(nothing, *(F.when(~each.isin(*EMPTY), each) for each in values))
