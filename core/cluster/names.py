"""Decides which names a spec may not give: Strimzi, Kubernetes, AWS or this project has them.

Sources: Strimzi's KafkaCluster and ListenersUtils (names of ports and of listeners), Kafka's
LogConfig (a topic's settings), Secrets Manager's user guide (names that end like an ARN does).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator

from core.cluster import kafka_settings
from core.cluster.fields import is_loopback
from core.cluster.spec import ClusterSpec
from core.ground import naming, regions
from core.ground.constants import INTERNAL_LISTENER
from core.settings.prometheus_address import PrometheusWorkspace

# Ports of every Kafka pod are called tcp-<name>, and no two ports of a Service have one name.
TAKEN_PORT_NAMES = frozenset({"ctrlplane", "kafkaagent", "prometheus", "replication"})
# A listener that is called so at its port keeps names of the days before listeners had any.
OLD_LISTENERS = {("plain", 9092), ("tls", 9093)}
# Of the 4 KB that a function's environment has, what is left for the labels of every query.
LABELS_LIMIT = 1000
# What Strimzi calls the Secrets of a cluster, behind its name and a hyphen.
SECRETS_OF_A_CLUSTER = frozenset(
    {
        *("cluster-ca", "cluster-ca-cert", "clients-ca", "clients-ca-cert"),
        *("cluster-operator-certs", "entity-topic-operator-certs", "entity-user-operator-certs"),
        # Of the authorities that every node trusts.
        "trustbundle",
        *("kafka-brokers", "kafka-exporter-certs", "cruise-control-certs", "cruise-control-api"),
    }
)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_LIKE_AN_ARN = re.compile(r".*-[A-Za-z0-9]{6}")


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each name that is somebody else's, or known to nobody."""
    yield from _listener(spec)
    yield from _namespaces(spec)
    yield from _topic_settings(spec)
    yield from _secret(spec)
    yield from _labels(spec)
    yield from _secrets_of_strimzi(spec)
    yield from _topics_of_connect(spec)
    yield from _acls(spec)


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
    made = [("kubernetes.namespace", spec.kubernetes.namespace, "Kafka", "kafka")]
    if spec.strimzi.operator == "chart":
        made.append(("strimzi.namespace", spec.strimzi.namespace, "the operator", "strimzi"))
    if len(made) > 1 and spec.strimzi.namespace == spec.kubernetes.namespace:
        yield (
            f"strimzi.namespace and kubernetes.namespace are both {spec.strimzi.namespace}, and "
            f"each is made once, by the operator's chart and for Kafka alone; choose another for "
            f"one of them."
        )
    for setting, name, whose, other in made:
        if name == "default" or name.startswith("kube-"):
            yield (
                f"{setting} is {name}, which Kubernetes makes or keeps for itself, and this one is "
                f"made for {whose} alone; choose another name, such as {other}."
            )


def _secrets_of_strimzi(spec: ClusterSpec) -> Iterator[str]:
    """Refuse users whose Secret, which bears their name, would be one of the cluster's own."""
    of_pods = {
        naming.pod(spec.name, naming.kafka_node_pool(pool.name, zone), node_id)
        for pool in spec.pools
        for zone, ids in spec.node_ids_of(pool).items()
        for node_id in ids
    }
    for user in spec.users:
        own = user.name.removeprefix(f"{spec.name}-") in SECRETS_OF_A_CLUSTER
        if own or user.name in of_pods:
            yield (
                f"user {user.name} would have the Secret {user.name}, in which Strimzi keeps the "
                f"cluster's own keys; rename the user."
            )
        elif user.name == spec.kafka.functions.authority_secret_name:
            yield (
                f"user {user.name} would have the Secret {user.name}, which "
                f"kafka.functions.authority_secret_name names as that of the brokers' authorities; "
                f"rename the user."
            )


def _topics_of_connect(spec: ClusterSpec) -> Iterator[str]:
    taken = naming.connect_topics(spec.name) if spec.connect is not None else ()
    for topic in spec.topics:
        if topic.name in taken:
            yield (
                f"topics names {topic.name}, which Connect's workers make for themselves, "
                f"compacted; take it out."
            )


def _acls(spec: ClusterSpec) -> Iterator[str]:
    for user in spec.users:
        for acl in user.acls:
            if acl.resource != "topic" or acl.name in {None, "*"}:
                continue
            alone = acl.name in {".", ".."} and not acl.prefix
            if alone or not _TOPIC.fullmatch(str(acl.name)):
                yield (
                    f"user {user.name} has an ACL on the topic {acl.name!r}, and no topic is "
                    f"called so: their names have letters, digits, dots, hyphens and underscores, "
                    f"and not a dot or two alone; correct it."
                )


def _topic_settings(spec: ClusterSpec) -> Iterator[str]:
    known = kafka_settings.definitions("topic")
    for topic in spec.topics:
        for setting in topic.config:
            if setting not in known:
                close = difflib.get_close_matches(setting, known, n=1)
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
    asked = prometheus.asked
    if (
        isinstance(asked, PrometheusWorkspace)
        and (refused := regions.refusal(asked.region)) is not None
    ):
        yield f"metrics.prometheus.address is in another partition: {refused}"
    for label in prometheus.labels:
        if label.startswith("__"):
            yield (
                f"metrics.prometheus.labels names {label}, and Prometheus keeps what begins with "
                f"two underscores for itself; take it out."
            )
    length = len(json.dumps(prometheus.labels))
    if length > LABELS_LIMIT:
        yield (
            f"metrics.prometheus.labels are {length} characters as JSON, and the environment of "
            f"the functions that ask, 4 KB in all, has {LABELS_LIMIT} for them; name only those "
            f"that tell this Kafka's series from others."
        )
