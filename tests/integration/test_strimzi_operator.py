"""The twin's Strimzi stand-in on a real API server; a test's patch plays the kubelet."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from local import environment
from local.journal import read as read_journal
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError
from local.place import Place, claimed
from local.processes import Processes
from local.tools import build, tool_path

pytestmark = pytest.mark.integration
T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[2]
STRIMZI = "/apis/kafka.strimzi.io/v1"
ZONES = ("a", "b", "c")


class World:
    """A control plane with the operator running on it."""

    def __init__(self, place: Place, processes: Processes, api: Api) -> None:
        self.place, self.processes, self.api = place, processes, api
        self.operator = processes.start(
            "strimzi",
            [sys.executable, "-m", "local.kubernetes.strimzi"],
            environment=environment.base(place),
            directory=REPOSITORY,
        )

    def eventually(self, what: str, look: Callable[[], T | None], within_seconds: float = 20) -> T:
        """Return the first true answer of `look`."""
        until = time.monotonic() + within_seconds
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(
                    f"not within {within_seconds} s: {what}\n{self.operator.tail()}"
                )
            time.sleep(0.05)

    def pods(self, namespace: str) -> dict[str, dict[str, Any]]:
        listed = self.api.get(f"/api/v1/namespaces/{namespace}/pods")
        return {pod["metadata"]["name"]: pod for pod in listed["items"]}

    def make_ready(self, namespace: str, name: str) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": None}
        self.api.strategic(
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            {"status": {"phase": "Running", "conditions": [condition]}},
        )

    def ready(self, namespace: str) -> dict[str, Any]:
        kafka = self.api.get(f"{STRIMZI}/namespaces/{namespace}/kafkas/coban")
        conditions = (kafka.get("status") or {}).get("conditions") or []
        return next((dict(c) for c in conditions if c["type"] == "Ready"), {})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    build.build_all()
    with claimed() as claim:
        place = Place(claim.number, tmp_path_factory.mktemp("strimzi"))
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            tools = {name: tool_path(name) for name in build.BINARIES}
            plane = control_plane.start(processes, place, tools)
            yield World(place, processes, plane.api)
        finally:
            processes.close()


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
                "volumes": [{"id": 0, "type": "persistent-claim", "size": "1Gi", "class": "gp3"}],
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


PODS = {"coban-broker-a-10", "coban-broker-b-20", "coban-broker-c-30", "coban-controller-a-0"}


@pytest.fixture(scope="module")
def running(world: World) -> str:
    """A namespace with a cluster all of whose pods exist and are ready."""
    provision(world, "running", kafka("running"))
    world.eventually("four pods", lambda: set(world.pods("running")) == PODS)
    assert world.ready("running")["status"] == "False"
    for name in PODS:
        world.make_ready("running", name)
    world.eventually("Ready", lambda: world.ready("running").get("status") == "True")
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
    world.eventually("Ready again", lambda: world.ready(running).get("status") == "True")
    made = [e for e in read_journal(world.place) if e["event"] == "pod_created"]
    assert [e["node_id"] for e in made].count(10) == 2


def test_a_changed_setting_restarts_one_pod_at_a_time(world: World, running: str) -> None:
    world.eventually("Ready", lambda: world.ready(running).get("status") == "True")
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods(running).items()}
    world.api.merge(
        f"{STRIMZI}/namespaces/{running}/kafkas/coban",
        {"spec": {"kafka": {"config": {"min.insync.replicas": 2}}}},
    )
    for count in range(1, len(PODS) + 1):

        def replaced(wanted: int = count) -> set[str] | None:
            now = {name: pod["metadata"]["uid"] for name, pod in world.pods(running).items()}
            changed = {name for name, uid in now.items() if uid != before[name]}
            assert len(changed) <= wanted, "two pods were restarted at once"
            return changed if len(now) == len(PODS) and len(changed) == wanted else None

        for name in world.eventually(f"{count} pods restarted", replaced):
            world.make_ready(running, name)
    world.eventually("Ready", lambda: world.ready(running).get("status") == "True")


def test_what_it_cannot_run_is_said_in_the_status(world: World) -> None:
    resource = copy.deepcopy(kafka("refused"))
    resource["spec"]["kafka"]["listeners"][0]["tls"] = True
    provision(world, "refused", resource)
    said = world.eventually("a condition", lambda: world.ready("refused"))
    assert (said["status"], said["reason"]) == ("False", "InvalidResource")
    assert "listener nlb asks for TLS" in said["message"]
    assert world.pods("refused") == {}


def test_sigterm_ends_the_operator_at_once(world: World, running: str) -> None:
    started = time.monotonic()
    world.processes.stop(world.operator, grace_seconds=5)
    assert world.operator.popen.returncode == 0
    assert time.monotonic() - started < 3
