"""The twin's Strimzi stand-in on a real API server; a test's patch plays the kubelet."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from local.journal import read as read_journal
from local.kubernetes.client import ApiError
from local.twin import Twin
from tests.integration.waiting import until

pytestmark = pytest.mark.integration
T = TypeVar("T")
STRIMZI = "/apis/kafka.strimzi.io/v1"
ZONES = ("a", "b", "c")


class World:
    """The shared twin with its operator; nothing can schedule these pods, so a patch runs them."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.api = twin, twin.api

    def eventually(self, what: str, look: Callable[[], T | None]) -> T:
        """Return the first true answer of `look`."""
        return until(look, what, alive=self.twin.check_alive)

    def pods(self, namespace: str) -> dict[str, dict[str, Any]]:
        listed = self.api.get(f"/api/v1/namespaces/{namespace}/pods")
        return {pod["metadata"]["name"]: pod for pod in listed["items"]}

    def make_ready(self, namespace: str, name: str) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": None}
        self.api.strategic(
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            {"status": {"phase": "Running", "conditions": [condition]}},
        )

    def condition(self, namespace: str, kind: str) -> dict[str, Any]:
        kafka = self.api.get(f"{STRIMZI}/namespaces/{namespace}/kafkas/coban")
        conditions = (kafka.get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == kind), {})

    def ready(self, namespace: str) -> bool:
        return bool(self.condition(namespace, "Ready"))


@pytest.fixture(scope="module")
def world(twin: Twin) -> Iterator[World]:
    yield World(twin)
    for namespace in ("running", "refused"):
        kafkas = f"{STRIMZI}/namespaces/{namespace}/kafkas/coban"
        with contextlib.suppress(ApiError):
            twin.api.delete(kafkas)
            pools = f"{STRIMZI}/namespaces/{namespace}/kafkanodepools"
            twin.api.delete(pools)
            twin.api.delete(f"/api/v1/namespaces/{namespace}")


def kafka(namespace: str, **spec: Any) -> dict[str, Any]:
    listener = {
        "name": "nlb",
        "port": 9094,
        "type": "cluster-ip",
        "tls": False,
        "configuration": {
            "advertisedHostTemplate": "kafka.example.internal",
            "advertisedPortTemplate": "10000 + {nodeId}",
        },
    }
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "metadata": {"name": "coban", "namespace": namespace},
        "spec": {"kafka": {"version": "4.2.0", "listeners": [listener], "config": {}, **spec}},
    }


def pool(namespace: str, zone: str, role: str, first: int) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaNodePool",
        "metadata": {
            "name": f"{role}-{zone}",
            "namespace": namespace,
            "labels": {"strimzi.io/cluster": "coban"},
            "annotations": {"strimzi.io/next-node-ids": f"[{first}-{first + 9}]"},
        },
        "spec": {
            "replicas": 1,
            "roles": [role],
            "storage": {
                "type": "jbod",
                "volumes": [{"id": 0, "type": "persistent-claim", "size": "1Gi", "class": "none"}],
            },
        },
    }


def provision(world: World, namespace: str, resource: dict[str, Any]) -> None:
    """Make a namespace, three broker pools, one controller pool, and last the Kafka."""
    world.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    world.eventually(
        "Strimzi's kinds are served", lambda: _served(world, f"{STRIMZI}/kafkanodepools")
    )
    pools = [pool(namespace, zone, "broker", 10 * n) for n, zone in enumerate(ZONES, 1)]
    for one in [*pools, pool(namespace, "a", "controller", 0)]:
        world.api.post(f"{STRIMZI}/namespaces/{namespace}/kafkanodepools", one)
    world.api.post(f"{STRIMZI}/namespaces/{namespace}/kafkas", resource)


def _served(world: World, path: str) -> bool:
    try:
        world.api.get(path)
    except ApiError:
        return False
    return True


def made(world: World, pod: str) -> int:
    """Return how often the operator has made a pod."""
    facts = read_journal(world.twin.place)
    return sum(f["event"] == "pod_created" and f["pod"] == pod for f in facts)


PODS = {"coban-broker-a-10", "coban-broker-b-20", "coban-broker-c-30", "coban-controller-a-0"}


@pytest.fixture(scope="module")
def running(world: World) -> str:
    """A namespace with a cluster all of whose pods exist and are ready."""
    provision(world, "running", kafka("running"))
    world.eventually("four pods", lambda: set(world.pods("running")) == PODS)
    assert world.condition("running", "NotReady")["status"] == "True"
    for name in PODS:
        world.make_ready("running", name)
    world.eventually("Ready", lambda: world.ready("running"))
    return "running"


def test_a_kafka_becomes_the_objects_that_others_find_by_name(world: World, running: str) -> None:
    def names(kind: str, group: str = "/api/v1") -> set[str]:
        listed = world.api.get(f"{group}/namespaces/{running}/{kind}")
        return {item["metadata"]["name"] for item in listed["items"]}

    assert names("services") == {
        "coban-kafka-brokers",
        "coban-kafka-bootstrap",
        "coban-kafka-nlb-bootstrap",
        "coban-broker-a-nlb-10",
        "coban-broker-b-nlb-20",
        "coban-broker-c-nlb-30",
    }
    assert names("persistentvolumeclaims") == {f"data-0-{name}" for name in PODS}
    assert names("configmaps") >= PODS
    assert names("poddisruptionbudgets", "/apis/policy/v1") == {"coban-kafka"}


def test_statuses_hold_the_cluster_id_and_the_node_ids(world: World, running: str) -> None:
    status = world.api.get(f"{STRIMZI}/namespaces/{running}/kafkas/coban")["status"]
    path = f"{STRIMZI}/namespaces/{running}/kafkanodepools/broker-b"
    pool_status = world.api.get(path)["status"]
    assert len(status["clusterId"]) == 22
    assert pool_status["nodeIds"] == [20]
    config = world.api.get(f"/api/v1/namespaces/{running}/configmaps/coban-broker-b-20")["data"]
    assert config["cluster.id"] == status["clusterId"]


def test_the_budget_lets_one_pod_go_and_the_operator_brings_it_back(
    world: World, running: str
) -> None:
    def evict(name: str) -> int:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": running},
        }
        try:
            world.api.post(f"/api/v1/namespaces/{running}/pods/{name}/eviction", body)
        except ApiError as error:
            return error.status
        return 201

    budget = f"/apis/policy/v1/namespaces/{running}/poddisruptionbudgets/coban-kafka"
    world.eventually(
        "one disruption allowed",
        lambda: (world.api.get(budget).get("status") or {}).get("disruptionsAllowed") == 1,
    )
    before = world.pods(running)["coban-broker-a-10"]["metadata"]["uid"]
    made_before = made(world, "coban-broker-a-10")
    assert evict("coban-broker-a-10") == 201

    def another() -> dict[str, Any] | None:
        pod = world.pods(running).get("coban-broker-a-10")
        return pod if pod and pod["metadata"]["uid"] != before else None

    back = world.eventually("the pod is back", another)
    assert back["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == (
        "data-0-coban-broker-a-10"
    )
    assert evict("coban-broker-b-20") == 429
    world.make_ready(running, "coban-broker-a-10")
    world.eventually("Ready again", lambda: world.ready(running))
    assert made(world, "coban-broker-a-10") == made_before + 1


def test_a_paused_kafka_gets_its_pods_back_and_nothing_else(world: World, running: str) -> None:
    world.eventually("Ready", lambda: world.ready(running))
    path, name = f"{STRIMZI}/namespaces/{running}/kafkas/coban", "coban-broker-c-30"
    config = f"/api/v1/namespaces/{running}/configmaps/{name}"
    before = world.pods(running)[name]["metadata"]["uid"]

    def pause(value: str | None) -> None:
        annotations = {"strimzi.io/pause-reconciliation": value}
        world.api.merge(path, {"metadata": {"annotations": annotations}})

    def another() -> bool:
        pod = world.pods(running).get(name)
        return pod is not None and pod["metadata"]["uid"] != before

    pause("true")
    try:
        # A pass that has begun is not paused, and would wait for the pod.
        world.eventually("it is paused", lambda: world.condition(running, "ReconciliationPaused"))
        world.api.delete(config)
        world.api.delete(f"/api/v1/namespaces/{running}/pods/{name}")
        world.eventually("the pod is back", another)
        assert not _served(world, config)
    finally:
        pause(None)
    world.make_ready(running, name)
    world.eventually("Ready again", lambda: world.ready(running))


def test_what_it_cannot_run_is_said_in_the_status(world: World) -> None:
    resource = copy.deepcopy(kafka("refused"))
    resource["spec"]["kafka"]["listeners"][0]["authentication"] = {"type": "custom"}
    provision(world, "refused", resource)
    said = world.eventually(
        "its reason",
        lambda: (c := world.condition("refused", "NotReady")).get("reason") != "Creating" and c,
    )
    assert (said["status"], said["reason"]) == ("True", "InvalidResourceException")
    assert "listener nlb asks for authentication custom" in said["message"]
    assert world.pods("refused") == {}


def test_sigterm_ends_the_operator_at_once_and_its_successor_restarts_nothing(
    world: World, running: str
) -> None:
    world.eventually("Ready", lambda: world.ready(running))
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods(running).items()}
    (operator,) = [c for c in world.twin.processes.children if c.name == "strimzi"]
    world.twin.processes.stop(operator, grace_seconds=15)
    try:
        assert operator.popen.returncode == 0
        world.api.delete(f"/api/v1/namespaces/{running}/configmaps/coban-broker-a-10")
    finally:
        world.twin.start_program("strimzi", "local.kubernetes.strimzi")
    config = f"/api/v1/namespaces/{running}/configmaps/coban-broker-a-10"
    world.eventually("the successor has looked at the cluster", lambda: _served(world, config))
    after = {name: pod["metadata"]["uid"] for name, pod in world.pods(running).items()}
    assert after == before
