"""Says what ran on the nodes of Kafka's pools and what each cost of them, from split lines.

AWS shares a node's amortised hour out among its pods. A node can be paid for by several lines in
one hour (half by a savings plan, half on demand), so a share is scaled by each line's part of the
hours and never joined without that, as the Cloud Intelligence Dashboards do it
(scad_cca_summary_view). What a node cost and no split line explains is a row too: the rows of an
instance and day add up to what the bill's own lines say, which no share ever changes.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark import money
from spark.schemas import MONEY, NODE_SHARES, require_schema
from spark.transforms.attribute import Attribution
from spark.transforms.classify import Component

AMOUNTS = ("split_cost", "unused_cost", "net_split_cost", "net_unused_cost")
POD = ("eks_cluster", "namespace", "workload_type", "workload", "pod")
DAEMON_SET = "DaemonSet"
_INTERVAL = ("billing_period", "instance_id", "at")
_NODE_DAY = ("billing_period", "day", "instance_id")
_TOTALS = {name: name for name in AMOUNTS}


class ShareKind(StrEnum):
    """What a share of a node is for, in the order the report lists it."""

    KAFKA = "Kafka"
    DAEMON_SET = "daemon set"
    OTHER = "other pod"
    NOT_ALLOCATED = "not allocated"


def node_shares(usage: DataFrame, pods: DataFrame, hours: DataFrame) -> DataFrame:
    """Turn USAGE, POD_HOURS and NODE_HOURS into NODE_SHARES."""
    nodes = _nodes(usage)
    own = nodes.select("billing_period", "instance_id").distinct()
    scaled = _scale_by_hours(_of(pods, own), _of(hours, own))
    keys = (*_NODE_DAY, "paid_by", *POD)
    summed = scaled.groupBy(*keys).agg(*money.sums(scaled, _TOTALS))
    placed = summed.select(
        *keys, *(c.alias(n) for n, c in money.total_columns(summed, _TOTALS).items())
    )
    known = placed.join(nodes, list(_NODE_DAY)).withColumn("kind", _kind())
    table = known.select(*NODE_SHARES.names).unionByName(_rest(nodes, placed))
    return require_schema(table, NODE_SHARES, "The node shares table")


def _nodes(usage: DataFrame) -> DataFrame:
    """Return a row per day of a node of Kafka's pools, with what its own lines say it cost."""
    is_instance = F.col("resource_id").startswith("i-")
    is_compute = F.col("component") == Component.BROKER_COMPUTE.value
    is_of_a_pool = F.col("attribution") == Attribution.NODE_POOL.value
    keys = ("billing_period", "day", F.col("resource_id").alias("instance_id"))
    # One row per node and day whatever its lines name: a negation may lack the zone.
    days = usage.where(is_instance & is_compute).groupBy(*keys)
    rows = days.agg(
        F.max("cluster").alias("cluster"),
        F.max(F.when(is_of_a_pool, F.col("owner"))).alias("owner"),
        F.max("zone").alias("zone"),
        F.max("currency").alias("currency"),
        F.sum("amortised_cost").cast(MONEY).alias("amortised_cost"),
        F.sum("net_cost").cast(MONEY).alias("net_cost"),
    )
    return rows.where(F.col("owner").isNotNull())


def _of(rows: DataFrame, nodes: DataFrame) -> DataFrame:
    return rows.join(nodes, ["billing_period", "instance_id"], "left_semi")


def _scale_by_hours(pods: DataFrame, hours: DataFrame) -> DataFrame:
    """Return each pod's share of an interval once per way in which its node was paid for."""
    each = hours.groupBy(*_INTERVAL, "paid_by").agg(F.sum("hours").alias("hours"))
    whole = hours.groupBy(*_INTERVAL).agg(F.sum("hours").alias("_all"))
    # Decimals are added up, so that the order of lines does not move a share.
    part = F.col("hours").cast("double") / F.col("_all").cast("double")
    parts = each.join(whole.where(F.col("_all") > 0), list(_INTERVAL)).withColumn("_part", part)
    joined = pods.join(parts, list(_INTERVAL))
    return joined.select(
        "billing_period",
        F.to_date("at").alias("day"),
        "instance_id",
        "paid_by",
        *POD,
        *((F.col(name) * F.col("_part")).alias(name) for name in AMOUNTS),
    )


def _kind() -> Column:
    """Say what a pod is: a broker's or controller's is named after the node pool it is in."""
    prefix = F.concat(F.col("cluster"), F.lit("-"), F.col("owner"), F.lit("-"))
    node_id = F.substring(F.col("pod"), F.length(prefix) + 1, F.length("pod"))
    is_kafka = F.col("pod").startswith(prefix) & node_id.rlike(r"^\d+$")
    return (
        F.when(is_kafka, ShareKind.KAFKA.value)
        .when(F.col("workload_type") == DAEMON_SET, ShareKind.DAEMON_SET.value)
        .otherwise(ShareKind.OTHER.value)
    )


def _rest(nodes: DataFrame, placed: DataFrame) -> DataFrame:
    """Return what a node's day cost beyond its shares; below 0 where they came to more."""
    allocated = placed.groupBy(*_NODE_DAY).agg(
        F.sum(F.col("split_cost") + F.col("unused_cost")).cast(MONEY).alias("_shared"),
        F.sum(F.col("net_split_cost") + F.col("net_unused_cost")).cast(MONEY).alias("_net_shared"),
    )
    nothing = F.lit(0).cast(MONEY)
    left = nodes.join(allocated, list(_NODE_DAY), "left").withColumns(
        {
            "kind": F.lit(ShareKind.NOT_ALLOCATED.value),
            "split_cost": nothing,
            "net_split_cost": nothing,
            "unused_cost": _less("amortised_cost", "_shared"),
            "net_unused_cost": _less("net_cost", "_net_shared"),
            **{name: F.lit(None).cast("string") for name in ("paid_by", *POD)},
        }
    )
    is_something = (F.col("unused_cost") != 0) | (F.col("net_unused_cost") != 0)
    return left.where(is_something).select(*NODE_SHARES.names)


def _less(cost: str, shared: str) -> Column:
    return (F.col(cost) - F.coalesce(F.col(shared), F.lit(0).cast(MONEY))).cast(MONEY)
