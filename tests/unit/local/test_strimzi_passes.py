"""Passes of the twin's operator over one Kafka: what it restarts, and what it says meanwhile.

The API server is held in memory, pods are ready as soon as they are made, and brokers run with the
configuration that was there when they started.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.views import ClusterView, PartitionView, VoterView
from local.journal import Journal
from local.kafka.run import settings
from local.kubernetes import strimzi_roller
from local.kubernetes.client import Api, key_of
from local.kubernetes.strimzi import Operator, PodSetController
from local.kubernetes.strimzi_objects import STRIMZI, OperatorObjects
from local.kubernetes.strimzi_reconciliation import KafkaReconciler, Timing
from local.kubernetes.strimzi_roller import Roller
from tests.unit.local.described_kafka import KAFKA, POOLS
from tests.unit.local.held_objects import HeldObjects

NAMESPACE = "/namespaces/kafka"
CORE = f"/api/v1{NAMESPACE}"
SETS = f"/apis/core.strimzi.io/v1{NAMESPACE}/strimzipodsets"
PATH = f"{STRIMZI}{NAMESPACE}/kafkas/coban"
POOL_PATH = f"{STRIMZI}{NAMESPACE}/kafkanodepools"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
PENDING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}
DYNAMIC = "log.retention.ms"
FIXED = "group.initial.rebalance.delay.ms"
MANUAL = "strimzi.io/manual-rolling-update"


class World(HeldObjects):
    """A namespace with the demo's small Kafka, and what stands behind its pods."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Mapping[str, Any]] = []
        self.said: list[Any] = []  # the Kafka's status whenever a pod was made
        self.next_status: Mapping[str, Any] = READY
        self.partitions: tuple[PartitionView, ...] = ()
        self.running: dict[str, dict[str, str]] = {}
        self.altered: dict[str, Any] = {}
        self._uids = count()
        self._controller = PodSetController.__new__(PodSetController)
        self._controller._api = cast("Api", self)
        self._controller._journal = cast("Journal", self)
        timing = Timing(interval_seconds=1, operation_timeout_seconds=0)
        api = cast("Api", self)
        self.reconciler = KafkaReconciler(
            api, OperatorObjects(api), cast("Journal", self), timing, ("127.0.0.1", 1)
        )
        self.change(PATH, KAFKA)
        for pool in POOLS:
            labels = {"metadata": {"namespace": "kafka", "labels": {"strimzi.io/cluster": "coban"}}}
            self.change(f"{POOL_PATH}/{pool['metadata']['name']}", pool)
            self.change(f"{POOL_PATH}/{pool['metadata']['name']}", labels)

    def write(self, _source: str, event: str, **fields: object) -> None:
        """Stand for the journal."""
        self.facts.append({"event": event, **fields})

    def change(self, path: str, body: Mapping[str, Any]) -> None:
        super().merge(path, copy.deepcopy(body))

    def apply(self, path: str, body: Mapping[str, Any], field_manager: str = "") -> dict[str, Any]:
        applied = super().apply(path, body, field_manager)
        self._make_pods()
        return applied

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        gone = super().delete(path, body)
        self._make_pods()
        return gone

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        name = body["metadata"]["name"]
        self.said.append(copy.deepcopy(self.status))
        config = self.objects[f"{CORE}/configmaps/{name}"]["data"]["server.config"]
        self.running[name.rpartition("-")[2]] = settings(config)
        known = {"metadata": {"uid": f"uid-{next(self._uids)}"}, "status": self.next_status}
        self.change(f"{path}/{name}", known)
        return super().post(path, body)

    def _make_pods(self) -> None:
        pods = {key_of(p): p for k, p in self.objects.items() if k.startswith(f"{CORE}/pods/")}
        self._controller._pods = cast("Any", SimpleNamespace(objects=pods))
        for path, pod_set in list(self.objects.items()):
            if path.startswith(SETS):
                pod_set["metadata"].setdefault("uid", "uid-set")
                made = len(self.facts)
                self._controller._bring(pod_set)
                if len(self.facts) > made:
                    self._make_pods()
                    return

    @property
    def status(self) -> Any:
        return self.objects[PATH].get("status") or {}

    @property
    def conditions(self) -> list[tuple[str, str]]:
        return [(c["type"], c.get("reason", "")) for c in self.status["conditions"]]

    def reconcile(self) -> list[str]:
        """Make one pass; return the pods it restarted, in order."""
        before = len(self.facts)
        self.reconciler.reconcile(PATH, lambda: False)
        return [f["pod"] for f in self.facts[before:] if f["event"] == "pod_rolled"]

    def view(self) -> ClusterView:
        voters = (VoterView(0, 0.0),)
        return ClusterView(frozenset({10, 20}), frozenset(), voters, 0, self.partitions)

    @contextmanager
    def admin(self, *_: object) -> Iterator[World]:
        yield self

    def describe_configs(self, resources: list[Any], config_filter: str) -> Any:
        (about,) = resources
        assert config_filter == "all"
        found = {
            key: {"value": value, "config_source": "STATIC_BROKER_CONFIG", "read_only": True}
            for key, value in self.running[about.name].items()
        }
        for key, fixed in ((DYNAMIC, False), (FIXED, True)):
            default = {"value": "1", "config_source": "DEFAULT_CONFIG"}
            found[key] = {**found.get(key, default), "read_only": fixed}
        return {"broker": {about.name: found}}

    def alter_configs(self, resources: list[Any]) -> None:
        for about in resources:
            self.altered[about.name] = {key: value for key, (_, value) in about.configs.items()}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A Kafka that was made, and is Ready."""
    made = World()
    monkeypatch.setattr(Roller, "_view", lambda _: made.view())
    monkeypatch.setattr(strimzi_roller, "admin", made.admin)
    monkeypatch.setattr(strimzi_roller, "answers", lambda *_: True)
    monkeypatch.setattr(strimzi_roller, "BACKOFF_SECONDS", (0.0,))
    assert made.reconcile() == []
    assert made.conditions == [("Ready", "")]
    return made


def configure(world: World, **config: object) -> None:
    world.change(PATH, {"spec": {"kafka": {"config": config}}})


def test_a_first_pass_makes_pod_sets_and_says_what_it_made(world: World) -> None:
    sets = [each for path, each in world.objects.items() if path.startswith(SETS)]
    assert sorted(each["metadata"]["name"] for each in sets) == [
        *("coban-broker-a", "coban-broker-b", "coban-controller-a")
    ]
    assert {each["status"]["currentPods"] for each in sets} == {1}
    assert world.said[0]["conditions"][0]["reason"] == "Creating"
    assert world.status["listeners"][0]["bootstrapServers"] == (
        "coban-kafka-nlb-bootstrap.kafka.svc:9094"
    )
    (owner,) = world.objects[f"{CORE}/pods/coban-broker-a-10"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("StrimziPodSet", True)


def test_a_setting_that_cannot_change_at_run_time_restarts_brokers_alone(world: World) -> None:
    configure(world, **{FIXED: 9})
    assert world.reconcile() == ["coban-broker-a-10", "coban-broker-b-20"]
    for during in world.said[-2:]:
        assert [c["type"] for c in during["conditions"]] == ["Ready"]
        assert during["observedGeneration"] == 1
    assert world.status["observedGeneration"] == 2
    assert world.reconcile() == []


def test_a_setting_that_can_change_at_run_time_restarts_nothing(world: World) -> None:
    configure(world, **{DYNAMIC: 9})
    assert world.reconcile() == []
    assert world.altered == {"10": {DYNAMIC: "9"}, "20": {DYNAMIC: "9"}}


def test_resources_and_requests_by_hand_restart_their_pods(world: World) -> None:
    resources = {"requests": {"cpu": "1"}}
    world.change(f"{POOL_PATH}/broker-b", {"spec": {"resources": resources}})
    assert world.reconcile() == ["coban-broker-b-20"]
    for path in (f"{SETS}/coban-broker-a", f"{CORE}/pods/coban-controller-a-0"):
        world.change(path, {"metadata": {"annotations": {MANUAL: "true"}}})
    assert world.reconcile() == ["coban-controller-a-0", "coban-broker-a-10"]
    assert world.reconcile() == []


def test_a_pod_that_is_pending_fails_a_pass_at_once(world: World) -> None:
    world.next_status = PENDING
    world.delete(f"{CORE}/pods/coban-broker-a-10")
    configure(world, **{FIXED: 9})
    assert world.reconcile() == []
    assert world.conditions == [("NotReady", "FatalProblem")]
    assert world.status["observedGeneration"] == 2
    world.change(f"{CORE}/pods/coban-broker-a-10", {"status": {"phase": "Running", **READY}})
    world.next_status = READY
    assert world.reconcile() == ["coban-broker-a-10", "coban-broker-b-20"]
    assert world.conditions == [("Ready", "")]


def test_a_pending_pod_of_an_older_description_is_made_again_without_asking_kafka(
    world: World,
) -> None:
    world.next_status = PENDING
    world.delete(f"{CORE}/pods/coban-broker-a-10")
    world.next_status = READY
    world.partitions = (PartitionView("a", 0, 10, (10, 20, 30), (10, 20), 2),)
    world.change(f"{POOL_PATH}/broker-a", {"spec": {"jvmOptions": {"-Xmx": "1g"}}})
    assert world.reconcile() == ["coban-broker-a-10"]


def test_a_broker_that_kafka_needs_is_not_restarted(world: World) -> None:
    world.partitions = (PartitionView("a", 0, 10, (10, 20, 30), (10, 30), 2),)
    configure(world, **{FIXED: 9})
    assert world.reconcile() == ["coban-broker-b-20"]
    assert world.conditions == [("NotReady", "UnforceableProblem")]
    assert "a-0 has 2 replicas in sync" in world.status["conditions"][0]["message"]


def test_a_pod_that_never_becomes_ready_ends_a_pass_after_the_operation_timeout(
    world: World,
) -> None:
    world.next_status = {"phase": "Pending"}
    world.change(f"{POOL_PATH}/broker-a", {"spec": {"replicas": 2}})
    world.reconcile()
    assert world.conditions == [("NotReady", "FatalProblem")]
    assert "coban-broker-a-11 to become ready" in world.status["conditions"][0]["message"]


def volume(world: World, pool: str, **changed: object) -> None:
    spec = copy.deepcopy(world.objects[f"{POOL_PATH}/{pool}"]["spec"])
    spec["storage"]["volumes"][0] |= changed
    world.change(f"{POOL_PATH}/{pool}", {"spec": spec})


def test_after_a_smaller_volume_no_change_of_a_pools_storage_is_obeyed(world: World) -> None:
    claim = world.objects[f"{CORE}/persistentvolumeclaims/data-0-coban-broker-a-10"]
    volume(world, "broker-a", size="512Mi", volumeAttributesClass="fast")
    volume(world, "broker-b", size="2Gi")
    assert world.reconcile() == []
    assert world.conditions == [("Ready", ""), ("Warning", "KafkaStorage")]
    assert "kafka/broker-a contains changes" in world.status["conditions"][1]["message"]
    assert claim == world.objects[f"{CORE}/persistentvolumeclaims/data-0-coban-broker-a-10"]
    grown = world.objects[f"{CORE}/persistentvolumeclaims/data-0-coban-broker-b-20"]
    assert grown["spec"]["resources"]["requests"]["storage"] == "2Gi"
    volume(world, "broker-a", size="1Gi")
    world.reconcile()
    assert world.conditions == [("Ready", "")]


@pytest.mark.parametrize(("held", "kept"), [((10, 20), True), ((20,), False)])
def test_a_broker_that_holds_replicas_is_not_removed(
    world: World, held: tuple[int, ...], kept: bool
) -> None:
    world.partitions = (PartitionView("a", 0, held[0], held, held, 1),)
    world.change(f"{POOL_PATH}/broker-a", {"spec": {"replicas": 0}})
    world.reconcile()
    warned = ("Warning", "ScaleDownPreventionCheck") in world.conditions
    assert (f"{CORE}/pods/coban-broker-a-10" in world.objects, warned) == (kept, kept)


def test_a_paused_kafka_keeps_its_generation_and_gets_its_pods_back(world: World) -> None:
    pause = {"strimzi.io/pause-reconciliation": "true"}
    world.change(PATH, {"metadata": {"annotations": pause}})
    configure(world, **{FIXED: 9})
    assert world.reconcile() == []
    assert world.conditions == [("ReconciliationPaused", "")]
    assert world.status["observedGeneration"] == 1
    world.delete(f"{CORE}/pods/coban-broker-a-10")
    assert f"{CORE}/pods/coban-broker-a-10" in world.objects


def test_what_cannot_run_is_said_in_the_status(world: World) -> None:
    world.change(PATH, {"spec": {"kafka": {"version": "3.0.0"}}})
    world.reconcile()
    assert world.conditions == [("NotReady", "InvalidResourceException")]
    assert "Unsupported Kafka.spec.kafka.version" in world.status["conditions"][0]["message"]


def test_a_kafka_that_waits_for_a_pod_holds_up_no_other() -> None:
    passed, let_go = threading.Event(), threading.Event()

    def reconcile(path: str, _is_over: object) -> None:
        if path.endswith("slow"):
            let_go.wait(10)
        else:
            passed.set()

    operator = Operator.__new__(Operator)
    keys = [("kafka", "slow"), ("kafka", "quick")]
    operator._kafkas = cast("Any", SimpleNamespace(objects={key: {} for key in keys}))
    operator._wakes = {key: threading.Event() for key in keys}
    operator._stopped, operator._changed = threading.Event(), threading.Event()
    operator._interval_seconds = 10.0
    operator._reconciler = cast("Any", SimpleNamespace(reconcile=reconcile))
    threads = [threading.Thread(target=operator._run_kafka, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    assert passed.wait(10)
    assert ("kafka", "slow") in operator._wakes
    operator._stopped.set()
    let_go.set()
    for key in keys:
        operator._wake_kafka(key)
    for thread in threads:
        thread.join(10)
    assert operator._wakes == {}
