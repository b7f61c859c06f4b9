"""handlers.adapters.claims: what Strimzi rolls."""

from __future__ import annotations

from typing import Any

import pytest

from core.availability.operator import KafkaConditions, OperatorView, PodSetView, Revisions
from tests.unit.handlers.adapters.fake_api import reader

pytestmark = pytest.mark.usefixtures("signing")


def test_what_the_operator_has_to_do_is_read_of_kafka_pools_and_pod_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pod(name: str, **annotations: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "annotations": annotations}}

    seen = {"observedGeneration": 1, "pods": 2, "currentPods": 1}
    pods = [pod("a-1", **{"strimzi.io/revision": "7f"}), pod("a-2")]
    item = {"metadata": {"name": "a", "generation": 2}, "spec": {"pods": pods}, "status": seen}
    behind = {"metadata": {"name": "pool", "generation": 1}}
    ready = {"type": "Ready", "status": "True"}
    strimzi = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
    fake = reader(
        monkeypatch,
        {
            "/apis/core.strimzi.io/v1/namespaces/kafka/strimzipodsets": [{"items": [item]}],
            f"{strimzi}/kafkanodepools": [{"items": [behind]}],
            f"{strimzi}/kafkas/orders": [
                {
                    "metadata": {"name": "orders", "generation": 1},
                    "status": {"observedGeneration": 1, "conditions": [ready]},
                }
            ],
        },
    )
    to_be = {"a-1": Revisions("7f"), "a-2": Revisions()}
    assert fake.nodes.operator() == OperatorView(
        kafka=KafkaConditions(ready=True, generation_observed=True),
        pod_sets=(PodSetView(name="a", pods=to_be, behind=True, outdated=1),),
        pools_behind=("pool",),
    )
    # The Kafka is read last: a change of broker configuration shows there alone.
    assert [path.rpartition("/")[2] for path, _ in fake.pool.asked][-1] == "orders"
    assert fake.pool.asked[0][1]["labelSelector"] == ["strimzi.io/cluster=orders"]
