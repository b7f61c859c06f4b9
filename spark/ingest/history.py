"""Reads the ledger's archive: one JSON line per incident, in a folder per day it ended.

λ sweep writes it (handlers.incidents.broom). A rotation here is an incident of a Kafka node that is
over; of rounds filed twice the later line counts.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

from core.ground.errors import InvalidInput
from spark.findings import ROTATIONS
from spark.frames import first_of
from spark.ingest.delivery import readable
from spark.ingest.files import address_of
from spark.schemas import require_schema
from spark.tables import literal_address

_CORRUPT = "_corrupt"
_TEXT = ("id", "cluster", "instance_id", "zone", "pool", "kind", "state")
_TIMES = ("opened_at", "forwarded_at", "lost_at", "broker_back_at", "closed_at")
LINE = StructType(
    [
        *(StructField(name, StringType()) for name in _TEXT),
        *(StructField(name, DoubleType()) for name in _TIMES),
        StructField("node_id", IntegerType()),
        StructField(_CORRUPT, StringType()),
    ]
)


def read(session: SparkSession, address: str, *, archive_name: str, cluster: str) -> DataFrame:
    """Return the ROTATIONS of one cluster, under the name its bill knows it by.

    `archive_name` is what the archive calls it (environment and name). Raises InvalidInput for a
    folder that cannot be read or holds a line that is no JSON.
    """
    what = f"The rotation history {address}"
    with readable(what):
        lines = (
            session.read.option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "*.jsonl")
            .json(
                literal_address(address_of(address)),
                schema=LINE,
                mode="PERMISSIVE",
                columnNameOfCorruptRecord=_CORRUPT,
            )
            .cache()
        )
        broken = lines.where(F.col(_CORRUPT).isNotNull()).select(_CORRUPT).head(1)
    if broken:
        problem = f"{what} holds a line that is no incident: {broken[0][0][:80]!r}; remove it."
        raise InvalidInput([problem])
    return lines.transform(lambda frame: rotations(frame, archive_name, cluster))


def rotations(lines: DataFrame, archive_name: str, cluster: str) -> DataFrame:
    """Turn the archive's lines into ROTATIONS of one cluster."""
    is_ours = F.col("cluster").isin(archive_name, cluster)
    is_over = F.col("closed_at").isNotNull() & F.col("node_id").isNotNull()
    latest = first_of(lines.where(is_ours & is_over), ["id"], F.col("closed_at").desc())
    found = latest.select(
        F.date_format(_moment("closed_at"), "yyyy-MM").alias("billing_period"),
        F.lit(cluster).alias("cluster"),
        F.col("id").alias("incident"),
        "instance_id",
        "node_id",
        "zone",
        "pool",
        "kind",
        F.col("state").alias("outcome"),
        _moment("opened_at").alias("opened_at"),
        F.coalesce(_moment("forwarded_at"), _moment("lost_at")).alias("stopped_at"),
        _moment("broker_back_at").alias("back_at"),
        _moment("closed_at").alias("closed_at"),
    )
    return require_schema(found, ROTATIONS, "The history reader's output")


def _moment(name: str) -> Column:
    return F.timestamp_micros((F.col(name) * 1_000_000).cast("long"))
