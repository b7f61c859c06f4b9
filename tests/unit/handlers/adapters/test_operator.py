"""handlers.adapters.operator: what Strimzi rolls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.handlers.adapters.fake_api import reader

pytestmark = pytest.mark.usefixtures("signing")


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
