"""Says whose a charge is: a Kafka node pool in one zone, a cluster as a whole, or nobody's.

An instance is known by its pool tag and its zone; a volume by the claim it was made for, which
also names the Kafka node. What both know, the KafkaNodePool (`broker-a`), is the owner. Which node
an instance carried is on no tag, since it changes with every rotation: the ledger's history says it
of those that are gone.
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


# core.ground.naming.claim: data-<volume>-<cluster>-<node pool>-<node id>
_CLAIM = r"^data-\d+-(.+)-(\d+)$"


def with_owner(rows: DataFrame) -> DataFrame:
    """Add the columns `cluster`, `owner`, `node_id` and `attribution`."""
    known = rows.withColumns(
        {
            "cluster": F.col("tag_cluster"),
            "node_id": F.when(
                F.col("tag_cluster").isNotNull(),
                F.regexp_extract(_claim(), _CLAIM, 2).try_cast("int"),
            ),
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
    """Return core.ground.naming.kafka_node_pool of an instance's pool tag and its zone.

    A zone is told by its letter: one that is written by its id (use1-az1), or that has none, is
    no pool's. Where neither a zone nor a cluster is known the pool itself is the owner.
    """
    letter = F.when(F.col("zone").rlike("[a-z]$"), F.substring(F.col("zone"), -1, 1))
    in_zone = F.concat("tag_pool", F.lit("-"), letter)
    return F.coalesce(in_zone, F.when(F.col("cluster").isNull(), F.col("tag_pool")))


def _pool_of_claim() -> Column:
    """Return the node pool in a claim's name, of a known cluster: others may name theirs alike."""
    pod = F.regexp_extract(_claim(), _CLAIM, 1)
    prefix = F.concat(F.col("cluster"), F.lit("-"))
    without_cluster = F.when(
        F.startswith(pod, prefix), F.substring(pod, F.length(prefix) + 1, F.length(pod))
    )
    pool = F.coalesce(without_cluster, pod)
    return F.when(F.col("cluster").isNotNull() & (pool != ""), pool)
