"""cli.kafka_layer: when `up` ends, who goes before whom at the end, which volumes go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from cli.kafka_layer import (
    BEFORE_BROKERS,
    BINDINGS,
    VOLUMES,
    delete_init_bindings,
    delete_retained,
    let_brokers_go,
    retained_volumes,
    wait_until_settled,
)
from core.ground.errors import StillwaterError
from infra.eks.api import Api
from local.kubernetes.client import ApiError
from tests.unit.infra.programs import spec

KAFKAS = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
READY = {"type": "Ready", "status": "True"}
IGNORED = {
    "type": "Warning",
    "status": "True",
    "reason": "KafkaStorage",
    "message": "The desired Kafka storage configuration in the KafkaNodePool resource "
    "kafka/broker-a contains changes which are not allowed. As a result, all storage changes will "
    "be ignored.",
}
REVERTED = {
    "type": "Warning",
    "status": "True",
    "reason": "ScaleDownPreventionCheck",
    "message": "Reverting scale-down of KafkaNodePool broker-a by changing number of replicas to 2",
}


def pod(resource_revision: str = "b", ready: str = "True", **metadata: Any) -> dict[str, Any]:
    revisions = {"strimzi.io/revision": "a", "strimzi.io/resource-revision": resource_revision}
    return {
        "metadata": {
            "name": "orders-broker-a-10",
            "annotations": revisions,
            "labels": {"strimzi.io/pool-name": "broker-a"},
            **metadata,
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


class Cluster(Api):
    """An API server; `happens` changes it each time that somebody sleeps."""

    def __init__(self, *happens: Callable[[Cluster], None]) -> None:
        self.conditions: list[dict[str, Any]] = [READY]
        self.generation, self.observed = 2, 2
        self.pool_observed = True
        self.pods = [pod()]
        self.annotations: dict[str, str] = {}
        self.now = 0.0
        self._happens: Iterator[Callable[[Cluster], None]] = iter(happens)

    def get(self, path: str, **query: object) -> dict[str, Any]:
        metadata = {"name": "orders", "generation": self.generation}
        if path == f"{KAFKAS}/kafkas/orders":
            return {
                "metadata": {**metadata, "annotations": self.annotations},
                "status": {"conditions": self.conditions, "observedGeneration": self.observed},
            }
        assert query == {"labelSelector": "strimzi.io/cluster=orders"}
        if path == f"{KAFKAS}/kafkanodepools":
            pool = {"metadata": {"name": "broker-a", "generation": 5}}
            return {"items": [{**pool, "status": {"observedGeneration": 4 + self.pool_observed}}]}
        if path == "/api/v1/namespaces/kafka/pods":
            return {"items": self.pods}
        assert path == "/apis/core.strimzi.io/v1/namespaces/kafka/strimzipodsets"
        metadata = {"name": "orders-broker-a", "generation": 1}
        counted = {"observedGeneration": 1, "pods": 1, "currentPods": 1}
        return {"items": [{"metadata": metadata, "spec": {"pods": [pod()]}, "status": counted}]}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        happening = next(self._happens, None)
        if happening is not None:
            happening(self)

    def settle(self, limit_seconds: float = 1800.0, **options: Any) -> list[str]:
        said: list[str] = []
        options |= {"limit_seconds": limit_seconds, "clock": lambda: self.now, "sleep": self.sleep}
        wait_until_settled(self, spec(), said.append, **options)
        return said


def change(**to: Any) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.__dict__.update(to)


@pytest.mark.parametrize(
    "unfinished",
    [
        {"generation": 3},
        {"pool_observed": False},
        {"pods": [pod("old")]},
        {"pods": [pod(ready="False")]},
        {"pods": [pod(deletionTimestamp="2026-11-28T14:00:00Z")]},
        {"pods": []},
        {"conditions": [{"type": "NotReady", "status": "True", "reason": "FatalProblem"}]},
    ],
    ids=[
        *("the Kafka's generation", "a pool's generation", "a pod to be rolled", "an unready pod"),
        *("a pod that stops", "a pod that is gone", "not ready"),
    ],
)
def test_it_waits_while_the_operator_has_not_finished(unfinished: dict[str, Any]) -> None:
    finished = {key: getattr(Cluster(), key) for key in unfinished}
    cluster = Cluster(lambda _: None, change(**finished))
    change(**unfinished)(cluster)
    assert len(cluster.settle(quiet_seconds=0.0)) == 1
    assert cluster.now == 10.0


def test_a_roll_that_begins_after_the_pool_was_observed_is_waited_for() -> None:
    cluster = Cluster(change(pods=[]), lambda _: None, change(pods=[pod()]))
    cluster.settle(quiet_seconds=20.0)
    assert cluster.now == 15.0 + 20.0


def test_what_the_operator_never_finishes_is_said_at_the_limit() -> None:
    cluster = Cluster()
    cluster.pods = [pod("old")]
    with pytest.raises(
        StillwaterError, match="to restart pod orders-broker-a-10: its resources have changed"
    ):
        cluster.settle(limit_seconds=60.0)
    assert cluster.now == 60.0


@pytest.mark.parametrize(
    ("warning", "remedy"),
    [(IGNORED, "write the storage that its volumes have"), (REVERTED, "move the partitions off")],
)
def test_an_ignored_change_fails_in_strimzis_words(warning: dict[str, Any], remedy: str) -> None:
    cluster = Cluster(change(conditions=[warning, READY]))
    with pytest.raises(StillwaterError, match=remedy) as raised:
        cluster.settle(quiet_seconds=20.0)
    assert str(warning["message"]).rstrip(".") in str(raised.value)


def test_a_paused_kafka_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.annotations = {"strimzi.io/pause-reconciliation": "true"}
    with pytest.raises(StillwaterError, match="Kafka orders is paused"):
        cluster.settle()
    assert cluster.now == 0.0


def test_a_resource_that_the_operator_refuses_is_not_waited_for() -> None:
    refusal = {"type": "NotReady", "status": "True", "reason": "InvalidResourceException"}
    cluster = Cluster()
    cluster.conditions = [{**refusal, "message": "Broker ids 10 and 11 overlap"}]
    with pytest.raises(StillwaterError, match="Broker ids 10 and 11 overlap"):
        cluster.settle()
    assert cluster.now == 0.0


ROOT = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
PODS = "/api/v1/namespaces/kafka/pods"
POOLS = {"a": ["broker"], "b": ["broker"], "both": ["controller", "broker"], "c": ["controller"]}


class EndingCluster(Api):
    """An API server; a deleted pool's pod is still seen `stopping` more times."""

    def __init__(self, *, stopping: int = 0, hangs: str = "") -> None:
        self.objects: dict[str, dict[str, Any]] = {
            f"{ROOT}/{plural}/one": {"metadata": {"name": "one"}} for plural in BEFORE_BROKERS
        }
        for name, roles in POOLS.items():
            pool = {"metadata": {"name": name}, "spec": {"roles": roles}}
            self.objects[f"{ROOT}/kafkanodepools/{name}"] = pool
        self.deleted: list[str] = []
        self.stopping = stopping
        self.hangs = hangs

    def get(self, path: str, **query: object) -> dict[str, Any]:
        if path == PODS:
            assert query == {
                "labelSelector": "strimzi.io/broker-role=true,strimzi.io/controller-role!=true"
            }
            return {"items": self._brokers()}
        if path.endswith("/kafkausers"):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return {"items": [o for p, o in self.objects.items() if p.startswith(f"{path}/")]}

    def _brokers(self) -> list[dict[str, Any]]:
        self.stopping -= 1
        pods = [{"metadata": {"name": f"kafka-{n}"}} for n, r in POOLS.items() if r == ["broker"]]
        return pods if self.stopping >= 0 else []

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        assert body == {"propagationPolicy": "Background"}
        self.deleted.append(path.removeprefix(f"{ROOT}/"))
        if not self.hangs or self.hangs not in path:
            del self.objects[path]
        return {}

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"nothing is changed: {path} {body}")


def test_what_needs_kafka_goes_first_then_kafka_then_the_pools_of_brokers_alone() -> None:
    cluster = EndingCluster()
    let_brokers_go(cluster, "kafka")
    assert cluster.deleted == [
        "kafkaconnectors/one",
        "kafkaconnects/one",
        "kafkatopics/one",
        "kafkas/one",
        "kafkanodepools/a",
        "kafkanodepools/b",
    ]


def test_it_is_not_over_before_the_brokers_pods_are_gone() -> None:
    cluster = EndingCluster(stopping=2)
    let_brokers_go(cluster, "kafka")
    assert cluster.stopping < 0


@pytest.mark.parametrize(
    ("cluster", "named"),
    [
        pytest.param(EndingCluster(hangs="kafkatopics"), "one did not go", id="a finalizer"),
        pytest.param(
            EndingCluster(stopping=10), "kafka-a, kafka-b did not go", id="brokers that hang"
        ),
    ],
)
def test_what_does_not_go_is_named(cluster: EndingCluster, named: str) -> None:
    with pytest.raises(StillwaterError, match=named):
        let_brokers_go(cluster, "kafka", limit_seconds=0)


def test_nothing_there_is_nothing_to_do() -> None:
    cluster = EndingCluster()
    cluster.objects.clear()
    let_brokers_go(cluster, "kafka")
    assert cluster.deleted == []


class Bindings(EndingCluster):
    """An API server with ClusterRoleBindings of Strimzi's, of several namespaces."""

    def __init__(self, **namespaces: str) -> None:
        super().__init__()
        self.objects = {
            f"{BINDINGS}/{name}": {"metadata": {"name": name}, "subjects": [{"namespace": each}]}
            for name, each in namespaces.items()
        }

    def get(self, path: str, **query: object) -> dict[str, Any]:
        selector = {"labelSelector": "app.kubernetes.io/managed-by=strimzi-cluster-operator"}
        assert (path, query) == (BINDINGS, selector)
        return {"items": list(self.objects.values())}


def test_the_bindings_that_an_absent_operator_leaves_behind_go() -> None:
    cluster = Bindings(ours="kafka", theirs="payments")
    delete_init_bindings(cluster, "kafka")
    assert cluster.deleted == [f"{BINDINGS}/ours"]


def volume(
    name: str, *, phase: str = "Released", namespace: str = "kafka", driver: str = "ebs.csi.aws.com"
) -> dict[str, Any]:
    spec = {
        "csi": {"driver": driver},
        "claimRef": {"namespace": namespace},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


class VolumesLeft(Api):
    """An API server whose EBS driver deletes what it may, or hangs."""

    def __init__(self, *volumes: dict[str, Any], hangs: bool = False) -> None:
        self.volumes = {v["metadata"]["name"]: v for v in volumes}
        self.hangs = hangs

    def get(self, path: str) -> dict[str, Any]:
        assert path == VOLUMES
        return {"items": list(self.volumes.values())}

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        self.volumes[name]["spec"] |= body["spec"]
        policy = self.volumes[name]["spec"]["persistentVolumeReclaimPolicy"]
        if policy == "Delete" and not self.hangs:
            del self.volumes[name]
        return {}


@pytest.mark.parametrize(
    "kept",
    [
        volume("in-use", phase="Bound"),
        volume("of-others", namespace="billing"),
        volume("no-ebs", driver="efs.csi.aws.com"),
        {**volume("no-csi"), "spec": {"hostPath": {"path": "/x"}}},
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_only_ebs_volumes_that_this_kafkas_claims_left_are_deleted(kept: dict[str, Any]) -> None:
    cluster = VolumesLeft(volume("left"), kept)
    assert retained_volumes(list(cluster.volumes.values()), "kafka") == ("left",)
    assert delete_retained(cluster, "kafka") == ("left",)
    assert list(cluster.volumes) == [kept["metadata"]["name"]]


def test_a_driver_that_does_not_delete_is_named_with_the_volume() -> None:
    cluster = VolumesLeft(volume("left"), hangs=True)
    with pytest.raises(StillwaterError, match=r"has not deleted left within 0 s"):
        delete_retained(cluster, "kafka", limit_seconds=0)
