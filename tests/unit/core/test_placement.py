"""placement: what the scheduler would say of a pod and a node, from what the API server shows."""

from typing import Any

from core.ground.placement import allocatable_of, barrier, needs_of, shortage, taints_of
from tests.every_case import every_case

DEDICATED = {"key": "dedicated", "operator": "Equal", "value": "kafka", "effect": "NoSchedule"}
ANTI = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "hungry"}},
}
ON_POOL = {"key": "pool", "operator": "In", "values": ["broker"]}


def pod(name: str = "orders-broker-a-10", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kafka", "labels": {"app": name}},
        "spec": {"tolerations": [DEDICATED], **spec},
    }


def container(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def node(*taints: dict[str, str], conditions: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "new", "labels": {"pool": "broker"}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "29"},
            "conditions": [{"type": k, "status": v} for k, v in (conditions or {}).items()],
        },
    }


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": rule}


def barred(shown: dict[str, Any], asking: dict[str, Any]) -> str | None:
    metadata = shown["metadata"]
    wants = needs_of(asking).wants
    return barrier(metadata["name"], metadata["labels"], taints_of(shown), wants)


FIT = {
    "nothing in the way": (node(), pod()),
    "its own taint": (node(taint("dedicated", value="kafka")), pod()),
    "a soft taint": (node(taint("spot", "PreferNoSchedule")), pod()),
    "every taint tolerated": (node(taint("anything", "NoExecute")),
        pod(tolerations=[{"operator": "Exists"}])),
    "a cordon, which is judged by itself": (node(taint("node.kubernetes.io/unschedulable")), pod()),
    "no pressure": (node(conditions={"MemoryPressure": "False"}), pod()),
    "its selector": (node(), pod(nodeSelector={"pool": "broker"})),
    "one of two terms": (node(),
        pod(
            affinity=required({"matchExpressions": [{**ON_POOL, "values": ["x"]}]},
                {"matchExpressions": [ON_POOL]}))),
}  # fmt: skip


@every_case("case", FIT)
def test_a_node_that_nothing_bars_fits(case: str) -> None:
    assert barred(*FIT[case]) is None


AGENT = "ebs.csi.aws.com/agent-not-ready"
BARRED = {
    "EBS CSI's startup taint": (node(taint(AGENT)), pod(), AGENT),
    "Cluster Autoscaler's leftover": (
        node(taint("ToBeDeletedByClusterAutoscaler", value="1795168800")), pod(),
        "ToBeDeletedByClusterAutoscaler=1795168800:NoSchedule"),
    "a custom startup taint": (node(taint("cilium.io/x", "NoExecute")), pod(), "cilium.io/x"),
    "its own taint of another value": (node(taint("dedicated", value="spark")), pod(), "=spark"),
    "its own taint of another effect": (node(taint("dedicated", "NoExecute", "kafka")), pod(),
        "NoExecute"),
    "memory pressure": (node(conditions={"MemoryPressure": "True"}), pod(), "memory-pressure"),
    "disk pressure": (node(conditions={"DiskPressure": "True"}), pod(), "disk-pressure"),
    "too many processes": (node(conditions={"PIDPressure": "True"}), pod(), "pid-pressure"),
    "no network": (node(conditions={"NetworkUnavailable": "True"}), pod(), "network-unavailable"),
    "a selector": (node(), pod(nodeSelector={"disk": "gp3"}), "label disk=gp3"),
    "an affinity": (node(),
        pod(affinity=required({"matchExpressions": [{**ON_POOL, "operator": "NotIn"}]})),
        "node affinity"),
    "a term that asks for nothing": (node(), pod(affinity=required({})), "node affinity"),
    "another node's name": (node(),
        pod(
            affinity=required(
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["old"]}]})),
        "node affinity"),
}  # fmt: skip


@every_case("case", BARRED)
def test_a_node_that_the_scheduler_passes_over_says_by_what(case: str) -> None:
    shown, asking, named = BARRED[case]
    assert named in (barred(shown, asking) or "")


LOGS = pod("fluent-bit", containers=[container(cpu="500m", memory="1Gi")])


def lacks(
    asking: dict[str, Any], *others: dict[str, Any], attached: int = 0, driver: Any = None
) -> str | None:
    tenants = [needs_of(each) for each in others]
    return shortage(needs_of(asking), allocatable_of(node(), driver), tenants, attached)


SMALL = pod(containers=[container(cpu="100m")])
SHORT = {
    "memory": (pod(containers=[container(memory="8Gi")]), [LOGS], "7.0 GiB of memory"),
    "processors": (pod(containers=[container(cpu="1600m")]), [LOGS], "1.5 cpu"),
    "two containers": (pod(containers=[container(memory="4Gi"), container(memory="4500Mi")]), [],
        "8.4 GiB"),
    "an init container": (
        pod(initContainers=[container(memory="9Gi")], containers=[container(memory="1Gi")]), [],
        "9.0 GiB"),
    "a sidecar": (
        pod(initContainers=[{**container(memory="4Gi"), "restartPolicy": "Always"}],
            containers=[container(memory="5Gi")]), [], "9.0 GiB"),
    "its overhead": (pod(containers=[container(memory="8Gi")], overhead={"memory": "1Gi"}), [],
        "9.0 GiB"),
    "the pod's own level": (
        pod(containers=[container(memory="1Gi")], resources={"requests": {"memory": "9Gi"}}), [],
        "9.0 GiB"),
    "what the node has none of": (pod(containers=[container(**{"amd.com/x": "1"})]), [], "0 amd"),
    "what nobody can read": (pod(containers=[container(cpu="much")]), [], "requests inf cpu"),
    "pods": (SMALL, [pod(f"p{n}") for n in range(29)], "0 pods"),
    "a pod that is being ended": (pod(containers=[container(memory="8Gi")]),
        [{**LOGS, "metadata": {**LOGS["metadata"], "deletionTimestamp": "now"}}], "7.0 GiB"),
    "a neighbour that it shuns": (
        pod(
            affinity={
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANTI]}}),
        [pod("hungry")], "runs kafka/hungry"),
    "a neighbour that shuns it": (pod("hungry"),
        [
            pod("alone",
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [ANTI]}})],
        "runs kafka/alone"),
}  # fmt: skip


@every_case("case", SHORT)
def test_a_node_without_room_says_what_it_lacks(case: str) -> None:
    asking, others, named = SHORT[case]
    assert named in (lacks(asking, *others) or "")
