"""Volumes as EC2 and CloudWatch have them: shape, latest modification, instances, and load.

EBS publishes rates, and minutes in which too much was asked, for every volume on a Nitro instance,
and EC2 the same of the instance's own limit; nothing has to be installed. A metric costs a cent per
thousand questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.exceptions import ClientError

from core.ground.stored import take_word
from core.volumes.sizing import Gp3, Performance
from core.volumes.views import Load, Modification, ModificationState
from handlers.adapters.calls import PATIENT_CLIENT, known_shape, portions

MOST_PER_CALL = 200
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
        for some in portions(ids, MOST_PER_CALL):
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
        for some in portions(ids, MOST_PER_CALL):
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
        for some in portions(ids, MOST_PER_CALL):
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
    return Gp3(item[f"{side}Size"], Performance(item[f"{side}Iops"], item[f"{side}Throughput"]))


PERIOD_SECONDS = 60
LOOK_BACK_SECONDS = 3600
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
    """CloudWatch through boto3."""

    def __init__(self, region: str, *, client: Any = None) -> None:
        self._client: Any = client or boto3.client(
            "cloudwatch", region_name=region, config=PATIENT_CLIENT
        )

    @known_shape("CloudWatch")
    def loads(self, volumes: Mapping[str, str | None], now: float) -> Mapping[str, Load]:
        """Return the load of volumes, given with the instances they are on."""
        instances = {instance for instance in volumes.values() if instance}
        asked = [
            *_queries("AWS/EBS", "VolumeId", sorted(volumes), VOLUME_METRICS),
            *_queries("AWS/EC2", "InstanceId", sorted(instances), INSTANCE_METRICS),
        ]
        series: dict[str, dict[str, dict[float, float]]] = {}
        for (of, name), values in self._ask(asked, now).items():
            series.setdefault(of, {})[name] = values
        return {
            volume: load(series.get(volume, {}), series.get(instance or "", {}))
            for volume, instance in volumes.items()
        }

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
    namespace: str, dimension: str, of: Iterable[str], metrics: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for each in of:
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
