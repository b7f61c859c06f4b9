"""Reads volumes from EC2 and CloudWatch, and how full they are from brokers and a Prometheus.

EBS publishes rates and minutes of excess for every volume on a Nitro instance; a metric costs a
cent per thousand questions. Since KIP-827 a broker tells the size and the free room of the file
system below a log directory (DescribeLogDirs); controllers do not. A Prometheus tells an hour of
load as well. A missing series is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import boto3
from botocore.exceptions import ClientError
from kafka.errors import KafkaError

from core.availability.wholeness import KafkaRequest
from core.ground.constants import LOOKS_PER_LOAD, schedule_minutes
from core.ground.fields import take_word
from core.volumes import series
from core.volumes.series import AVAILABLE, CAPACITY, CLAIM_LABEL, VOLUME_LABEL
from core.volumes.sizing import Gp3, Performance
from core.volumes.views import Load, Modification, ModificationState
from handlers.adapters.calls import MOST_FILTERED, PATIENT_CLIENT, known_shape, portions
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_reading import (
    WireAdmin,
    brokers_there,
    log_dirs_request,
    raise_where_refused,
)
from handlers.adapters.prometheus import Prometheus

# Of volumes that were never modified EC2 says that there is no such thing.
_NEVER_MODIFIED = {"InvalidVolumeModification.NotFound", "InvalidVolume.NotFound"}


@dataclass(frozen=True, slots=True)
class EbsView:
    """A volume as EC2 has it, and where it is attached."""

    shape: Gp3
    instance_id: str | None


class Ec2Ebs:
    """EC2 through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2: Any = boto3.client("ec2", region_name=region, config=PATIENT_CLIENT)

    @known_shape("EC2")
    def volumes(self, ids: Sequence[str]) -> Mapping[str, EbsView]:
        """Return the volumes that EC2 knows; another type's than gp3 are left out."""
        found = {}
        for some in portions(ids, MOST_FILTERED):
            # A filter, since one volume that is gone would fail a call that names it.
            filters = [{"Name": "volume-id", "Values": some}]
            for item in self._ec2.describe_volumes(Filters=filters)["Volumes"]:
                if item.get("VolumeType") == "gp3":
                    attached = [a["InstanceId"] for a in item.get("Attachments", [])]
                    found[item["VolumeId"]] = EbsView(
                        Gp3(item["Size"], Performance(item["Iops"], item["Throughput"])),
                        attached[0] if attached else None,
                    )
        return found

    @known_shape("EC2")
    def modifications(self, ids: Sequence[str]) -> Mapping[str, Modification]:
        """Return the latest modification of those that have one."""
        found: dict[str, Modification] = {}
        for some in portions(ids, MOST_FILTERED):
            filters = [{"Name": "volume-id", "Values": some}]
            try:
                answer = self._ec2.describe_volumes_modifications(Filters=filters)
            except ClientError as error:
                if error.response["Error"]["Code"] in _NEVER_MODIFIED:
                    continue
                raise
            for item in answer["VolumesModifications"]:
                read = _modification(item)
                known = found.get(item["VolumeId"])
                if known is None or known.started_at < read.started_at:
                    found[item["VolumeId"]] = read
        return found

    @known_shape("EC2")
    def instance_types(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the type of every instance."""
        found = {}
        for some in portions(ids, MOST_FILTERED):
            filters = [{"Name": "instance-id", "Values": some}]
            for reservation in self._ec2.describe_instances(Filters=filters)["Reservations"]:
                for item in reservation["Instances"]:
                    found[item["InstanceId"]] = item["InstanceType"]
        return found


def _modification(item: Mapping[str, Any]) -> Modification:
    ended = item.get("EndTime")
    found = {
        "started_at": item["StartTime"].timestamp(),
        "ended_at": ended.timestamp() if ended else None,
        "state": item.get("ModificationState"),
        "target": _shape(item, "Target"),
        "original": _shape(item, "Original"),
    }
    take_word(found, "state", ModificationState, ModificationState.UNKNOWN)
    return Modification(**found)


def _shape(item: Mapping[str, Any], side: str) -> Gp3:
    # A volume that was, or becomes, of another type has no throughput there, or no IOPS.
    rates = (item.get(f"{side}{rate}", 0) for rate in ("Iops", "Throughput"))
    return Gp3(item[f"{side}Size"], Performance(*rates))


PERIOD_SECONDS = 60
LOOK_BACK_SECONDS = 3600
# Until half a look before the one that asks again: looks are not on the second.
LOAD_KEPT_SECONDS = (LOOKS_PER_LOAD - 0.5) * 60 * schedule_minutes("volumes")
MOST_QUERIES_PER_CALL = 500
# Data points of one answer: AWS's limit is above what 500 metrics have in an hour of minutes.
MOST_POINTS = 100_800
VOLUME_METRICS = {
    "read_ops": ("VolumeReadOps", "Sum"),
    "write_ops": ("VolumeWriteOps", "Sum"),
    "read_bytes": ("VolumeReadBytes", "Sum"),
    "write_bytes": ("VolumeWriteBytes", "Sum"),
    "iops_exceeded": ("VolumeIOPSExceededCheck", "Maximum"),
    "rate_exceeded": ("VolumeThroughputExceededCheck", "Maximum"),
}
INSTANCE_METRICS = {
    "iops_exceeded": ("InstanceEBSIOPSExceededCheck", "Maximum"),
    "rate_exceeded": ("InstanceEBSThroughputExceededCheck", "Maximum"),
}
Series = Mapping[str, Mapping[float, float]]


class CloudWatchLoads:
    """CloudWatch through boto3; an answer without gaps is kept for the next looks."""

    def __init__(
        self, region: str, *, client: Any = None, kept_seconds: float = LOAD_KEPT_SECONDS
    ) -> None:
        self._client: Any = client or boto3.client(
            "cloudwatch", region_name=region, config=PATIENT_CLIENT
        )
        self._kept_seconds = kept_seconds
        self._kept: tuple[float, Mapping[str, str | None], Mapping[str, Load]] | None = None

    @known_shape("CloudWatch")
    def loads(self, volumes: Mapping[str, str | None], now: float) -> Mapping[str, Load]:
        """Return the load of volumes, given with the instances they are on."""
        if self._kept is not None:
            asked_at, asked_of, answer = self._kept
            if asked_of == volumes and 0 <= now - asked_at < self._kept_seconds:
                return answer
        instances = {instance for instance in volumes.values() if instance}
        asked = [
            *_queries("AWS/EBS", "VolumeId", sorted(volumes), VOLUME_METRICS),
            *_queries("AWS/EC2", "InstanceId", sorted(instances), INSTANCE_METRICS),
        ]
        values: dict[str, dict[str, dict[float, float]]] = {}
        for (of, name), points in self._ask(asked, now).items():
            values.setdefault(of, {})[name] = points
        found = {
            volume: load(values.get(volume, {}), values.get(instance or "", {}))
            for volume, instance in volumes.items()
        }
        whole = all(map(series.is_whole, found.values()))
        self._kept = (now, dict(volumes), found) if whole else None
        return found

    def _ask(
        self, asked: list[tuple[tuple[str, str], dict[str, Any]]], now: float
    ) -> dict[tuple[str, str], dict[float, float]]:
        found: dict[tuple[str, str], dict[float, float]] = {}
        end = datetime.fromtimestamp(now - now % PERIOD_SECONDS, UTC)
        begin = datetime.fromtimestamp(end.timestamp() - LOOK_BACK_SECONDS, UTC)
        for first in range(0, len(asked), MOST_QUERIES_PER_CALL):
            some = asked[first : first + MOST_QUERIES_PER_CALL]
            keys = {f"m{number}": key for number, (key, _) in enumerate(some)}
            query = {
                "MetricDataQueries": [
                    {"Id": f"m{number}", "MetricStat": stat, "ReturnData": True}
                    for number, (_, stat) in enumerate(some)
                ],
                "StartTime": begin,
                "EndTime": end,
                "MaxDatapoints": MOST_POINTS,
            }
            for result in self._pages(query):
                points = found.setdefault(keys[result["Id"]], {})
                for at, value in zip(result["Timestamps"], result["Values"], strict=True):
                    points[at.timestamp()] = value
        return found

    def _pages(self, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            more = {"NextToken": token} if token else {}
            answer = self._client.get_metric_data(**query, **more)
            yield from answer["MetricDataResults"]
            token = answer.get("NextToken")
            if not token:
                return


def load(of_volume: Series, of_instance: Series) -> Load:
    """Return a load from an hour of minutes; what has no data is None."""
    return Load(
        volume_exceeded_share=_share(of_volume),
        instance_exceeded_share=_share(of_instance),
        iops_p999=_highest(of_volume, "read_ops", "write_ops"),
        bytes_per_s_p999=_highest(of_volume, "read_bytes", "write_bytes"),
    )


def _share(series: Series) -> float | None:
    """Return the share of minutes in which either limit was exceeded."""
    minutes: dict[float, float] = {}
    for name in ("iops_exceeded", "rate_exceeded"):
        for at, value in series.get(name, {}).items():
            minutes[at] = max(value, minutes.get(at, 0.0))
    if not minutes:
        return None
    # A minute of trouble in ten minutes of data is no tenth of an hour yet.
    whole = max(len(minutes), 15)
    return sum(1 for value in minutes.values() if value > 0) / whole


def _highest(series: Series, *names: str) -> float | None:
    """Return the highest minute's rate a second: the 99.9th percentile of an hour."""
    minutes: dict[float, float] = {}
    for name in names:
        for at, value in series.get(name, {}).items():
            minutes[at] = minutes.get(at, 0.0) + value
    return max(minutes.values()) / PERIOD_SECONDS if minutes else None


def _queries(
    namespace: str, dimension: str, names: Iterable[str], metrics: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for each in names:
        for name, (metric, statistic) in metrics.items():
            yield (
                (each, name),
                {
                    "Metric": {
                        "Namespace": namespace,
                        "MetricName": metric,
                        "Dimensions": [{"Name": dimension, "Value": each}],
                    },
                    "Period": PERIOD_SECONDS,
                    "Stat": statistic,
                },
            )


# Strimzi mounts volume n of every node there.
LOG_DIRECTORY = re.compile(r"/var/lib/kafka/data-(?P<number>\d+)/")


@dataclass(frozen=True, slots=True)
class FillView:
    """What one log directory holds; the file system's figures where the broker tells them."""

    logs_bytes: int
    total_bytes: int | None = None
    usable_bytes: int | None = None

    def used_bytes(self, volume_bytes: int) -> int:
        """Return what is used of a volume.

        The file system's word, where it is the volume's own: one of another size is not, as for
        logs in a directory beside other things; then the logs alone count.
        """
        if self.total_bytes is None or self.usable_bytes is None:
            return self.logs_bytes
        if not 0.8 * volume_bytes <= self.total_bytes <= 1.05 * volume_bytes:
            return self.logs_bytes
        # What a file system keeps for itself is gone as well: it is missing from the total.
        return volume_bytes - self.usable_bytes


class KafkaFills(KafkaAdmin):
    """Asks every broker that is there."""

    @known_shape("Kafka")
    def fills(self) -> Mapping[tuple[int, int], FillView]:
        """Return what every broker's volumes hold, by node id and volume number."""
        return self._ask(_fills)


def _fills(wire: WireAdmin) -> Mapping[tuple[int, int], FillView]:
    found = {}
    ids = brokers_there(wire)
    answers = wire.ask_each([(broker_id, log_dirs_request()) for broker_id in ids])
    for broker_id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, KafkaError):
            continue  # one that is frozen says nothing of its fill, and is another alert's
        raise_where_refused(answer.error_code, KafkaRequest.DESCRIBE_LOG_DIRS)
        # A directory that failed says nothing of its fill either.
        for each in (d for d in answer.results if not d.error_code):
            named = LOG_DIRECTORY.search(f"{each.log_dir}/")
            if named is not None:
                found[broker_id, int(named["number"])] = _fill(each)
            elif len(answer.results) == 1:
                # Mounted elsewhere, as on the twin: one directory is the one volume.
                found[broker_id, 0] = _fill(each)
    return found


def _fill(directory: Any) -> FillView:
    logs = sum(
        partition.partition_size for topic in directory.topics for partition in topic.partitions
    )
    total, usable = directory.total_bytes, directory.usable_bytes
    if total is None or usable is None or total < 0 or usable < 0:
        return FillView(logs)
    return FillView(logs, total, usable)


# A query names its volumes, and a URL has an end.
VOLUMES_A_QUERY = 100
PAST_SECONDS = 14 * 24 * 3600.0
PAST_STEP_SECONDS = 3600.0
SCRAPE_KUBELETS = "let it scrape the kubelets, whose own endpoint tells of claims"
SCRAPE_DRIVER = "let it scrape the EBS driver's nodes (node.enableMetrics) at least once a minute"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeriesResult(Generic[T]):
    """What was found, and what was not, as sentences."""

    found: Mapping[str, T] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


class PrometheusVolumes:
    """One cluster's volumes in a Prometheus; `labels` tell it from others that are there."""

    def __init__(
        self,
        prometheus: Prometheus,
        namespace: str,
        kafka_cluster: str,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._prometheus, self._labels = prometheus, dict(labels or {})
        self._namespace, self._cluster = namespace, kafka_cluster

    def fills(self, claims: Sequence[str], now: float) -> SeriesResult[FillView]:
        """Return how full claims are, by their names."""
        said = {
            metric: {
                each.labels.get(CLAIM_LABEL, ""): each.points
                for each in self._prometheus.instant(self._room(metric), now)
            }
            for metric in series.ROOM_METRICS
        }
        found = {}
        for claim in claims:
            capacity = next(iter(said[CAPACITY].get(claim, {}).values()), None)
            available = next(iter(said[AVAILABLE].get(claim, {}).values()), None)
            if capacity is not None and available is not None:
                used = max(0, int(capacity - available))
                found[claim] = FillView(used, int(capacity), int(available))
        return SeriesResult(
            found, tuple(series.gaps(said, claims, series.ROOM_METRICS, SCRAPE_KUBELETS))
        )

    def past(self, claims: Sequence[str], now: float) -> Mapping[str, Mapping[float, float]]:
        """Return what was used of claims' file systems before, by the hour."""
        begin = now - PAST_SECONDS
        said = {
            metric: {
                each.labels.get(CLAIM_LABEL, ""): each.points
                for each in self._prometheus.query_range(
                    self._room(metric), begin, now - PAST_STEP_SECONDS, PAST_STEP_SECONDS
                )
            }
            for metric in series.ROOM_METRICS
        }
        return {
            claim: {
                at: capacity - said[AVAILABLE][claim][at]
                for at, capacity in points.items()
                if at in said[AVAILABLE].get(claim, {})
            }
            for claim, points in said[CAPACITY].items()
            if claim in claims
        }

    def loads(self, volumes: Sequence[str], now: float) -> SeriesResult[Load]:
        """Return the load of volumes, by their ids; a figure nobody has is None."""
        found = {metric: dict(self._rates(metric, volumes, now)) for metric in series.LOAD_METRICS}
        return SeriesResult(
            {volume: series.load(volume, found) for volume in volumes},
            tuple(series.gaps(found, volumes, series.LOAD_METRICS, SCRAPE_DRIVER)),
        )

    def _room(self, metric: str) -> str:
        return series.room(metric, self._namespace, self._cluster, self._labels)

    def _rates(
        self, metric: str, volumes: Sequence[str], now: float
    ) -> Iterator[tuple[str, Mapping[float, float]]]:
        begin = now - series.LOOK_BACK_SECONDS
        for first in range(0, len(volumes), VOLUMES_A_QUERY):
            some = volumes[first : first + VOLUMES_A_QUERY]
            query = series.rate(metric, some, self._labels)
            for each in self._prometheus.query_range(query, begin, now, series.STEP_SECONDS):
                yield each.labels.get(VOLUME_LABEL, ""), each.points
