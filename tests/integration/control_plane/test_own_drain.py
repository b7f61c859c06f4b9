"""A drain of our own on the real API server: what is on a node, an eviction's refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from handlers.adapters.kubernetes import EksDrain
from tests.integration.administrator import namespace
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
NAMESPACE, NODE, POD = "drained", "drained.ec2.internal", "orders-broker-a-10"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
LABELS = {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"}


@pytest.fixture
def drain(plane: Plane) -> EksDrain:
    return EksDrain(plane.handlers_api(), NAMESPACE, "orders")


@pytest.fixture
def uid(plane: Plane) -> Iterator[str]:
    """A node, a Kafka pod on it and a budget that lets nobody go; the pod's uid."""
    api = plane.api
    with namespace(api, NAMESPACE):
        api.post("/api/v1/nodes", {"metadata": {"name": NODE}})
        spec = {"nodeName": NODE, "containers": [{"name": "kafka", "image": "kafka"}]}
        made = api.post(PODS, {"metadata": {"name": POD, "labels": LABELS}, "spec": spec})
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.merge(f"{PODS}/{POD}/status", {"status": status})
        budget = {"minAvailable": 1, "selector": {"matchLabels": LABELS}}
        api.post(BUDGETS, {"metadata": {"name": "orders"}, "spec": budget})
        until(lambda: _counted(plane), "the budget is counted")
        yield str(made["metadata"]["uid"])
    api.delete(f"/api/v1/nodes/{NODE}")


def _counted(plane: Plane) -> bool:
    status: dict[str, Any] = plane.api.get(f"{BUDGETS}/orders").get("status", {})
    return status.get("expectedPods") == 1


def test_a_refusal_is_heard_word_for_word_and_the_eviction_follows_once_it_is_gone(
    plane: Plane, drain: EksDrain, uid: str
) -> None:
    (pod,) = drain.pods_on(NODE)
    assert (pod.name, pod.uid, pod.kafka, pod.owned) == (POD, uid, True, False)

    refusal = drain.evict(NAMESPACE, POD, uid)
    assert refusal is not None
    assert "disruption budget" in refusal
    plane.api.delete(f"{BUDGETS}/orders")
    until(lambda: drain.evict(NAMESPACE, POD, uid) is None, "it is let go")
    until(lambda: all(each.stopping for each in drain.pods_on(NODE)), "it has been told to stop")
