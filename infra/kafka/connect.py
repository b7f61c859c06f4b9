"""Builds Kafka Connect, topics and users as Strimzi's resources.

Connect's probes ask GET /health, which answers 500 and 503 only after 10 s (KIP-1017); Strimzi's
default timeout of 5 s would see nothing but timeouts. Setting one field of a probe resets its
initial delay, so every field is set. A topic that leaves the description stays in the cluster, for
its records' sake: a person deletes the KafkaTopic by hand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import Acl, ClusterSpec, Connect, Probe, Topic, User
from core.cluster.rights import Client, clients, connect_acls
from core.ground import naming
from core.ground.constants import CONNECT_REST_PORT
from core.health.node import PORT as METRICS_PORT
from infra import pods
from infra.alerts.metrics import CONNECT_ALLOW, metrics_config, pod_monitor
from infra.kafka.cluster import internal_bootstrap, probe
from infra.versions import STRIMZI_API

TOPICS_TYPE = "stillwater:infra:Topics"
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")
# RFC 1123: what Kubernetes takes for a resource's name.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
READY = {"pulumi.com/waitFor": "condition=Ready"}


class Topics(pulumi.ComponentResource):
    """A KafkaTopic per topic; a KafkaUser per user and per function that speaks to Kafka."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TOPICS_TYPE, name, None, opts)
        for topic in spec.topics:
            CustomResource(
                f"{name}-topic-{resource_name(topic.name)}",
                api_version=STRIMZI_API,
                kind="KafkaTopic",
                metadata=_metadata(spec, resource_name(topic.name)),
                spec=topic_spec(spec, topic),
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
            )
        quotas = {user.name: _quotas(user) for user in spec.users}
        for client in clients(spec):
            if client.name == naming.connect(spec.name):
                continue  # made with its workers
            CustomResource(
                f"{name}-user-{client.name}",
                api_version=STRIMZI_API,
                kind="KafkaUser",
                metadata=_metadata(spec, client.name),
                spec=user_spec(spec, client, quotas.get(client.name, {})),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def resource_name(topic: str) -> str:
    """Return the KafkaTopic's name: the topic's own where Kubernetes takes it, else a hash's.

    >>> resource_name("orders.v1"), resource_name("Orders_V1")
    ('orders.v1', 'orders-v1-c2912a61')
    """
    plain = _NOT_IN_A_NAME.sub("-", topic.lower()).strip("-.")
    if plain == topic and _NAME.fullmatch(topic):
        return topic
    # Two topics may differ in what a resource's name cannot show.
    digest = hashlib.sha256(topic.encode()).hexdigest()[:8]
    named = f"{plain[:200]}-{digest}".lstrip("-")
    return named if _NAME.fullmatch(named) else named.replace(".", "-")


def topic_spec(spec: ClusterSpec, topic: Topic) -> dict[str, Any]:
    """Return a KafkaTopic's spec."""
    rendered: dict[str, Any] = {
        "partitions": topic.partitions,
        "replicas": topic.replication_factor or spec.kafka.default_replication_factor,
        "config": dict(topic.config),
    }
    if resource_name(topic.name) != topic.name:
        rendered["topicName"] = topic.name
    return rendered


def user_spec(spec: ClusterSpec, client: Client, quotas: Mapping[str, int]) -> dict[str, Any]:
    """Return a KafkaUser's spec: how it says who it is, what it may do and how much of it."""
    rendered: dict[str, Any] = {}
    # Somebody with a token has no credentials of Strimzi's; ACLs and quotas are of the plain name.
    if client.authentication != "oauth":
        rendered["authentication"] = {"type": client.authentication}
    # Without an ACL as well: what was granted before is taken away then.
    if spec.kafka.authorization == "simple":
        acls = [_acl(acl) for acl in client.acls]
        rendered["authorization"] = {"type": "simple", "acls": acls}
    if quotas:
        rendered["quotas"] = dict(quotas)
    return rendered


def _acl(acl: Acl) -> dict[str, Any]:
    resource: dict[str, Any] = {"type": acl.resource}
    if acl.resource != "cluster":
        resource |= {"name": acl.name, "patternType": "prefix" if acl.prefix else "literal"}
    return {"resource": resource, "operations": list(acl.operations)}


def _quotas(user: User) -> dict[str, int]:
    asked = {
        "producerByteRate": user.producer_bytes_per_s,
        "consumerByteRate": user.consumer_bytes_per_s,
    }
    return {name: rate for name, rate in asked.items() if rate is not None}


def _metadata(spec: ClusterSpec, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": spec.kubernetes.namespace,
        "labels": {naming.CLUSTER_LABEL: spec.name},
        "annotations": dict(READY),
    }


TYPE = "stillwater:infra:Connect"
STRIMZI_KIND = "KafkaConnect"
# A worker that starts is asked this often.
PERIOD_SECONDS = 15
# A worker answers 500 as long as Kafka does not answer it, and 200 within 5 s of its return
# (measured): a restart would only add a rebalance, and end in a crash loop while Kafka is away. So
# two minutes are given, after which a herder that is blocked by itself is restarted.
LIVENESS_REFUSALS = 8
READY_TIMEOUT = "15m"


class ConnectCluster(pulumi.ComponentResource):
    """One KafkaConnect, and the user it is when Kafka asks for one."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        connect: Connect,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        namespace = spec.kubernetes.namespace
        child = pulumi.ResourceOptions(parent=self)
        before: list[pulumi.Resource] = []
        asked = spec.kafka.internal_listener.authentication
        if asked != "none":
            client = Client(naming.connect(spec.name), asked, connect_acls(spec))
            user = CustomResource(
                f"{name}-user",
                api_version=STRIMZI_API,
                kind="KafkaUser",
                metadata={
                    "name": naming.connect(spec.name),
                    "namespace": namespace,
                    "labels": {naming.CLUSTER_LABEL: spec.name},
                },
                spec=user_spec(spec, client, {}),
                opts=child,
            )
            before.append(user)
        before.append(_admitted(f"{name}-admitted", spec, self))
        CustomResource(
            f"{name}-workers",
            api_version=STRIMZI_API,
            kind=STRIMZI_KIND,
            metadata={
                "name": naming.connect(spec.name),
                "namespace": namespace,
                # Connectors are resources beside it, not calls to its REST port.
                "annotations": {
                    "strimzi.io/use-connector-resources": "true",
                    "pulumi.com/waitFor": "condition=Ready",
                },
            },
            spec=connect_spec(spec, connect),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=before,
                custom_timeouts=pulumi.CustomTimeouts(create=READY_TIMEOUT, update=READY_TIMEOUT),
            ),
        )
        if spec.metrics.prometheus_operator:
            pod_monitor(f"{name}-pod-monitor", spec, naming.connect(spec.name), STRIMZI_KIND, child)
        self.register_outputs({})


def _labels(spec: ClusterSpec) -> dict[str, str]:
    return {naming.CLUSTER_LABEL: naming.connect(spec.name), "strimzi.io/kind": STRIMZI_KIND}


def _admitted(name: str, spec: ClusterSpec, parent: pulumi.Resource) -> pulumi.Resource:
    """Admit to the REST port workers, the operator, and λ health, who asks by the API server.

    Strimzi's own policy knows nothing of the API server, and an operator may be set to make none.
    """
    workers = {"podSelector": {"matchLabels": _labels(spec)}}
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": naming.OPERATOR_LABELS}}
    asking = pods.control_plane(spec.prefix, pulumi.InvokeOptions(parent=parent))
    return pods.admit(
        name,
        {"name": f"{naming.connect(spec.name)}-admitted", "namespace": spec.kubernetes.namespace},
        _labels(spec),
        {CONNECT_REST_PORT: [workers, operator, *asking], METRICS_PORT: None},
        pulumi.ResourceOptions(parent=parent),
    )


def connect_spec(spec: ClusterSpec, connect: Connect) -> dict[str, Any]:
    """Return the KafkaConnect's spec."""
    heap, memory = f"{connect.heap_mib}m", f"{connect.memory_request_mib}Mi"
    configs, offsets, status = naming.connect_topics(spec.name)
    return {
        "version": spec.kafka.version,
        **({"image": connect.image} if connect.image else {}),
        "replicas": connect.replicas,
        "bootstrapServers": internal_bootstrap(spec),
        "groupId": naming.connect(spec.name),
        "configStorageTopic": configs,
        "offsetStorageTopic": offsets,
        "statusStorageTopic": status,
        **_security(spec),
        # Workers say their zone, so that their consumers read from the replica in it.
        "rack": {"type": "topology-label", "topologyKey": naming.ZONE_LABEL},
        "config": {**_default_config(spec), **connect.config},
        "readinessProbe": probe(_probe(spec, initial_seconds=PERIOD_SECONDS, refusals=1)),
        "livenessProbe": probe(
            _probe(spec, initial_seconds=connect.startup_seconds, refusals=LIVENESS_REFUSALS)
        ),
        "jvmOptions": {"-Xms": heap, "-Xmx": heap},
        "resources": {
            "requests": {"cpu": f"{connect.cpu_request_millis}m", "memory": memory},
            "limits": {"memory": memory},
        },
        **metrics_config(spec.metrics, CONNECT_ALLOW),
        "template": {"pod": _pod_template(spec, connect), **_budget(spec, connect)},
    }


def _probe(spec: ClusterSpec, *, initial_seconds: int, refusals: int) -> Probe:
    return Probe(
        initial_delay_seconds=initial_seconds,
        period_seconds=PERIOD_SECONDS,
        timeout_seconds=spec.timings.connect_probe_timeout_seconds,
        failure_threshold=refusals,
    )


def _security(spec: ClusterSpec) -> dict[str, Any]:
    """Return how workers trust Kafka and who they are to it."""
    listener, user = spec.kafka.internal_listener, naming.connect(spec.name)
    rendered: dict[str, Any] = {}
    if listener.tls:
        authority = {"secretName": naming.cluster_ca_secret(spec.name), "pattern": "*.crt"}
        rendered["tls"] = {"trustedCertificates": [authority]}
    if listener.authentication == "tls":
        rendered["authentication"] = {
            "type": "tls",
            "certificateAndKey": {
                "secretName": user,
                "certificate": "user.crt",
                "key": "user.key",
            },
        }
    elif listener.authentication == "scram-sha-512":
        rendered["authentication"] = {
            "type": "scram-sha-512",
            "username": user,
            "passwordSecret": {"secretName": user, "password": "password"},
        }
    return rendered


def _default_config(spec: ClusterSpec) -> dict[str, str | int | bool]:
    factor = spec.kafka.default_replication_factor
    return {
        "config.storage.replication.factor": factor,
        "offset.storage.replication.factor": factor,
        "status.storage.replication.factor": factor,
        # A worker that comes back in time gets its tasks back, and nobody else's are moved.
        "scheduled.rebalance.max.delay.ms": 60_000,
        "connections.max.idle.ms": spec.timings.client_connections_max_idle_seconds * 1000,
    }


def _pod_template(spec: ClusterSpec, connect: Connect) -> dict[str, Any]:
    mine = {"matchLabels": _labels(spec)}
    return {
        "terminationGracePeriodSeconds": connect.grace_seconds,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": naming.ZONE_LABEL,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": mine,
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": mine,
                        },
                    }
                ]
            }
        },
    }


def _budget(spec: ClusterSpec, connect: Connect) -> dict[str, Any]:
    # A single worker's budget would have to be 0 available: Strimzi's own default allows that one.
    if spec.strimzi.own_budgets or connect.replicas == 1:
        return {}
    return {"podDisruptionBudget": {"maxUnavailable": 1}}
