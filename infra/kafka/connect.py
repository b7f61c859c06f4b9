"""Kafka Connect as Strimzi's resource: workers on the system nodes, spread over the zones.

Both probes ask GET /health, which answers 500 and 503 only after its own 10 s (KIP-1017). Strimzi's
default timeout is 5 s, so the kubelet would see nothing but timeouts; ours outlast the answer.
Setting one field of a probe resets its initial delay, so every field is set.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, Connect, Probe
from core.cluster.rights import Client, connect_acls
from core.ground import naming
from core.ground.constants import CONNECT_REST_PORT
from core.health.node import PORT as METRICS_PORT
from infra import pods
from infra.alerts.metrics import CONNECT_ALLOW, metrics_config, pod_monitor
from infra.kafka.cluster import internal_bootstrap, probe
from infra.kafka.topics import user_spec
from infra.versions import STRIMZI_API

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
