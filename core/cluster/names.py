"""Decides which names a spec may not give: Strimzi, Kubernetes, AWS or this project has them.

Sources: Strimzi's KafkaCluster and ListenersUtils (names of ports and of listeners), Kafka's
LogConfig (a topic's settings), Secrets Manager's user guide (names that end like an ARN does).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator

from core import naming
from core.cluster.fields import is_loopback, named_twice
from core.cluster.spec import ClusterSpec
from core.constants import INTERNAL_LISTENER

# Ports of every Kafka pod are called tcp-<name>, and no two ports of a Service have one name.
TAKEN_PORT_NAMES = frozenset({"ctrlplane", "kafkaagent", "prometheus", "replication"})
# A listener that is called so at its port keeps names of the days before listeners had any.
OLD_LISTENERS = {("plain", 9092), ("tls", 9093)}
# What Kafka 4.x knows of a topic; it refuses everything else.
TOPIC_SETTINGS = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)
# Of the 4 KB that a function's environment has, what is left for the labels of every query.
LABELS_LIMIT = 1000
_LIKE_AN_ARN = re.compile(r".*-[A-Za-z0-9]{6}")


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each name that is somebody else's, or known to nobody."""
    yield from _listener(spec)
    yield from _namespaces(spec)
    yield from _topic_settings(spec)
    yield from _secret(spec)
    yield from _labels(spec)
    if spec.maintenance is not None:
        for day in named_twice(spec.maintenance.days):
            yield f"maintenance.days names {day} twice; name it once."


def doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for a name that works, and may be taken for another."""
    host = spec.kafka.listener.advertised_host
    if is_loopback(host) and spec.environment != naming.TWIN_ENVIRONMENT:
        yield (
            f"kafka.listener.advertised_host is {host}, an address of the client's own machine, "
            f"which is right on the twin alone; write a name of your DNS, such as "
            f"kafka.example.internal."
        )
    if spec.slack is not None and _LIKE_AN_ARN.fullmatch(spec.slack.secret_name):
        yield (
            f"slack.secret_name {spec.slack.secret_name} ends with a hyphen and six characters, as "
            f"the ARN of a secret does, so that Secrets Manager may look for another one; give the "
            f"secret another name."
        )


def _listener(spec: ClusterSpec) -> Iterator[str]:
    listener = spec.kafka.listener
    if listener.name == INTERNAL_LISTENER:
        yield (
            f"kafka.listener.name is {INTERNAL_LISTENER}, which is what kafka.internal_listener is "
            f"called, and Strimzi wants a name for each; choose another, such as nlb."
        )
    if listener.name in TAKEN_PORT_NAMES:
        yield (
            f"kafka.listener.name is {listener.name}, and every Kafka pod has a port of Strimzi's "
            f"own called {naming.listener_port_name(listener.name)}; choose another, such as nlb."
        )
    if (listener.name, listener.port) in OLD_LISTENERS:
        yield (
            f"kafka.listener.name is {listener.name} at port {listener.port}, for which Strimzi "
            f"keeps Services and ports of other names, so that the load balancer would find none; "
            f"choose another name, such as nlb."
        )


def _namespaces(spec: ClusterSpec) -> Iterator[str]:
    if spec.strimzi.operator == "chart" and spec.strimzi.namespace == spec.kubernetes.namespace:
        yield (
            f"strimzi.namespace and kubernetes.namespace are both {spec.strimzi.namespace}, and "
            f"each is made once, by the operator's chart and for Kafka alone; choose another for "
            f"one of them."
        )


def _topic_settings(spec: ClusterSpec) -> Iterator[str]:
    for topic in spec.topics:
        for setting in topic.config:
            if setting not in TOPIC_SETTINGS:
                close = difflib.get_close_matches(setting, TOPIC_SETTINGS, n=1)
                meant = f"write {close[0]} if you mean that" if close else "take it out"
                yield (
                    f"topic {topic.name} sets {setting}, which Kafka does not know of a topic, so "
                    f"that it would not make it; {meant}."
                )


def _secret(spec: ClusterSpec) -> Iterator[str]:
    ours = naming.webhook_secret(spec.prefix)
    if spec.slack is not None and spec.slack.secret_name == ours:
        yield (
            f"slack.secret_name is {ours}, which is made here for the webhook's own token; keep "
            f"Slack's in another."
        )


def _labels(spec: ClusterSpec) -> Iterator[str]:
    prometheus = spec.metrics.prometheus
    if prometheus is None:
        return
    length = len(json.dumps(prometheus.labels))
    if length > LABELS_LIMIT:
        yield (
            f"metrics.prometheus.labels are {length} characters as JSON, and the environment of "
            f"the functions that ask, 4 KB in all, has {LABELS_LIMIT} for them; name only those "
            f"that tell this Kafka's series from others."
        )
