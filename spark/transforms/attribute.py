"""Says whose a charge is: a Kafka node pool in one zone, a cluster as a whole, or nobody's.

An instance is known by its pool tag and its zone; a volume by the claim it was made for, which
also names the Kafka node. An instance's own node id changes with every rotation and is on no tag,
so what both know, the KafkaNodePool (`broker-a`), is the owner; where a pool runs one node per
zone, that is one broker.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


class Attribution(StrEnum):
    """How closely a charge's owner is known."""

    NODE_POOL = "node pool"
    CLUSTER = "cluster"
    NOBODY = "unattributed"


# core.naming.claim: data-<volume>-<cluster>-<node pool>-<node id>
_CLAIM = r"^data-\d+-(.+)-(\d+)$"


def attributed(rows: DataFrame) -> DataFrame:
    """Add the columns `cluster`, `owner`, `node_id` and `attribution`."""
    known = rows.withColumns(
        {
            "cluster": F.col("tag_cluster"),
            "node_id": F.regexp_extract(_claim(), _CLAIM, 2).try_cast("int"),
        }
    )
    owned = known.withColumn("_node_pool", F.coalesce(_pool_in_zone(), _pool_of_claim()))
    has_pool, has_cluster = F.col("_node_pool").isNotNull(), F.col("cluster").isNotNull()
    return owned.withColumns(
        {
            "owner": F.when(has_pool, F.col("_node_pool"))
            .when(has_cluster, F.lit("whole cluster"))
            .otherwise(F.lit(Attribution.NOBODY.value)),
            "attribution": F.when(has_pool, F.lit(Attribution.NODE_POOL.value))
            .when(has_cluster, F.lit(Attribution.CLUSTER.value))
            .otherwise(F.lit(Attribution.NOBODY.value)),
        }
    ).drop("_node_pool")


def _claim() -> Column:
    return F.coalesce("tag_claim", F.lit(""))


def _pool_in_zone() -> Column:
    """Return core.naming.kafka_node_pool of an instance's pool tag and its zone."""
    return F.concat("tag_pool", F.lit("-"), F.substring(F.col("zone"), -1, 1))


def _pool_of_claim() -> Column:
    """Return the node pool in a claim's name, without the cluster's where that is known."""
    pod = F.regexp_extract(_claim(), _CLAIM, 1)
    prefix = F.concat(F.col("cluster"), F.lit("-"))
    without_cluster = F.when(
        F.startswith(pod, prefix), F.substring(pod, F.length(prefix) + 1, F.length(pod))
    )
    pool = F.coalesce(without_cluster, pod)
    return F.when(pool != "", pool)
