"""Asks Prometheus about volumes, and reads its answers.

Room is the kubelet's word, by claim; load and what was asked beyond a limit are the EBS driver's,
by volume. A series that is not there is named and stays unknown: a 0 in its place would be a volume
that is empty, idle and never throttled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from core.volumes.views import Load
from core.words import listing

CLAIM_LABEL, VOLUME_LABEL = "persistentvolumeclaim", "volume_id"
CAPACITY, AVAILABLE = "kubelet_volume_stats_capacity_bytes", "kubelet_volume_stats_available_bytes"
OF_ROOM = (CAPACITY, AVAILABLE)
# Seconds in which more was asked than the volume's IOPS or throughput, and than its instance's.
VOLUME_EXCEEDED = (
    "aws_ebs_csi_exceeded_iops_seconds_total",
    "aws_ebs_csi_exceeded_tp_seconds_total",
)
INSTANCE_EXCEEDED = (
    "aws_ebs_csi_ec2_exceeded_iops_seconds_total",
    "aws_ebs_csi_ec2_exceeded_tp_seconds_total",
)
OPERATIONS = ("aws_ebs_csi_read_ops_total", "aws_ebs_csi_write_ops_total")
BYTES = ("aws_ebs_csi_read_bytes_total", "aws_ebs_csi_write_bytes_total")
OF_LOAD = (*VOLUME_EXCEEDED, *INSTANCE_EXCEEDED, *OPERATIONS, *BYTES)
# Two samples of a minute apart are in every two minutes; scraped less often, there is no rate.
RATE_WINDOW = "2m"
STEP_SECONDS = 60.0
LOOK_BACK_SECONDS = 3600.0
# Fewer minutes than these are no hour, so what was exceeded in them is not its whole share.
LEAST_MINUTES = 15
NAMED = 3

Points = Mapping[float, float]
# By metric, then by what its label names.
Found = Mapping[str, Mapping[str, Points]]


def room(metric: str, namespace: str, kafka_cluster: str, labels: Mapping[str, str]) -> str:
    """Return the query for what the kubelet says of the claims of a cluster's Kafka nodes."""
    claims = f"data-[0-9]+-{kafka_cluster}-.+"
    where = matching({"namespace": namespace, **labels}, {CLAIM_LABEL: claims})
    # A pod that has moved is told of by both nodes until the older sample is stale.
    return f"max by ({CLAIM_LABEL}) ({metric}{where})"


def rate(metric: str, volumes: Iterable[str], labels: Mapping[str, str]) -> str:
    """Return the query for how fast a counter of the driver's rises, by volume."""
    where = matching(labels, {VOLUME_LABEL: "|".join(sorted(volumes))})
    return f"sum by ({VOLUME_LABEL}) (rate({metric}{where}[{RATE_WINDOW}]))"


def load(volume: str, found: Found) -> Load:
    """Return a volume's load from an hour of minutes; what has no series is None."""
    return Load(
        volume_exceeded_share=_share(volume, found, VOLUME_EXCEEDED),
        instance_exceeded_share=_share(volume, found, INSTANCE_EXCEEDED),
        iops_p999=_highest(volume, found, OPERATIONS),
        bytes_per_s_p999=_highest(volume, found, BYTES),
    )


def merged_load(first: Load, then: Load) -> Load:
    """Return a load with another's figures where it has none."""
    return Load(
        volume_exceeded_share=_either(first.volume_exceeded_share, then.volume_exceeded_share),
        instance_exceeded_share=_either(
            first.instance_exceeded_share, then.instance_exceeded_share
        ),
        iops_p999=_either(first.iops_p999, then.iops_p999),
        bytes_per_s_p999=_either(first.bytes_per_s_p999, then.bytes_per_s_p999),
        hours=first.hours or then.hours,
    )


def is_whole(of: Load) -> bool:
    """Say whether nothing of a load is unknown."""
    figures = (of.volume_exceeded_share, of.instance_exceeded_share)
    return None not in (*figures, of.iops_p999, of.bytes_per_s_p999)


def gaps(found: Found, wanted: Sequence[str], metrics: Iterable[str], remedy: str) -> Iterator[str]:
    """Name the series that are missing, a sentence per metric, with the remedy."""
    for metric in metrics:
        missing = [each for each in wanted if not found.get(metric, {}).get(each)]
        if missing:
            yield f"Prometheus has no {metric} of {listing(missing, NAMED)}; {remedy}"


def matching(equal: Mapping[str, str], like: Mapping[str, str]) -> str:
    """Return the matchers of a selector: labels that are equal, and ones like an expression."""
    matchers = [f'{name}="{_label_value(value)}"' for name, value in sorted(equal.items())]
    matchers += [f'{name}=~"{value}"' for name, value in sorted(like.items())]
    return "{" + ",".join(matchers) + "}"


def _label_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _share(volume: str, found: Found, metrics: tuple[str, str]) -> float | None:
    """Return the part of the hour in which either limit was exceeded; both must be measured."""
    by_metric = [found.get(metric, {}).get(volume) or {} for metric in metrics]
    if not all(by_metric):
        return None
    minutes = {
        at: max(points.get(at, 0.0) for points in by_metric)
        for at in set().union(*(points.keys() for points in by_metric))
    }
    return sum(min(1.0, each) for each in minutes.values()) / max(len(minutes), LEAST_MINUTES)


def _highest(volume: str, found: Found, metrics: tuple[str, str]) -> float | None:
    """Return the highest minute of reads and writes together; both must be measured then."""
    first, second = (found.get(metric, {}).get(volume) or {} for metric in metrics)
    return max((first[at] + second[at] for at in first.keys() & second.keys()), default=None)


def _either(first: float | None, then: float | None) -> float | None:
    return then if first is None else first
