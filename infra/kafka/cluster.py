"""Kafka as Strimzi's resources: namespace, budgets, a KafkaNodePool per pool and zone, the Kafka.

A pool is pinned to its zone from the first schedule on, because Strimzi no longer spreads brokers
over zones and a volume never leaves the one it was made in. No two Kafka pods share a node. The
namespace is made apart, because what must be there before Kafka's first pod (the operator's rights,
the load balancer's bindings) lives in it too.

The disruption budgets never change: a pod's label says under which of two it stands. `staying` is
over every Kafka pod without the label, of which one may be evicted while all are Ready and nobody
is labelled; `leaving` is over the labelled ones, all of whom may go (core.incidents.consenting puts
the label on). Strimzi's own budget is off: over a pod with two the eviction API answers 500.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, NodePool, Probe, Role, Storage
from core.cluster.kafka import Asking, OAuth
from core.cluster.kafka_settings import default_config
from core.cluster.spec import START_SECONDS
from core.cost import pricing
from core.ground import naming
from core.ground.constants import EVICTED_AT_A_TIME, INTERNAL_LISTENER
from infra.alerts.dashboards import prometheus_rule
from infra.alerts.metrics import KAFKA_ALLOW, metrics_config, pod_monitor
from infra.kafka.storage import attributes_class
from infra.versions import STRIMZI_API

NAMESPACE_TYPE = "stillwater:infra:KafkaNamespace"
# Our operator makes its pods by the restricted standard (infra.charts.strimzi). Enforced, that
# standard would refuse a broker that stops before an upgraded operator has described it again, and
# one whose operator is the user's own.
POD_SECURITY = {
    f"pod-security.kubernetes.io/{mode}": standard
    for mode, standard in (("enforce", "baseline"), ("audit", "restricted"), ("warn", "restricted"))
}


class KafkaNamespace(pulumi.ComponentResource):
    """One namespace; `name` is known once it exists."""

    name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        namespace: str,
        labels: Mapping[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(NAMESPACE_TYPE, name, None, opts)
        made = k8s.core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": namespace, "labels": {**POD_SECURITY, **labels}},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = made.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"name": self.name})


BUDGETS_TYPE = "stillwater:infra:DisruptionBudgets"


class DisruptionBudgets(pulumi.ComponentResource):
    """The budgets over those who stay, over those who leave, and over Connect's workers."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(BUDGETS_TYPE, name, None, opts)
        called = {
            "staying": naming.budget_of_the_staying(spec.name),
            "leaving": naming.budget_of_the_leaving(spec.name),
            "connect": naming.connect(spec.name),
        }
        for key, budget in budgets(spec).items():
            k8s.policy.v1.PodDisruptionBudget(
                f"{name}-{key}",
                metadata={
                    "name": called[key],
                    "namespace": spec.kubernetes.namespace,
                    "labels": {naming.CLUSTER_LABEL: spec.name},
                },
                spec=budget,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def budgets(spec: ClusterSpec) -> dict[str, Any]:
    """Return each budget's spec: an integer, since Kafka's pods have no owner with a scale."""
    mine = {
        naming.CLUSTER_LABEL: spec.name,
        naming.KIND_LABEL: "Kafka",
        "strimzi.io/name": naming.kafka_component(spec.name),
    }
    nodes = sum(spec.nodes_of(pool) for pool in spec.pools)
    found = {
        "staying": _budget(max(0, nodes - EVICTED_AT_A_TIME), mine, labelled=False),
        "leaving": _budget(0, mine, labelled=True),
    }
    if spec.connect is not None and spec.connect.replicas > 1:
        workers = {
            naming.CLUSTER_LABEL: naming.connect(spec.name),
            naming.KIND_LABEL: naming.CONNECT_KIND,
        }
        found["connect"] = {
            "minAvailable": spec.connect.replicas - 1,
            "selector": {"matchLabels": workers},
        }
    return found


def _budget(least: int, mine: dict[str, str], *, labelled: bool) -> dict[str, Any]:
    operator = "Exists" if labelled else "DoesNotExist"
    expression = {"key": naming.MAY_LEAVE_LABEL, "operator": operator}
    return {
        "minAvailable": least,
        "selector": {"matchLabels": mine, "matchExpressions": [expression]},
    }


KAFKA_TYPE = "stillwater:infra:Kafka"
BYTES_PER_KIB, BYTES_PER_MIB = 1024, 1024**2
STRIMZI_ROLES = {
    Role.BROKER: ["broker"],
    Role.CONTROLLER: ["controller"],
    Role.COMBINED: ["controller", "broker"],
}
AUTHORIZATION = {"type": "simple"}
# Of Strimzi's OAuth library (strimzi-kafka-oauth).
OAUTH_VALIDATOR = "io.strimzi.kafka.oauth.server.JaasServerOauthValidatorCallbackHandler"
OAUTH_PRINCIPALS = "io.strimzi.kafka.oauth.server.OAuthKafkaPrincipalBuilder"


class Kafka(pulumi.ComponentResource):
    """One Kafka cluster: the pools of its controllers first, brokers and the Kafka with `run`.

    On the way down the brokers' pools are the first to go and the controllers' the last: without
    a controller a broker waits five minutes before it stops (KafkaBroker.shutdown).
    """

    controllers: Sequence[pulumi.Resource]

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(KAFKA_TYPE, name, None, opts)
        self._name, self._spec = name, spec
        self.controllers = self._pools(lambda role: role.is_controller, after=())

    def run(self, *, after: Sequence[pulumi.Resource]) -> None:
        """Add the brokers and the Kafka: the first pods start once all of `after` is there."""
        name, spec = self._name, self._spec
        brokers = self._pools(
            lambda role: not role.is_controller, after=[*self.controllers, *after]
        )
        if spec.kafka.rebalance is not None:
            template = CustomResource(
                f"{name}-rebalance-template",
                api_version=STRIMZI_API,
                kind="KafkaRebalance",
                metadata={
                    "name": naming.rebalance_template(spec.name),
                    "namespace": spec.kubernetes.namespace,
                    "labels": {naming.CLUSTER_LABEL: spec.name},
                    "annotations": {naming.REBALANCE_TEMPLATE_ANNOTATION: "true"},
                },
                spec={
                    "replicationThrottle": spec.kafka.rebalance.throttle_mib_per_s * BYTES_PER_MIB
                },
                opts=pulumi.ResourceOptions(parent=self),
            )
            after = [*after, template]
        CustomResource(
            f"{name}-kafka",
            api_version=STRIMZI_API,
            kind="Kafka",
            metadata={
                "name": spec.name,
                "namespace": spec.kubernetes.namespace,
                "annotations": {"pulumi.com/waitFor": "condition=Ready"},
            },
            spec=kafka_spec(spec),
            # Created last and deleted first: Strimzi refuses a Kafka without its pools.
            opts=pulumi.ResourceOptions(
                parent=self,
                # Combined nodes are brokers whose pools came first.
                depends_on=[*self.controllers, *brokers, *after],
                # The engine waits for Ready of the generation that it wrote: for the whole roll.
                custom_timeouts=pulumi.CustomTimeouts(
                    create=f"{START_SECONDS}s", update=f"{spec.roll_limit_seconds}s"
                ),
            ),
        )
        if spec.metrics.prometheus_operator:
            child = pulumi.ResourceOptions(parent=self)
            pod_monitor(f"{name}-pod-monitor", spec, spec.name, "Kafka", child)
            prometheus_rule(f"{name}-rules", spec, child)
        self.register_outputs({})

    def _pools(
        self, has_role: Callable[[Role], bool], *, after: Sequence[pulumi.Resource]
    ) -> list[pulumi.Resource]:
        """Return a KafkaNodePool per pool of some roles, and zone."""
        spec = self._spec
        return [
            CustomResource(
                f"{self._name}-{zone}-{pool.name}",
                api_version=STRIMZI_API,
                kind="KafkaNodePool",
                metadata=_pool_metadata(spec, pool, zone, ids),
                spec=node_pool_spec(spec, pool, zone),
                opts=pulumi.ResourceOptions(
                    parent=self,
                    depends_on=list(after),
                    # Whoever else wrote it would shrink what λ volumes has grown.
                    ignore_changes=["spec.storage"] if spec.volumes.applies else None,
                ),
            )
            for pool in spec.pools
            if has_role(pool.role)
            for zone, ids in spec.node_ids_of(pool).items()
        ]


def bootstrap_servers(spec: ClusterSpec) -> list[str]:
    """Return host:port of one broker per pool and zone, as clients of the load balancer dial them.

    A client needs one that answers, and any zone may be away; the rest it learns.
    """
    listener = spec.kafka.listener
    first_ids = [
        ids.start
        for pool in spec.pools
        if pool.role.is_broker
        for ids in spec.node_ids_of(pool).values()
    ]
    ports = [naming.advertised_port(listener.first_advertised_port, node) for node in first_ids]
    return [f"{listener.advertised_host}:{port}" for port in ports]


def node_pool_spec(spec: ClusterSpec, pool: NodePool, zone: str) -> dict[str, Any]:
    """Return a KafkaNodePool's spec."""
    heap = f"{pool.heap_mib}m"
    memory = f"{pool.memory_request_mib}Mi"
    return {
        "replicas": pool.nodes_per_zone,
        "roles": STRIMZI_ROLES[pool.role],
        "resources": {
            "requests": {"cpu": f"{pool.cpu_request_millis}m", "memory": memory},
            "limits": {"memory": memory},
        },
        "jvmOptions": {"-Xms": heap, "-Xmx": heap},
        "storage": {
            "type": "jbod",
            "volumes": [_volume(number, volume) for number, volume in enumerate(pool.volumes)],
        },
        # A pool's pod template replaces Kafka's whole: grace left out here would be 30 s.
        "template": {"pod": _pod_template(spec, pool, zone)},
    }


def kafka_spec(spec: ClusterSpec) -> dict[str, Any]:
    """Return the Kafka's spec."""
    probes = spec.kafka.probes
    return {
        "kafka": {
            "version": spec.kafka.version,
            "metadataVersion": spec.kafka.metadata_version,
            "rack": {"type": "topology-label", "topologyKey": naming.ZONE_LABEL},
            "listeners": [_internal_listener(spec), _listener(spec)],
            "config": {**default_config(spec), **spec.kafka.config},
            # One set for every role: a pool has none of its own (KafkaNodePool, 1.2.0).
            "readinessProbe": probe(probes.readiness),
            "livenessProbe": probe(probes.liveness),
            # Without superUsers Strimzi's own components are the only ones.
            **({} if spec.kafka.authorization == "none" else {"authorization": AUTHORIZATION}),
            **metrics_config(spec.metrics, KAFKA_ALLOW),
            **_operators_budget(spec),
        },
        **cruise_control(spec),
        "entityOperator": {
            "topicOperator": {},
            "userOperator": {},
            # With finalizers a namespace whose Kafka is gone could never be deleted.
            "template": {
                "topicOperatorContainer": {
                    "env": [{"name": "STRIMZI_USE_FINALIZERS", "value": "false"}]
                }
            },
        },
    }


def cruise_control(spec: ClusterSpec) -> dict[str, Any]:
    """Return how Strimzi runs Cruise Control: capacity by instance type, its topics replicated.

    Its disk capacity is that of the volumes, and its default goals keep replicas in their racks.
    """
    asked = spec.kafka.rebalance
    if asked is None:
        return {}
    memory = f"{asked.memory_request_mib}Mi"
    template = {"name": naming.rebalance_template(spec.name)}
    found = {
        "resources": {
            "requests": {"cpu": f"{asked.cpu_request_millis}m", "memory": memory},
            "limits": {"memory": memory},
        },
        "brokerCapacity": {
            "overrides": [
                {"brokers": [node for ids in spec.node_ids_of(pool).values() for node in ids]}
                | _capacity(pool)
                for pool in spec.pools
                if pool.role.is_broker
            ]
        },
        "config": {
            "sample.store.topic.replication.factor": spec.kafka.default_replication_factor,
        },
    }
    if asked.automatic:
        found["autoRebalance"] = [
            {"mode": mode, "template": template} for mode in ("add-brokers", "remove-brokers")
        ]
    return {"cruiseControl": found}


def _capacity(pool: NodePool) -> dict[str, str]:
    """Return what one broker of a pool can take: its CPU request, its network's baseline."""
    network = int(pricing.table()[pool.instance_type].network_bytes_per_s / BYTES_PER_KIB)
    return {
        "cpu": f"{pool.cpu_request_millis}m",
        "inboundNetwork": f"{network}KiB/s",
        "outboundNetwork": f"{network}KiB/s",
    }


def _operators_budget(spec: ClusterSpec) -> dict[str, Any]:
    """Return what Strimzi is told of its own disruption budget, where it makes one.

    It writes an integer minAvailable over controllers and brokers together, the one form that lets
    pods without a scalable owner be evicted at all.
    """
    if spec.strimzi.own_budgets:
        return {}
    return {"template": {"podDisruptionBudget": {"maxUnavailable": EVICTED_AT_A_TIME}}}


def probe(timing: Probe) -> dict[str, int]:
    """Return a probe as Strimzi takes it: every figure, since one alone resets the others."""
    return {
        "initialDelaySeconds": timing.initial_delay_seconds,
        "periodSeconds": timing.period_seconds,
        "timeoutSeconds": timing.timeout_seconds,
        "failureThreshold": timing.failure_threshold,
    }


def internal_bootstrap(spec: ClusterSpec) -> str:
    """Return where clients inside the cluster start from."""
    service = naming.bootstrap_service(spec.name)
    namespace, port = spec.kubernetes.namespace, spec.kafka.internal_listener.port
    return f"{service}.{namespace}.svc:{port}"


def _pool_metadata(spec: ClusterSpec, pool: NodePool, zone: str, ids: range) -> dict[str, Any]:
    return {
        "name": naming.kafka_node_pool(pool.name, zone),
        "namespace": spec.kubernetes.namespace,
        "labels": {naming.CLUSTER_LABEL: spec.name},
        "annotations": {"strimzi.io/next-node-ids": naming.next_node_ids_annotation(ids)},
    }


def _volume(number: int, volume: Storage) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": number,
        "type": "persistent-claim",
        "size": f"{volume.size_gib}Gi",
        "class": naming.STORAGE_CLASS,
        "volumeAttributesClass": attributes_class(volume),
        "deleteClaim": False,
    }
    if number == 0:
        entry["kraftMetadata"] = "shared"
    return entry


def _pod_template(spec: ClusterSpec, pool: NodePool, zone: str) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    where = {naming.ZONE_LABEL: [zone], naming.NODE_POOL_LABEL: [pool.name]}
    return {
        "terminationGracePeriodSeconds": spec.timings.pod_grace_seconds,
        "tolerations": [
            {
                "key": naming.DEDICATED_TAINT_KEY,
                "operator": "Equal",
                "value": naming.DEDICATED_TAINT_VALUE,
                "effect": "NoSchedule",
            }
        ],
        "affinity": {
            "nodeAffinity": {
                required: {"nodeSelectorTerms": [{"matchExpressions": _is_in(where)}]}
            },
            "podAntiAffinity": {
                required: [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {
                            "matchLabels": {
                                naming.CLUSTER_LABEL: spec.name,
                                "strimzi.io/name": naming.kafka_component(spec.name),
                            }
                        },
                    }
                ]
            },
        },
    }


def _is_in(labels: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    return [{"key": k, "operator": "In", "values": list(v)} for k, v in labels.items()]


def _internal_listener(spec: ClusterSpec) -> dict[str, Any]:
    listener = spec.kafka.internal_listener
    return {
        "name": INTERNAL_LISTENER,
        "port": listener.port,
        "type": "internal",
        "tls": listener.tls,
        **_authentication(listener),
    }


def _authentication(listener: Asking) -> dict[str, Any]:
    """Return how a listener asks its clients who they are; nothing where it does not."""
    if listener.authentication == "none":
        return {}
    if listener.oauth is None:
        return {"authentication": {"type": listener.authentication}}
    return {
        "authentication": {
            # Strimzi 1.x has no type `oauth`; its library is in its images all the same.
            "type": "custom",
            "sasl": True,
            "listenerConfig": {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "oauthbearer.sasl.server.callback.handler.class": OAUTH_VALIDATOR,
                "oauthbearer.sasl.jaas.config": _jaas(listener.oauth),
                "principal.builder.class": OAUTH_PRINCIPALS,
            },
        }
    }


def _jaas(oauth: OAuth) -> str:
    options = {
        # Kafka wants a claim of whoever logs in with nothing; a listener never does.
        "unsecuredLoginStringClaim_sub": "unused",
        "oauth.valid.issuer.uri": oauth.valid_issuer_url,
        "oauth.jwks.endpoint.uri": oauth.jwks_url,
        "oauth.username.claim": oauth.user_name_claim,
    }
    if oauth.audience is not None:
        options |= {"oauth.check.audience": "true", "oauth.client.id": oauth.audience}
    said = " ".join(f'{key}="{value}"' for key, value in options.items())
    return f"org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {said};"


def _listener(spec: ClusterSpec) -> dict[str, Any]:
    listener = spec.kafka.listener
    return {
        "name": listener.name,
        "port": listener.port,
        "type": "cluster-ip",
        "tls": listener.tls,
        **_authentication(listener),
        "configuration": {
            # Templates cover brokers that do not run yet; the host must be in the certificate.
            "bootstrap": {"alternativeNames": [listener.advertised_host]},
            "advertisedHostTemplate": listener.advertised_host,
            "advertisedPortTemplate": f"{listener.first_advertised_port} + {{nodeId}}",
        },
    }
