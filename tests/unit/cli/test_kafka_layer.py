"""cli.kafka_layer: `up` ends when Strimzi's operator has carried Kafka's layer out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cli.kafka_layer import wait_until_settled
from core.ground.errors import StillwaterError
from infra.eks.api import Api
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


def test_a_kafka_that_is_as_it_is_to_be_is_not_waited_for() -> None:
    cluster = Cluster()
    assert cluster.settle(quiet_seconds=0.0) == []
    assert cluster.now == 0.0


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
def test_a_change_that_was_ignored_fails_with_strimzis_sentence_and_the_remedy(
    warning: dict[str, Any], remedy: str
) -> None:
    cluster = Cluster(change(conditions=[warning, READY]))
    with pytest.raises(StillwaterError, match=remedy) as raised:
        cluster.settle(quiet_seconds=20.0)
    assert str(warning["message"]).rstrip(".") in str(raised.value)


def test_advice_of_strimzis_fails_nothing() -> None:
    cluster = Cluster()
    advice = {"type": "Warning", "status": "True", "reason": "KafkaMetadataVersion"}
    cluster.conditions = [advice, READY]
    cluster.settle(quiet_seconds=0.0)


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
