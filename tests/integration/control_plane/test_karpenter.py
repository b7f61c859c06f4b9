"""Real Karpenter before the gate: what it writes down, what it is told, and in which order it goes.

Its own controllers on a real API server; kwok's nodes have no machines, and a stand-in says what
their kubelets would. One stage for all tests: each leaves three brokers that run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.incidents.nodeclaims import DEADLINE_ANNOTATION, DISRUPTED_TAINT
from core.incidents.record import State
from local.twin import Twin
from tests.integration import karpenter_kwok as kwok
from tests.integration.karpenter_kwok import Json
from tests.integration.karpenter_stage import Stage, pod_name, staged
from tests.unit.infra.programs import spec

pytestmark = pytest.mark.integration
BEHIND = "partition t-0 would keep 1 in-sync replicas"


@pytest.fixture(scope="module")
def stage(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Karpenter's, until the module's last test."""
    cluster = spec(node_provisioner="karpenter", eviction_gate={"image": "gate:1"})
    with staged(twin, tmp_path_factory.mktemp("karpenter"), cluster) as found:
        yield found


def conditions(claim: Json | None) -> dict[str, tuple[str, str]]:
    listed = (claim or {}).get("status", {}).get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in listed}


def taints(stage: Stage, node: str) -> set[str]:
    found = stage.api.get(f"{kwok.NODES}/{node}")["spec"].get("taints") or ()
    return {each["key"] for each in found}


def delete(stage: Stage, broker: int) -> Json:
    """Delete the NodeClaim of a broker's node, as a person does."""
    claim = stage.claim_of(broker)
    stage.api.delete(f"{kwok.CLAIMS}/{claim['metadata']['name']}")
    return claim


def test_a_deleted_claim_waits_for_its_successor_then_for_kafka(stage: Stage) -> None:
    stage.cluster.lagging = {20}
    claim = delete(stage, 10)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    # It asks before it has launched anything.
    stage.until(lambda: stage.answered(10, allowed=False), "Karpenter asks the gate")
    first = next(reason for _, user, reason in stage.answers if user.endswith(pod_name(10)))
    assert f"No other node of us-east-1a is ready to take {pod_name(10)}" in first
    stage.until(
        lambda: BEHIND in (stage.answered(10, allowed=False) or ""), "it is told what Kafka says"
    )
    held = stage.claim(name)
    assert held is not None
    assert conditions(held)["Drained"] == ("Unknown", "Draining")
    assert "DisruptionReason" not in conditions(held)
    assert DEADLINE_ANNOTATION not in held["metadata"]["annotations"]
    assert DISRUPTED_TAINT in taints(stage, node)
    assert stage.node_of(10) == node
    # Nobody but the gate and the incident says why: its events count pods.
    told = [e["message"] for e in stage.events() if e["involvedObject"].get("name") == node]
    assert "Failed to drain node, 1 pods are waiting to be evicted" in told
    assert not any("partition" in message for message in told)

    stage.cluster.lagging = set()
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert (incident.disruption, incident.forced_at) == ("untold", None)
    assert stage.runs(10)
    assert stage.node_of(10) == incident.replacement != node
    stage.until(lambda: stage.claim(name) is None, "its claim is gone")


def test_what_has_drifted_goes_after_its_successor_is_initialized(stage: Stage) -> None:
    claim = stage.claim_of(20)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    stage.kubelet.ready = False
    stage.change_pool(20, {"disruption": {"budgets": [{"nodes": "1"}]}})
    stage.change_pool(20, {"template": {"metadata": {"labels": {"generation": "two"}}}})
    asked_before = len(stage.answers)
    stage.until(lambda: len(stage.claims()) == 4, "Karpenter launches its successor")
    marked = stage.until(
        lambda: "DisruptionReason" in conditions(stage.claim(name)) and stage.claim(name),
        "it is marked",
    )
    assert conditions(marked)["DisruptionReason"] == ("True", "Drifted")
    assert DISRUPTED_TAINT in taints(stage, node)
    stage.until(lambda: stage.incident(claim), "the sweep opens its incident")
    # As long as the successor is not initialized, nothing is deleted and nobody asked.
    assert "deletionTimestamp" not in (stage.claim(name) or {})["metadata"]
    assert stage.answers[asked_before:] == []

    stage.kubelet.ready = True
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert incident.disruption == "drift"
    opened, *_ = incident.transitions
    assert opened.actor == "sweep"
    (told, *_) = [note.reason for note in incident.notes]
    assert "not initialized yet" in told
    assert stage.node_of(20) == incident.replacement
    stage.until(lambda: stage.claim(name) is None, "its claim is gone")


def test_an_expired_node_is_deleted_with_nothing_in_its_place(stage: Stage) -> None:
    stage.change_pool(30, {"template": {"spec": {"expireAfter": "15s"}}})
    stage.over(delete(stage, 30), State.RIDDEN_THROUGH)
    claim = stage.claim_of(30)
    stage.change_pool(30, {"template": {"spec": {"expireAfter": "Never"}}})
    asked_before = len(stage.answers)
    stage.until(
        lambda: stage.answered(30, allowed=False, since=asked_before), "Karpenter asks the gate"
    )
    first = next(r for _, user, r in stage.answers[asked_before:] if user.endswith(pod_name(30)))
    assert first.startswith("No other node of us-east-1c is ready")
    incident = stage.over(claim, State.RIDDEN_THROUGH)
    assert (incident.disruption, incident.forced_at) == ("expiry", None)
    assert stage.runs(30)
