"""Holds what is known of one Kafka node, whoever told it: metrics, limits, observation.

The node's own process, ports and exporter say one part; the quorum, the active controller and the
leaders of its partitions the other. The two contradict each other often enough that neither is
believed alone: a broker that is fenced again still says RUNNING of itself. Strimzi's metrics
reporter and the JMX exporter spell the same bean differently, the latter twice: by Strimzi's
example rules and by its own default. `parse` turns any of them into `Metric`s; where a decision
asks for a metric that is not there, it gets None, never a zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Kafka's own defaults where Kafka has one; all in seconds."""

    # broker.session.timeout.ms: a broker not heard of for so long is fenced.
    session_seconds: float = 9.0
    # Process start, election, the replay of the metadata log. A node this young is starting; an
    # older one in the same state is stuck.
    start_seconds: float = 120.0
    # The active controller writes a no-op every 500 ms (metadata.max.idle.interval.ms), so an
    # applier this far behind stands still.
    apply_lag_seconds: float = 10.0
    # A voter's fetch is due every 2 s (controller.quorum.fetch.timeout.ms); a rotation asks for
    # that, a probe is more patient.
    voter_lag_seconds: float = 10.0
    # A recovery in which nothing becomes less: a segment of 1 GiB takes seconds on gp3's slowest.
    recovery_stall_seconds: float = 1800.0


# Strimzi's, whichever exporter is behind it.
PORT = 9404


class Metric(StrEnum):
    """What is read of a node; the value is the name of Strimzi's metrics reporter, without kafka_.

    A counter stands without its endings (`persec`, `_total`), a text without `_info`.
    """

    BROKER_STATE = "server_kafkaserver_brokerstate"
    LOGS_TO_RECOVER = "log_logmanager_remaininglogstorecover"  # per dir; gone once done
    SEGMENTS_TO_RECOVER = "log_logmanager_remainingsegmentstorecover"  # per dir and thread
    OFFLINE_LOG_DIRECTORIES = "log_logmanager_offlinelogdirectorycount"
    # The quorum, as the node sees it.
    RAFT_STATE = "server_raft_metrics_current_state"
    RAFT_LEADER = "server_raft_metrics_current_leader"
    # How far a node is with applying the metadata log.
    BROKER_APPLY_LAG_MS = "server_broker_metadata_metrics_last_applied_record_lag_ms"
    CONTROLLER_APPLIED_OFFSET = "controller_kafkacontroller_lastappliedrecordoffset"
    CONTROLLER_APPLY_LAG_MS = "controller_kafkacontroller_lastappliedrecordlagms"
    # KIP-859 as shipped in 3.3.
    METADATA_LOAD_ERRORS = "server_broker_metadata_metrics_metadata_load_error_count"
    METADATA_APPLY_ERRORS = "server_broker_metadata_metrics_metadata_apply_error_count"
    METADATA_ERRORS = "controller_kafkacontroller_metadataerrorcount"
    # What controllers know of brokers (KIP-1131); the active one alone means it.
    ACTIVE_CONTROLLERS = "controller_kafkacontroller_activecontrollercount"
    FENCED_BROKERS = "controller_kafkacontroller_fencedbrokercount"
    REGISTRATION_STATE = "controller_kafkacontroller_brokerregistrationstate"  # per broker
    SINCE_HEARTBEAT_MS = "controller_kafkacontroller_timesincelastheartbeatreceivedms"  # per broker
    # Replicas, as the leaders on this node see them.
    LEADERS = "server_replicamanager_leadercount"
    REPLICATION_BYTES_IN = "server_brokertopicmetrics_replicationbytesin"


# Names under which KIP-859's draft, never shipped so, would have been found. What it would have
# counted as a forced renouncement is one of the faults that the shipped counter holds.
DRAFT = {
    "server_broker_metadata_metrics_publisher_error_count": Metric.METADATA_APPLY_ERRORS,
    "server_broker_metadata_metrics_listener_batch_load_error_count": Metric.METADATA_LOAD_ERRORS,
    "controller_kafkacontroller_forcerenouncecount": Metric.METADATA_ERRORS,
}
_KNOWN = {metric.value: metric for metric in Metric} | DRAFT | {"raft_state": Metric.RAFT_STATE}
# The JMX exporter with Strimzi's example rules leaves out what stands between the words.
_SPELLINGS = {"raftmetrics": "raft_metrics", "brokermetadatametrics": "broker_metadata_metrics"}
# The JMX exporter without rules names the attribute, and the bean in a label.
_ATTRIBUTES = ("_value", "_count")
_ENDINGS = ("_total", "_info", "persec")
_STATE_LABELS = ("current_state", "state")
_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One value; the names of labels are in lower case."""

    metric: Metric
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """One scrape of one node; what it did not have is None."""

    samples: tuple[MetricSample, ...] = ()

    def value(self, metric: Metric) -> float | None:
        """Return the greatest value of a metric, over whatever labels it carries."""
        return max((s.value for s in self.samples if s.metric is metric), default=None)

    def count(self, metric: Metric) -> int | None:
        """Return a metric that counts, as a whole number."""
        value = self.value(metric)
        return None if value is None else int(value)

    def sums_by_label(self, metric: Metric, label: str) -> dict[str, float]:
        """Return a metric's values by one of its labels, summed over the others."""
        found: dict[str, float] = {}
        for sample in self.samples:
            if sample.metric is metric and label in sample.labels:
                key = sample.labels[label]
                found[key] = found.get(key, 0.0) + sample.value
        return found

    @property
    def raft_state(self) -> str | None:
        """Return what the node is in the quorum: leader, follower, observer, candidate, ..."""
        for sample in self.samples:
            if sample.metric is Metric.RAFT_STATE and sample.value == 1:
                return next((sample.labels[k] for k in _STATE_LABELS if k in sample.labels), None)
        return None


def parse(text: str) -> NodeMetrics:
    """Read Prometheus's text format; lines of other metrics, and values that are none, go."""
    return NodeMetrics(tuple(_samples(text)))


def _samples(text: str) -> Iterator[MetricSample]:
    for line in text.splitlines():
        found = None if line.startswith("#") else _LINE.fullmatch(line.strip())
        if found is None:
            continue
        name, labelled, written = found.groups()
        labels = _labels(labelled or "")
        metric = metric_of(name, labels)
        value = _number(written)
        if metric is not None and value is not None:
            yield MetricSample(metric, value, labels)


def metric_of(name: str, labels: Mapping[str, str] | None = None) -> Metric | None:
    """Return what an exporter's name stands for, None for what nobody here asks about.

    >>> metric_of("kafka_server_raftmetrics_current_leader")
    <Metric.RAFT_LEADER: 'server_raft_metrics_current_leader'>
    >>> metric_of("kafka_server_KafkaServer_Value", {"name": "BrokerState"}).name
    'BROKER_STATE'
    """
    plain = name.lower().removeprefix("kafka_")
    bean = (labels or {}).get("name")
    attribute = next((a for a in _ATTRIBUTES if plain.endswith(a)), None)
    if bean and attribute:
        plain = f"{plain.removesuffix(attribute)}_{bean.lower()}"
    plain = plain.replace("-", "_")
    for spelled, written in _SPELLINGS.items():
        plain = plain.replace(spelled, written)
    for ending in _ENDINGS:
        plain = plain.removesuffix(ending)
    return _KNOWN.get(plain)


def _labels(written: str) -> dict[str, str]:
    # The JMX exporter keeps the quotes that an ObjectName puts around a path.
    return {
        key.lower(): _ESCAPED.sub(_plain_character, value).strip('"')
        for key, value in _LABEL.findall(written)
    }


def _plain_character(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _number(written: str) -> float | None:
    try:
        value = float(written)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def wanted_names() -> tuple[str, ...]:
    """Return the names to ask an exporter for, so that it need not tell everything it has.

    Partition by partition a node tells megabytes. Both spellings that say `kafka_` are named; an
    exporter that uses neither answers with nothing, and is asked for everything.
    """
    reporter = [f"kafka_{metric.value}" for metric in Metric]
    counters = [f"{name}persec_total" for name in reporter if "_brokertopicmetrics_" in name]
    others = [
        name.replace(written, spelled)
        for spelled, written in _SPELLINGS.items()
        for name in reporter
        if written in name
    ]
    return (*reporter, *counters, f"kafka_{Metric.RAFT_STATE.value}_info", *others)


CONTROL_PLANE_PORT, REPLICATION_PORT = 9090, 9091


class Role(StrEnum):
    """What a Kafka node does; `combined` nodes are both."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"

    @property
    def is_broker(self) -> bool:
        return self is not Role.CONTROLLER

    @property
    def is_controller(self) -> bool:
        return self is not Role.BROKER


# BrokerState of a broker's own process, by Kafka's numbers.
STATES = {
    0: "not running",
    1: "starting",
    2: "in recovery",
    3: "running",
    6: "pending controlled shutdown",
    7: "shutting down",
    127: "unknown",
}
STARTING, RECOVERING, RUNNING, UNKNOWN_STATE = (0, 1), 2, 3, 127
STOPPING = (6, 7)
# BrokerRegistrationState on a controller (KIP-1131).
UNREGISTERED, FENCED, CONTROLLED_SHUTDOWN, ACTIVE = -1, 10, 20, 30
# A voter that the leader has never seen fetching.
NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is left of the recovery of one log directory; None: Kafka keeps no such gauge now."""

    logs: int | None = None
    segments: int | None = None

    @property
    def left(self) -> int:
        return (self.logs or 0) + (self.segments or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
    """What is known of one Kafka node at `now`; None is what no source told."""

    node_id: int
    role: Role
    now: float  # seconds, of any clock that only goes forward
    process: bool | None = None  # a Java process runs in the container
    started_at: float | None = None
    listening: Mapping[int, bool] = field(default_factory=dict)  # port -> somebody listens
    # From the node's own exporter.
    scraped: bool = False
    broker_state: int | None = None
    recovery: Mapping[str, Recovery] = field(default_factory=dict)  # by log directory
    recovery_moved_at: float | None = None  # when what is left last became less
    raft_state: str | None = None
    raft_leader: int | None = None
    apply_lag_seconds: float | None = None
    offline_log_directories: int | None = None
    # From others: the quorum, the active controller, the leaders.
    quorum_answers: bool | None = None  # DescribeQuorum came back with a leader
    fenced: bool | None = None  # DescribeCluster with fenced brokers, or the active controller
    registration: int | None = None  # BrokerRegistrationState on the active controller
    since_heartbeat_seconds: float | None = None  # TimeSinceLastHeartbeatReceivedMs there
    voter_lag_seconds: float | None = None  # how long the leader has seen it behind; or NEVER
    not_in_sync: int | None = None  # of its replicas, how many the leaders miss from their ISR
    was_in_sync: bool = False  # has been in all of them at once since its process started

    @property
    def recovering(self) -> bool:
        return self.broker_state == RECOVERING or any(r.left for r in self.recovery.values())

    @property
    def is_fenced(self) -> bool | None:
        """Return what the quorum says, from whichever source; None where none told."""
        if self.fenced is not None:
            return self.fenced
        return None if self.registration is None else self.registration in {UNREGISTERED, FENCED}


def add_metrics(observed: NodeObservation, metrics: NodeMetrics | None) -> NodeObservation:
    """Add what the node's own exporter told; None is an exporter that did not answer."""
    if metrics is None:
        return replace(observed, scraped=False)
    lag = metrics.value(
        Metric.BROKER_APPLY_LAG_MS if observed.role.is_broker else Metric.CONTROLLER_APPLY_LAG_MS
    )
    return replace(
        observed,
        scraped=True,
        broker_state=metrics.count(Metric.BROKER_STATE),
        recovery=recovery_of(metrics),
        raft_state=metrics.raft_state,
        raft_leader=metrics.count(Metric.RAFT_LEADER),
        apply_lag_seconds=None if lag is None else lag / 1000,
        offline_log_directories=metrics.count(Metric.OFFLINE_LOG_DIRECTORIES),
    )


def recovery_of(metrics: NodeMetrics) -> dict[str, Recovery]:
    """Return what each log directory still recovers: all of them, not the one seen last."""
    logs = metrics.sums_by_label(Metric.LOGS_TO_RECOVER, "dir")
    segments = metrics.sums_by_label(Metric.SEGMENTS_TO_RECOVER, "dir")
    return {
        directory: Recovery(
            logs=None if (left := logs.get(directory)) is None else int(left),
            segments=None if (part := segments.get(directory)) is None else int(part),
        )
        for directory in sorted({*logs, *segments})
    }
