"""handlers.adapters.pods: which pods count, and what is read of each."""

from __future__ import annotations

from typing import Any

from core.health.pods import PodSeen
from handlers.adapters.pods import EksPods, pod_seen

GATE = "target-health.elbv2.k8s.aws/orders-broker-10"


def pod(name: str = "orders-broker-a-10", **changes: Any) -> dict[str, Any]:
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"}
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-11-20T00:00:00Z"},
        "spec": {"nodeName": "ip-1", "readinessGates": [{"conditionType": GATE}]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "ContainersReady", "status": "True"},
                {
                    "type": "Ready",
                    "status": "False",
                    "lastTransitionTime": "2026-11-20T01:00:00Z",
                },
                {"type": GATE, "status": "False"},
            ],
            "containerStatuses": [
                {
                    "name": "kafka",
                    "restartCount": 2,
                    "state": {"running": {"startedAt": "2026-11-20T00:00:10Z"}},
                }
            ],
        },
        **changes,
    }


def test_a_pod_is_read_with_its_gates_and_its_process() -> None:
    assert pod_seen(pod()) == PodSeen(
        name="orders-broker-a-10",
        node_id=10,
        created_at=1_795_132_800.0,
        node_name="ip-1",
        ready=False,
        containers_ready=True,
        gates={GATE: False},
        started_at=1_795_132_810.0,
        restarts=2,
        unready_since=1_795_136_400.0,
    )


RUNNING = {"running": {"startedAt": "2026-11-20T00:00:10Z"}}
CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}


def test_a_proxy_beside_kafka_is_not_taken_for_it() -> None:
    """The kubelet lists containers by their names, and istio-proxy comes before kafka."""
    item = pod()
    item["status"]["containerStatuses"] = [
        {"name": "istio-proxy", "restartCount": 0, "state": RUNNING},
        {"name": "kafka", "restartCount": 7, "state": CRASHED},
    ]
    found = pod_seen(item)
    assert found is not None
    assert (found.started_at, found.waiting, found.restarts) == (None, "CrashLoopBackOff", 7)


def test_a_container_before_kafka_that_never_ends_is_why_it_does_not_start() -> None:
    item = pod()
    item["status"]["initContainerStatuses"] = [{"name": "kafka-init", "state": CRASHED}]
    state = {"waiting": {"reason": "PodInitializing"}}
    item["status"]["containerStatuses"] = [{"name": "kafka", "state": state}]
    found = pod_seen(item)
    assert found is not None
    assert found.waiting == "CrashLoopBackOff"


def test_a_pod_that_waits_says_for_what() -> None:
    told = "0/6 nodes are available"
    pending = pod(
        spec={},
        status={
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": told}],
        },
    )
    read = pod_seen(pending)
    assert read is not None
    assert (read.node_name, read.unscheduled, read.running) == (None, told, False)
    looping = pod()
    looping["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    read = pod_seen(looping)
    assert read is not None
    assert (read.waiting, read.running) == ("CrashLoopBackOff", False)


def test_a_connect_worker_is_no_kafka_node_though_its_name_ends_in_a_number() -> None:
    worker = pod("orders-connect-connect-0")
    worker["metadata"]["labels"] = {
        "strimzi.io/cluster": "orders-connect",
        "strimzi.io/kind": "KafkaConnect",
    }
    read = pod_seen(worker)
    assert read is not None
    assert read.node_id is None


def test_what_is_neither_or_is_over_does_not_count() -> None:
    other = pod("orders-entity-operator-5d4")
    other["metadata"]["labels"] = {"strimzi.io/cluster": "orders", "strimzi.io/kind": "Kafka"}
    assert pod_seen(other) is None
    over = pod()
    over["status"]["phase"] = "Failed"
    assert pod_seen(over) is None


def test_both_clusters_pods_come_in_one_list() -> None:
    class FakeApi:
        def list(self, path: str, **query: str) -> list[dict[str, Any]]:
            assert path == "/api/v1/namespaces/kafka/pods"
            assert query == {"labelSelector": "strimzi.io/cluster in (orders,orders-connect)"}
            return [pod()]

    api: Any = FakeApi()
    assert [each.name for each in EksPods(api, "kafka", "orders").pods()] == ["orders-broker-a-10"]
