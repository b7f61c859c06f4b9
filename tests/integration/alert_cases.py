"""For every alert: what Prometheus would hold when it must fire, what it says then, and when not.

Series carry the names that node pools really give: pods, claims and pod sets come from
core.ground.naming.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.ground import naming

CLUSTER, NAMESPACE, SECONDS_PER_DAY = "orders", "kafka", 86_400
CONNECT = naming.connect(CLUSTER)
# Node id -> node pool, of the cluster in tests/unit/infra/programs.py.
CONTROLLERS = {0: "controller-a", 1: "controller-b", 2: "controller-c"}
BROKERS = {10: "broker-a", 20: "broker-b", 30: "broker-c"}
STATE = "kafka_server_kafkaserver_brokerstate"
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
CONTROLLER = "kafka_controller_kafkacontroller"
REPLICAS = "kafka_server_replicamanager"
UNDER_MIN_ISR = f"{REPLICAS}_underminisrpartitioncount"
# Longer than any alert waits.
ALWAYS = 200

Series = Mapping[str, str]


def pod_name(node_id: int) -> str:
    pool = {**CONTROLLERS, **BROKERS}[node_id]
    return naming.pod(CLUSTER, pool, node_id)


def claim_name(node_id: int) -> str:
    return naming.claim(CLUSTER, {**CONTROLLERS, **BROKERS}[node_id], node_id, 0)


def series(metric: str, **labels: str) -> str:
    return f"{metric}{{{','.join(f'{key}={value!r}' for key, value in labels.items())}}}"


def node_said(metric: str, node_id: int, **labels: str) -> str:
    """Return a series as the PodMonitor of Kafka labels it."""
    return series(
        metric,
        namespace=NAMESPACE,
        cluster=CLUSTER,
        pool_name={**CONTROLLERS, **BROKERS}[node_id],
        pod=pod_name(node_id),
        node=f"node-{node_id}",
        **labels,
    )


def worker_said(metric: str, number: int, **labels: str) -> str:
    pod = f"{naming.connect_component(CONNECT)}-{number}"
    return series(metric, namespace=NAMESPACE, cluster=CONNECT, pod=pod, **labels)


def pod_info(node_id: int) -> str:
    """Return what kube-state-metrics says of a pod; its own pod and namespace are labels too."""
    pool = {**CONTROLLERS, **BROKERS}[node_id]
    return series(
        "kube_pod_info",
        namespace=NAMESPACE,
        pod=pod_name(node_id),
        node=f"node-{node_id}",
        created_by_kind="StrimziPodSet",
        created_by_name=naming.pod_set(CLUSTER, pool),
    )


def constant(value: float) -> str:
    return f"{float(value)}+0x{ALWAYS}"


def growing(per_minute: float, start: float = 0) -> str:
    return f"{start}{per_minute:+}x{ALWAYS}"


def each(metric: str, nodes: Mapping[int, str], value: float) -> Series:
    return {node_said(metric, node_id): constant(value) for node_id in nodes}


def volume(node_id: int, available: str, capacity: float = 100) -> Series:
    labels = {"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(node_id)}
    return {
        series("kubelet_volume_stats_available_bytes", **labels): available,
        series("kubelet_volume_stats_capacity_bytes", **labels): constant(capacity),
    }


def resizing(value: float) -> Series:
    labels = {"namespace": NAMESPACE, "persistentvolumeclaim": claim_name(10)}
    name = "kube_persistentvolumeclaim_status_condition"
    return {series(name, **labels, condition="Resizing", status="true"): constant(value)}


def asked_series(counters: str, per_minute: float, *, volume_id: str = "vol-0a") -> Series:
    driver = {"instance_id": "i-0a", "volume_id": volume_id}
    volumes = {"persistentvolume": "pv-10", "csi_driver": "ebs.csi.aws.com"}
    return {
        series(f"{counters}_iops_seconds_total", **driver): growing(per_minute),
        series(f"{counters}_tp_seconds_total", **driver): constant(0),
        series("kube_persistentvolume_info", **volumes, csi_volume_handle="vol-0a"): constant(1),
        series(
            "kube_persistentvolume_claim_ref",
            persistentvolume="pv-10",
            claim_namespace=NAMESPACE,
            name=claim_name(10),
        ): constant(1),
    }


def certificate(days: float, cluster: str = CLUSTER) -> Series:
    name = "strimzi_certificate_expiration_timestamp_ms"
    labels = {"cluster": cluster, "resource_namespace": NAMESPACE, "type": "cluster-ca"}
    return {series(name, **labels): constant(days * SECONDS_PER_DAY * 1000)}


def cordon_series(node_id: int, *, since: int = 0, until: int = ALWAYS) -> Series:
    node = series("kube_node_spec_unschedulable", node=f"node-{node_id}")
    return {
        pod_info(node_id): constant(1),
        node: f"0x{since} 1x{until - since} 0x{ALWAYS}" if since else f"1x{until} 0x{ALWAYS}",
    }


def resource_state(namespace: str = NAMESPACE) -> str:
    """Return the operator's series of how its last reconciliation of the Kafka ended."""
    named = {"kind": "Kafka", "name": CLUSTER, "reason": "none"}
    return series("strimzi_resource_state", namespace="ops", resource_namespace=namespace, **named)


def failures(namespace: str = NAMESPACE) -> str:
    """Return the operator's count of failed reconciliations of Kafkas."""
    name = "strimzi_reconciliations_failed_total"
    return series(name, kind="Kafka", namespace="ops", exported_namespace=namespace)


def pending(node_id: int) -> str:
    """Return kube-state-metrics' series of a pod that waits for its node."""
    pod = {"namespace": NAMESPACE, "pod": pod_name(node_id)}
    return series("kube_pod_status_phase", **pod, phase="Pending")


def phase(node_id: int, phase_name: str) -> Series:
    labels = {"namespace": NAMESPACE, "pod": pod_name(node_id), "phase": phase_name}
    return {series("kube_pod_status_phase", **labels): constant(1), pod_info(node_id): constant(1)}


def restarts(pod: str, per_minute: float) -> Series:
    labels = {"namespace": NAMESPACE, "pod": pod, "container": "kafka"}
    return {
        series("kube_pod_container_status_restarts_total", **labels): growing(per_minute),
        pod_info(10): constant(1),
    }


@dataclass(frozen=True, kw_only=True)
class Case:
    """What an alert is shown: `says` is its whole summary, `labels` what it carries with it."""

    fires: Series
    says: str
    quiet: Series
    labels: Series = field(default_factory=dict)
    # Minutes until the expression can hold: what a rate or a forecast needs to see first.
    lead: int = 0


def on_pod(node_id: int) -> dict[str, str]:
    return {"pod": pod_name(node_id), "node": f"node-{node_id}"}


def metadata_case(metric: str, node_id: int) -> Case:
    return Case(
        # From the first scrape on: a counter that starts above 0 has no increase to see.
        fires={node_said(metric, node_id): constant(2)},
        labels=on_pod(node_id),
        says=f"{pod_name(node_id)} met 2 errors in the metadata log; read its log before a "
        "restart erases the count.",
        quiet={node_said(metric, node_id): constant(0)},
    )
