"""Connect workers, topics, racks and metrics on the provisioned cluster: real processes, probed."""

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core.cluster import Topic, parse
from core.cluster.rights import clients
from core.ground import naming
from core.ground.constants import CONNECT_REST_PORT
from core.health.verdict import PartKind
from infra.alerts.metrics import KAFKA_ALLOW
from infra.kafka.connect import connect_spec
from infra.kafka.topics import topic_spec, user_spec
from local.demo import spec as demo_spec
from local.kubernetes.client import find
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster
from tests.integration.health_function import allowed_to_ask, invoke, parts, show, told_of_workers
from tests.integration.waiting import PATIENCE_SECONDS
from tests.unit.infra.test_alerts import NEEDED, allowed

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
STRIMZI = "/apis/kafka.strimzi.io/v1"
START_SECONDS = 180.0
# What only a controller has to tell, and what is there only while logs are recovered.
OF_CONTROLLERS = {name for name in NEEDED if name.startswith("kafka_controller_")}
OF_RECOVERY = {"kafka_log_logmanager_remaininglogstorecover"}
OF_BOTH = {name for name in NEEDED if name.startswith("kafka_server_raft_")}
SMALL = {"replicas": 1, "memory_request_mib": 256, "cpu_request_millis": 50}


def get(host: str, port: int, path: str) -> tuple[int | None, str]:
    """Return a worker's or reporter's answer; no status where nobody listens."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionError:
        return None, ""
    finally:
        connection.close()


def condition(item: dict[str, Any] | None, kind: str = "Ready") -> dict[str, Any]:
    conditions = ((item or {}).get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), {})


class Resource:
    """One custom resource of the cluster's namespace."""

    def __init__(self, cluster: Cluster, kind: str, name: str) -> None:
        self.cluster, self.kind, self.name = cluster, kind, name
        self.namespace = str(cluster.outputs["namespace"])
        self.folder = f"{STRIMZI}/namespaces/{self.namespace}/{kind.lower()}s"

    def make(self, spec: dict[str, Any]) -> None:
        labels = {naming.CLUSTER_LABEL: demo_spec.CLUSTER}
        metadata = {"name": self.name, "namespace": self.namespace, "labels": labels}
        body = {"apiVersion": "kafka.strimzi.io/v1", "kind": self.kind, "metadata": metadata}
        self.cluster.twin.api.post(self.folder, {**body, "spec": spec})

    def read(self) -> dict[str, Any] | None:
        return find(self.cluster.twin.api, f"{self.folder}/{self.name}")

    def delete(self) -> None:
        if self.read():
            self.cluster.twin.api.delete(f"{self.folder}/{self.name}")


@pytest.fixture
def workers(cluster: Cluster) -> Iterator[Resource]:
    name = naming.connect(demo_spec.CLUSTER)
    resource, user = (Resource(cluster, kind, name) for kind in ("KafkaConnect", "KafkaUser"))
    spec = parse(demo_spec.spec(cluster.twin.place) | {"connect": SMALL})
    for client in clients(spec):
        if client.name == name:
            user.make(user_spec(spec, client, {}))
    yield resource
    resource.delete()
    user.delete()


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[Resource]:
    resource = Resource(cluster, "KafkaTopic", "tides")
    yield resource
    resource.delete()


def test_a_worker_is_ready_only_once_it_says_that_it_is_healthy(
    cluster: Cluster, workers: Resource
) -> None:
    spec = parse(demo_spec.spec(cluster.twin.place) | {"connect": SMALL})
    assert spec.connect is not None
    workers.make(connect_spec(spec, spec.connect))
    path = f"/api/v1/namespaces/{workers.namespace}/pods/{workers.name}-connect-0"

    def pod() -> dict[str, Any] | None:
        return find(cluster.twin.api, path)

    starting = cluster.until(
        lambda: (p := pod()) and p["status"].get("podIP") and p, "the worker's pod runs"
    )
    address = cluster.twin.place.socket_address(starting["status"]["podIP"])
    seen = []

    def healthy() -> bool:
        before = condition(pod())["status"]
        status, _ = get(address, 8083, "/health")
        seen.append((before, status))
        return status == 200

    cluster.until(healthy, "the worker says that it is healthy", START_SECONDS)
    # Nobody listens, then 404; 503 while it starts, 500 where its herder answers late (KIP-1017).
    # A worker that starts is not ready, and not restarted for it.
    assert {ready for ready, status in seen[:-1]} == {"False"}
    assert {status for _, status in seen[:-1]} <= {None, 404, 500, 503}

    cluster.until(lambda: condition(pod())["status"] == "True", "the pod is Ready")
    cluster.until(lambda: condition(workers.read()).get("status") == "True", "Connect is Ready")
    ready = pod()
    assert ready is not None
    assert ready["status"]["containerStatuses"][0]["restartCount"] == 0
    status, said = get(address, 8083, "/health")
    assert (status, json.loads(said)["status"]) == (200, "healthy")
    _, metrics = get(address, 9404, "/metrics")
    assert "kafka_connect_connect_worker_metrics_connector_count" in metrics
    assert "kafka_producer_" not in metrics
    asked_through_the_api_server(cluster, f"{workers.name}-connect-0")


def asked_through_the_api_server(cluster: Cluster, pod: str) -> None:
    """See λ health ask a worker's pod: refused without the right, by name and port with it."""
    with told_of_workers(cluster, 1):
        status, body = invoke(cluster)
        verdict = parts(body, PartKind.WORKER)[pod]
        assert (status, verdict["status"]) == (500, "unknown")
        assert "forbidden" in verdict["reason"]
        with allowed_to_ask(cluster, pod, CONNECT_REST_PORT):

            def healthy() -> tuple[int, Mapping[str, Any]] | None:
                found = invoke(cluster)
                return found if found[0] == 200 else None

            status, body = cluster.until(healthy, "λ health finds the worker healthy", 120)
    show(status, body)
    verdict = parts(body, PartKind.WORKER)[pod]
    assert "answered 200 healthy" in verdict["reason"]
    assert pod in parts(body, PartKind.POD)


def test_a_topic_of_the_description_is_made_grown_and_never_shrunk(
    cluster: Cluster, topic: Resource
) -> None:
    spec = parse(demo_spec.spec(cluster.twin.place))
    topic.make(topic_spec(spec, Topic(name="tides", partitions=2, config={"retention.ms": 60_000})))
    with cluster.admin() as kafka:
        cluster.until(lambda: condition(topic.read()).get("status") == "True", "it is Ready")
        (found,) = kafka.describe_topics(["tides"])
        assert [len(p["replica_nodes"]) for p in found["partitions"]] == [3, 3]

        path = f"{topic.folder}/tides"
        cluster.twin.api.merge(path, {"spec": {"partitions": 4}})
        cluster.until(
            lambda: len(kafka.describe_topics(["tides"])[0]["partitions"]) == 4, "it has grown"
        )
        cluster.twin.api.merge(path, {"spec": {"partitions": 1}})
        refused = cluster.until(
            lambda: (c := condition(topic.read())).get("reason") == "NotSupported" and c,
            "it is refused",
        )
        assert "Kafka never removes one" in refused["message"]
        topic.delete()
        cluster.until(lambda: "tides" not in kafka.list_topics(), "the topic is deleted")


def test_every_brokers_rack_is_the_zone_its_node_stands_in(cluster: Cluster) -> None:
    with cluster.admin() as kafka:
        racks = {b["broker_id"]: b["rack"] for b in kafka.describe_cluster()["brokers"]}
    zones = {id_: cluster.node_of(id_)["metadata"]["labels"][naming.ZONE_LABEL] for id_ in BROKERS}
    assert racks == zones
    assert len(set(racks.values())) == len(BROKERS)


def test_no_two_kafka_pods_share_a_node(cluster: Cluster) -> None:
    nodes = [pod["spec"]["nodeName"] for pod in cluster.pods().values()]
    assert len(nodes) == len(set(nodes))


def metrics(cluster: Cluster, node_id: int) -> set[str]:
    """Return the names of what a node's reporter tells of Kafka."""
    address = cluster.twin.place.socket_address(cluster.pods()[node_id]["status"]["podIP"])
    status, told = get(address, 9404, "/metrics")
    assert status == 200
    lines = (line for line in told.splitlines() if line.startswith("kafka_"))
    return {re.split(r"[{ ]", line, maxsplit=1)[0] for line in lines}


def test_a_broker_exposes_what_the_list_allows_and_nothing_else(cluster: Cluster) -> None:
    needed = set(NEEDED) - OF_CONTROLLERS - OF_RECOVERY
    # Some names come with the first byte that is replicated.
    with cluster.under_load():
        told = cluster.until(
            lambda: needed <= (names := metrics(cluster, min(BROKERS))) and names,
            "a broker tells of everything that is needed",
        )
    assert [name for name in sorted(told) if not allowed(name, KAFKA_ALLOW)] == []


def test_a_controller_exposes_what_the_list_allows_and_nothing_else(cluster: Cluster) -> None:
    needed = OF_CONTROLLERS | OF_BOTH
    told = cluster.until(
        lambda: needed <= (names := metrics(cluster, min(CONTROLLERS))) and names,
        "a controller tells of everything that is needed",
    )
    assert [name for name in sorted(told) if not allowed(name, KAFKA_ALLOW)] == []
