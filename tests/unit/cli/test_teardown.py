"""cli.kafka_layer: who goes before whom when an environment ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cli.kafka_layer import BEFORE_BROKERS, BINDINGS, delete_init_bindings, let_brokers_go
from core.ground.errors import StillwaterError
from infra.eks.api import Api
from local.kubernetes.client import ApiError

ROOT = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
PODS = "/api/v1/namespaces/kafka/pods"
POOLS = {"a": ["broker"], "b": ["broker"], "both": ["controller", "broker"], "c": ["controller"]}


class Cluster(Api):
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
    cluster = Cluster()
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
    cluster = Cluster(stopping=2)
    let_brokers_go(cluster, "kafka")
    assert cluster.stopping < 0


@pytest.mark.parametrize(
    ("cluster", "named"),
    [
        pytest.param(Cluster(hangs="kafkatopics"), "one did not go", id="a finalizer"),
        pytest.param(Cluster(stopping=10), "kafka-a, kafka-b did not go", id="brokers that hang"),
    ],
)
def test_what_does_not_go_is_named(cluster: Cluster, named: str) -> None:
    with pytest.raises(StillwaterError, match=named):
        let_brokers_go(cluster, "kafka", limit_seconds=0)


def test_nothing_there_is_nothing_to_do() -> None:
    cluster = Cluster()
    cluster.objects.clear()
    let_brokers_go(cluster, "kafka")
    assert cluster.deleted == []


class Bindings(Cluster):
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
