"""Asks Prometheus about volumes, and names what its answers leave unknown.

Room is the kubelet's word, by claim; load and what was asked beyond a limit are the EBS driver's,
by volume. A series that is not there is named and stays unknown: a 0 in its place would be a volume
that is empty, idle and never throttled. Whom that calls depends: a cluster that is being made has
no metrics yet. For reports, an hour of samples is filed once it is whole, under a name that says
which, in questions of no more samples than a function has memory for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from core.ground.words import listing
from core.volumes.views import Load, ModificationState, VolumeSet, VolumeView

CLAIM_LABEL, VOLUME_LABEL = "persistentvolumeclaim", "volume_id"
CAPACITY, AVAILABLE = "kubelet_volume_stats_capacity_bytes", "kubelet_volume_stats_available_bytes"
ROOM_METRICS = (CAPACITY, AVAILABLE)
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
LOAD_METRICS = (*VOLUME_EXCEEDED, *INSTANCE_EXCEEDED, *OPERATIONS, *BYTES)
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
    missing = [each.name for each in fields(Load) if getattr(first, each.name) in (None, ())]
    return replace(first, **{name: getattr(then, name) for name in missing})


def is_whole(found: Load) -> bool:
    """Say whether nothing of a load is unknown."""
    figures = (found.volume_exceeded_share, found.instance_exceeded_share)
    return None not in (*figures, found.iops_p999, found.bytes_per_s_p999)


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


HOUR_SECONDS = 3600.0
# Samples arrive late: a scrape, a remote write and its retries.
SETTLED_SECONDS = 600.0
# What was not filed in a day is not asked for again: most keep a day, and nobody waits for it.
CATCH_UP_HOURS = 24
# One answer: some 10 MB of text, and 30 MB once it is read.
MOST_SAMPLES = 200_000
# In the folder that the job reads; what somebody else put there has another name.
KEY_PREFIX = "hour-"
_KAFKA = "kafka_server_"


@dataclass(frozen=True, slots=True)
class WantedMetric:
    """One metric: how finely, of whom, and whether a broker's many series are summed to one."""

    metric: str
    step_seconds: float
    subject: str  # broker, claim or volume
    summed: bool = False


def _wanted_series() -> Iterator[WantedMetric]:
    # A catch-up is told to a step, so what a restart is seen by comes finely.
    for name in ("bytesin", "bytesout", "replicationbytesin"):
        yield WantedMetric(f"{_KAFKA}brokertopicmetrics_{name}persec_total", 15.0, "broker")
    for name in ("underreplicatedpartitions", "partitioncount"):
        yield WantedMetric(f"{_KAFKA}replicamanager_{name}", 15.0, "broker")
    # A series for every partition, of which reports need the sum.
    yield WantedMetric("kafka_log_log_size", 60.0, "broker", summed=True)
    yield WantedMetric("kubelet_volume_stats_used_bytes", 300.0, "claim")
    for name in LOAD_METRICS:
        yield WantedMetric(name, STEP_SECONDS, "volume")


WANTED = tuple(_wanted_series())


@dataclass(frozen=True, slots=True)
class Whose:
    """The cluster whose samples are filed; `labels` tell it from others in one Prometheus."""

    cluster: str
    namespace: str
    labels: Mapping[str, str]


def sample_key(begin: float) -> str:
    """Return the name under which the hour that begins then is filed."""
    return f"{KEY_PREFIX}{datetime.fromtimestamp(begin, UTC).strftime('%Y-%m-%dT%H')}.json.gz"


def hours_due(now: float, filed: Collection[str]) -> Iterator[float]:
    """Yield the begins of hours that are whole and not filed, the oldest first: it is forgotten."""
    last = math.floor((now - SETTLED_SECONDS) / HOUR_SECONDS) * HOUR_SECONDS - HOUR_SECONDS
    for hours_ago in reversed(range(CATCH_UP_HOURS)):
        begin = last - hours_ago * HOUR_SECONDS
        if sample_key(begin) not in filed:
            yield begin


def name_before_due(now: float) -> str:
    """Return a name that stands before those of all hours that may still be due."""
    return sample_key(now - (CATCH_UP_HOURS + 2) * HOUR_SECONDS)


def expression(wanted: WantedMetric, whose: Whose) -> str:
    """Return what is asked: the series as they are, counters with their resets."""
    if wanted.subject == "claim":
        like = {CLAIM_LABEL: f"data-[0-9]+-{whose.cluster}-.+"}
        return wanted.metric + matching({"namespace": whose.namespace, **whose.labels}, like)
    if wanted.subject == "volume":
        return wanted.metric + matching(whose.labels, {VOLUME_LABEL: ".+"})
    own = {} if wanted.summed else {"topic": ""}
    like = {"pod": f"{whose.cluster}-.+-[0-9]+"}
    selected = wanted.metric + matching({**own, **whose.labels}, like)
    return f"sum without (topic, partition) ({selected})" if wanted.summed else selected


def count_expression(asked: str) -> str:
    """Return what says how many series an hour has, those that ended in it too."""
    return f"count(count_over_time(({asked})[1h:5m]))"


def slices(wanted: WantedMetric, begin: float, series_count: int) -> Iterator[tuple[float, float]]:
    """Yield the begins and ends of the questions for an hour, each of MOST_SAMPLES at most.

    Nothing is asked where there is no series, and the next hour's first moment is the next file's.
    """
    if not series_count:
        return
    moments = max(1, MOST_SAMPLES // series_count)
    last = begin + HOUR_SECONDS - wanted.step_seconds
    while begin <= last:
        end = min(begin + (moments - 1) * wanted.step_seconds, last)
        yield begin, end
        begin = end + wanted.step_seconds


UNKNOWN = "unknown"
# Since a volume was first looked at: machines, volumes, brokers and their first hour of metrics.
MAKING_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A figure nobody has, as a sentence, and whether somebody should be called for it."""

    sentence: str
    alarming: bool


def unknowns(set_: VolumeSet, now: float) -> tuple[Unmeasured, ...]:
    """Return what is not known of a set: how full its volumes are, what is asked of them."""
    return (*_fill(set_, now), *_load(set_, now), *_modifications(set_))


def _modifications(set_: VolumeSet) -> Iterator[Unmeasured]:
    for volume in set_.volumes:
        running = volume.history.under_way
        if running is not None and running.state is ModificationState.UNKNOWN:
            why = "AWS has a word for it that this release does not know"
            what = f"how far the modification of {volume.claim} is ({running.word})"
            yield Unmeasured(_unknown_sentence(what, "changed", why), alarming=True)


def _fill(set_: VolumeSet, now: float) -> Iterator[Unmeasured]:
    missing = [volume for volume in set_.volumes if volume.forecast is None]
    if not missing:
        return
    names = listing([volume.claim for volume in missing], NAMED)
    if set_.policy.grow_only and not set_.prometheus:
        why = (
            "only a kubelet knows it of a controller's; set metrics.prometheus in the ClusterSpec "
            "to a Prometheus that scrapes the kubelets"
        )
        yield Unmeasured(_unknown_sentence(f"the fill of {names}", "grown", why), alarming=False)
        return
    sources = [] if set_.policy.grow_only else ["no broker told (DescribeLogDirs)"]
    if set_.prometheus:
        sources.append("Prometheus has no kubelet_volume_stats of it")
    yield Unmeasured(
        _unknown_sentence(f"the fill of {names}", "grown", " and ".join(sources)),
        alarming=_has_settled(missing, now),
    )


def _load(set_: VolumeSet, now: float) -> Iterator[Unmeasured]:
    # A metadata log keeps no volume busy, and nothing is asked of one that is attached nowhere.
    missing = [
        volume
        for volume in set_.volumes
        if not set_.policy.grow_only and volume.instance_type and not is_whole(volume.load)
    ]
    if not missing:
        return
    sources = ["CloudWatch has not all of its AWS/EBS and its instance's AWS/EC2 metrics"]
    if set_.prometheus:
        sources.append("Prometheus has not all of its aws_ebs_csi metrics")
    names = listing([volume.claim for volume in missing], NAMED)
    yield Unmeasured(
        _unknown_sentence(f"the load of {names}", "raised or lowered by it", " and ".join(sources)),
        alarming=_has_settled(missing, now),
    )


def _unknown_sentence(what: str, undone: str, why: str) -> str:
    return f"{what} is not known, so nothing is {undone}: {why}"


def _has_settled(missing: Sequence[VolumeView], now: float) -> bool:
    """Say whether one of these has been there for longer than it takes to make a cluster."""
    since = [volume.history.known_since for volume in missing]
    return any(at is not None and at <= now - MAKING_SECONDS for at in since)
