"""Reads what Prometheus remembers: answers of its range-query API, or the same as Parquet.

Raw series, not rates: a query must keep names and labels, as a bare selector does
({__name__=~"kafka_server_.*"}). Counters keep their resets, which is how a restart is seen.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.ground.errors import InvalidInput
from spark.findings import SAMPLES
from spark.ingest.delivery import readable
from spark.ingest.files import address_of
from spark.schemas import require_schema
from spark.tables import literal_address

_ANSWER = (
    "status string, error string, data struct<resultType: string, "
    "result: array<struct<metric: map<string, string>, values: array<array<string>>>>>"
)
_PARQUET = {"name": "string", "labels": "map<string,string>", "at": "timestamp", "value": "double"}
_PARQUET_SUFFIX = ".parquet"


def read(session: SparkSession, address: str, cluster: str) -> DataFrame:
    """Return the SAMPLES of one cluster; volumes' series name no cluster and all come along.

    `address` is a file or a folder: .json (and .json.gz) answers, or .parquet with the columns
    name, labels, at and value. Raises InvalidInput for anything else.
    """
    what = f"The metrics {address}"
    with readable(what):
        if address.rstrip("/").endswith(_PARQUET_SUFFIX):
            raw = _parquet(session, address, what)
        else:
            raw = _answers(session, address, what)
        return raw.transform(lambda frame: samples(frame, cluster))


def _answers(session: SparkSession, address: str, what: str) -> DataFrame:
    answers = session.read.schema(_ANSWER).json(
        literal_address(address_of(address)), multiLine=True
    )
    said = answers.select("status", "error", "data.resultType").distinct().collect()
    for answer in said:
        if answer.status != "success":
            reason = answer.error or "it is no answer of the range-query API"
            raise InvalidInput([f"{what} holds no result: {reason}; query again."])
        if answer.resultType != "matrix":
            problem = (
                f"{what} holds a {answer.resultType}, not a matrix; ask /api/v1/query_range with "
                f"start, end and step."
            )
            raise InvalidInput([problem])
    series = answers.select(F.explode("data.result").alias("one"))
    return series.select(
        F.col("one.metric").alias("labels"), F.explode("one.values").alias("sample")
    ).select(
        F.col("labels")["__name__"].alias("name"),
        "labels",
        F.timestamp_micros((F.col("sample")[0].cast("double") * 1_000_000).cast("long")).alias(
            "at"
        ),
        F.col("sample")[1].try_cast("double").alias("value"),
    )


def _parquet(session: SparkSession, address: str, what: str) -> DataFrame:
    frame = session.read.parquet(literal_address(address_of(address)))
    missing = [name for name in _PARQUET if name not in frame.columns]
    if missing:
        problem = f"{what} has no column {missing[0]}; write {', '.join(_PARQUET)}."
        raise InvalidInput([problem])
    return frame.select(*(F.col(name).cast(kind).alias(name) for name, kind in _PARQUET.items()))


def samples(raw: DataFrame, cluster: str) -> DataFrame:
    """Turn name, labels, at and value into SAMPLES; what is sampled twice counts once."""
    labels = F.col("labels")
    pod = F.coalesce(labels["pod"], F.regexp_replace(labels["persistentvolumeclaim"], _CLAIM, ""))
    # What an operator labels comes first; a plain scrape has the pod's name alone.
    said = F.coalesce(labels["cluster"], labels["strimzi_io_cluster"])
    of_pod = F.when(pod.rlike(rf"^{re.escape(cluster)}-.+-\d+$"), F.lit(cluster))
    of_volume = labels["volume_id"].isNotNull()
    entries = F.array_sort(F.map_entries(F.map_filter(labels, _tells_apart)))
    keyed = raw.withColumns(
        {
            "_pod": pod,
            "cluster": F.coalesce(said, of_pod),
            "series": F.to_json(F.map_from_entries(entries)),
        }
    ).where((F.col("cluster") == cluster) | (F.col("cluster").isNull() & of_volume))
    found = keyed.select(
        F.regexp_replace("name", "_total$", "").alias("name"),
        "series",
        F.when(of_volume, F.lit(None)).otherwise(F.col("cluster")).cast("string").alias("cluster"),
        F.coalesce(labels["pool_name"], _node_pool(cluster)).alias("pool"),
        F.regexp_extract("_pod", r"-(\d+)$", 1).try_cast("int").alias("node_id"),
        labels["persistentvolumeclaim"].alias("claim"),
        labels["volume_id"].alias("volume_id"),
        labels["topic"].alias("topic"),
        "at",
        "value",
    )
    known = F.col("value").isNotNull() & ~F.isnan("value") & F.col("at").isNotNull()
    once = found.where(known & F.col("name").isNotNull()).dropDuplicates(["name", "series", "at"])
    return require_schema(once, SAMPLES, "The metrics reader's output")


_CLAIM = r"^data-\d+-"
# A scraper's own name for whom it asked changes with every restart and replica of Prometheus.
_SCRAPERS = ("__name__", "prometheus", "prometheus_replica", "instance", "node", "uid")


def _tells_apart(key: Column, _: Column) -> Column:
    return ~key.isin(*_SCRAPERS)


def _node_pool(cluster: str) -> Column:
    own = F.regexp_extract("_pod", rf"^{re.escape(cluster)}-(.+)-\d+$", 1)
    return F.when(own != "", own)
