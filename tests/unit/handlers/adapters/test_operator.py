"""handlers.adapters.operator: what Strimzi rolls, and what its operator is told."""

from __future__ import annotations

from typing import Any

import pytest

from core.availability.drain_notice import DrainNotice
from tests.unit.handlers.adapters.fake_api import reader

pytestmark = pytest.mark.usefixtures("signing")

PATH = "/apis/coordination.k8s.io/v1/namespaces/kafka/leases/stillwater-orders"


def test_a_pod_set_names_the_revision_of_each_of_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    def pod(name: str, **annotations: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "annotations": annotations}}

    sets = [
        {"spec": {"pods": [pod("a-1", **{"strimzi.io/revision": "7f"}), pod("a-2")]}},
        {"spec": {"pods": [{"metadata": {"name": "b-3"}}]}},
    ]
    path = "/apis/core.strimzi.io/v1/namespaces/kafka/strimzipodsets"
    fake = reader(monkeypatch, {path: [{"items": sets}]})
    assert fake.nodes.wanted_revisions() == {"a-1": "7f"}
    assert fake.pool.asked[0][1]["labelSelector"] == ["strimzi.io/cluster=orders"]


def test_a_drain_is_written_into_the_lease_beside_the_kafka(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = reader(monkeypatch, {PATH: [{}, {}]})
    fake.nodes.tell_of_drain(DrainNotice(("i-0a",), 0.0, 1.0, "Kafka node 10 is taken out."))
    fake.nodes.tell_of_drain(None)
    (path, begun), (_, ended) = fake.pool.patched
    assert path == PATH
    assert begun["spec"]["holderIdentity"] == "i-0a"
    assert begun["metadata"]["annotations"] == {
        "stillwater.dev/reason": "Kafka node 10 is taken out."
    }
    assert ended["spec"]["holderIdentity"] is None
    assert ended["metadata"]["annotations"] == {"stillwater.dev/reason": None}
