"""What is read of Karpenter: its claims page by page, and a node that it empties."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.adapters.kubernetes import CLAIMS_PATH, EksNodeClaims
from tests.unit.handlers.adapters.fake_api import node, reader

pytestmark = pytest.mark.usefixtures("signing")
LABELS = {"kafka": ("broker", "controller")}


def claim(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "labels": {"kafka": "broker"}},
        "status": {"providerID": f"aws:///us-east-1a/i-{name}"},
    }


def test_claims_come_from_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [{"items": [claim("a")]}, {"items": [claim("b")]}]
    fake = reader(monkeypatch, {CLAIMS_PATH: pages})
    found = EksNodeClaims(fake.nodes._api, LABELS).claims()
    assert [(each.name, each.instance_id, each.pool) for each in found] == [
        ("a", "i-a", "broker"),
        ("b", "i-b", "broker"),
    ]


@pytest.mark.parametrize(
    ("taint", "schedulable"),
    [("karpenter.sh/disrupted", False), ("stillwater.dev/dedicated", True)],
)
def test_a_node_that_karpenter_empties_takes_no_pod_though_it_is_not_cordoned(
    monkeypatch: pytest.MonkeyPatch, taint: str, schedulable: bool
) -> None:
    tainted = node("a", "i-1", taints=[{"key": taint, "effect": "NoSchedule"}])
    fake = reader(
        monkeypatch,
        {
            "/api/v1/nodes": [{"items": [tainted]}],
            "/apis/storage.k8s.io/v1/csinodes": [{"items": []}],
        },
    )
    (found,) = fake.nodes.nodes()
    assert found.schedulable is schedulable
