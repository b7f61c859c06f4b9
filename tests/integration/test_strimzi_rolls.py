"""The twin's Strimzi rolls a real Kafka: by which causes, in which order, and what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from core import naming
from local.demo import spec as demo_spec
from local.kubernetes.strimzi_rolling import is_stuck, mark
from tests.integration.cluster import BROKERS, Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
STRIMZI = "/apis/kafka.strimzi.io/v1"
POD_SETS = "/apis/core.strimzi.io/v1"
ROLL_SECONDS = 300.0
SETTLED_SECONDS = 1.0

NOTHING: Mapping[str, Any] = {"metadata": {}}
# Kafka reads it when it starts.
FIXED = "group.initial.rebalance.delay.ms"


@dataclass
class Roll:
    """What was seen from a change until the operator had done with it."""

    restarted: list[int]
    # Of the Kafka, while a pod was being restarted: its conditions, and if its generation was old.
    said: set[tuple[tuple[str, ...], bool]] = field(default_factory=set)
    fewest_current: Mapping[str, int] = field(default_factory=dict)


class Resources:
    """Strimzi's resources of the shared cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.api = cluster, cluster.twin.api
        self.space = f"namespaces/{cluster.outputs['namespace']}"
        self.kafka_path = f"{STRIMZI}/{self.space}/kafkas/{demo_spec.CLUSTER}"

    def pool_path(self, pool: str) -> str:
        return f"{STRIMZI}/{self.space}/kafkanodepools/{pool}"

    def pod_set_path(self, pool: str) -> str:
        return f"{POD_SETS}/{self.space}/strimzipodsets/{demo_spec.CLUSTER}-{pool}"

    def kafka(self) -> dict[str, Any]:
        return self.api.get(self.kafka_path)

    def conditions(self) -> dict[str, dict[str, Any]]:
        return {c["type"]: c for c in self.kafka()["status"]["conditions"]}

    def pod_sets(self) -> list[dict[str, Any]]:
        selector = f"{naming.CLUSTER_LABEL}={demo_spec.CLUSTER},{naming.KIND_LABEL}=Kafka"
        listed = self.api.get(f"{POD_SETS}/{self.space}/strimzipodsets", labelSelector=selector)
        return list(listed["items"])

    def configure(self, value: int | None) -> None:
        self.api.merge(self.kafka_path, {"spec": {"kafka": {"config": {FIXED: value}}}})

    def pause(self, value: str | None) -> None:
        annotations = {"strimzi.io/pause-reconciliation": value}
        self.api.merge(self.kafka_path, {"metadata": {"annotations": annotations}})

    def follow(self, change: Callable[[], object], pods: int) -> Roll:
        """Make a change, and watch until the operator has restarted so many pods for it."""
        began = time.time()
        current: dict[str, int] = {}
        said: set[tuple[tuple[str, ...], bool]] = set()
        change()

        def rolled() -> list[int]:
            names = [f["pod"] for f in self.cluster.facts("pod_rolled") if f["at"] >= began]
            return [naming.node_id_of_pod(name) or 0 for name in names]

        def look() -> bool:
            kafka = self.kafka()
            status = kafka["status"]
            is_old = status["observedGeneration"] < kafka["metadata"]["generation"]
            for each in self.pod_sets():
                name, count = each["metadata"]["name"], each["status"]["currentPods"]
                current[name] = min(count, current.get(name, count))
            away = [pod for pod in self.cluster.pods().values() if not _is_ready(pod)]
            assert len(away) <= 1, "two pods were away at once"
            if away:
                said.add((tuple(c["type"] for c in status["conditions"]), is_old))
            return len(rolled()) >= pods and not away and not is_old

        self.cluster.until(look, f"{pods} pods were restarted", ROLL_SECONDS)
        time.sleep(SETTLED_SECONDS)  # long enough for the next one to be told, were there one
        return Roll(rolled(), said, current)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


@pytest.fixture
def resources(cluster: Cluster) -> Iterator[Resources]:
    yield Resources(cluster)
    cluster.settle()


@pytest.fixture
def configured(resources: Resources) -> Iterator[Resources]:
    """The same, with the broker's configuration as it was once a test is over."""
    yield resources
    resources.follow(lambda: resources.configure(None), len(BROKERS))


def test_a_brokers_setting_restarts_brokers_alone_while_the_kafka_says_ready(
    cluster: Cluster, configured: Resources
) -> None:
    revisions = {
        name: mark(pod, naming.REVISION_ANNOTATION) for name, pod in cluster.pods().items()
    }
    with cluster.under_load() as load:
        roll = configured.follow(lambda: configured.configure(100), len(BROKERS))
        summary = load.finish()
    assert sorted(roll.restarted) == sorted(BROKERS)
    assert roll.said == {(("Ready",), True)}
    assert (summary["lost"], summary["client_errors"]) == (0, 0), summary
    after = {name: mark(pod, naming.REVISION_ANNOTATION) for name, pod in cluster.pods().items()}
    assert after == revisions, "a revision tells of it"
    assert set(roll.fewest_current.values()) <= {0, 1}


def test_resources_of_a_pool_restart_its_pods_and_show_on_their_pod_set_alone(
    resources: Resources,
) -> None:
    path = resources.pool_path("broker-b")
    requests = resources.api.get(path)["spec"]["resources"]["requests"]

    def ask(cpu: str) -> None:
        resources.api.merge(path, {"spec": {"resources": {"requests": {"cpu": cpu}}}})

    generation = resources.kafka()["metadata"]["generation"]
    roll = resources.follow(lambda: ask("110m"), 1)
    try:
        assert roll.restarted == [20]
        assert roll.said == {(("Ready",), False)}
        assert roll.fewest_current[f"{demo_spec.CLUSTER}-broker-b"] == 0
        assert roll.fewest_current[f"{demo_spec.CLUSTER}-broker-a"] == 1
        assert resources.kafka()["metadata"]["generation"] == generation
    finally:
        resources.follow(lambda: ask(requests["cpu"]), 1)


def test_an_annotated_pod_set_restarts_its_pods_and_loses_its_annotation(
    resources: Resources,
) -> None:
    path = resources.pod_set_path("broker-c")
    asked = {"metadata": {"annotations": {naming.ROLL_ANNOTATION: "true"}}}
    roll = resources.follow(lambda: resources.api.merge(path, asked), 1)
    assert roll.restarted == [30]
    resources.cluster.until(
        lambda: mark(resources.api.get(path), naming.ROLL_ANNOTATION) is None,
        "the annotation is taken away",
    )


def test_a_pod_without_a_node_makes_the_kafka_not_ready_until_it_has_one(
    cluster: Cluster, resources: Resources
) -> None:
    pod = cluster.pods()[30]
    node = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    name = pod["metadata"]["name"]
    cluster.twin.api.merge(node, {"spec": {"unschedulable": True}})
    # A pass that has begun would wait for the pod; the one that comes next finds it pending.
    resources.pause("true")
    try:
        cluster.until(lambda: "ReconciliationPaused" in resources.conditions(), "it is paused")
        cluster.twin.api.delete(f"/api/v1/{resources.space}/pods/{name}")
        cluster.until(lambda: is_stuck(cluster.pods().get(30, NOTHING)), "the pod is pending")
        resources.pause(None)
        failed = cluster.until(lambda: resources.conditions().get("NotReady"), "it says NotReady")
        assert failed["reason"] == "FatalProblem"
        assert failed["message"] == "Pod is unschedulable or is not starting"
        assert "Ready" not in resources.conditions()
    finally:
        resources.pause(None)
        cluster.twin.api.merge(node, {"spec": {"unschedulable": None}})
    cluster.until(lambda: "Ready" in resources.conditions(), "it is Ready again")
