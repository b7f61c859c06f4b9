"""The gate as a responder on the real API of Kubernetes 1.37, with no more rights than its own.

1.37.0 has no controller that makes Evictions of requests: the test writes what its types say the
controller writes.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import cluster as clusters
from core.cluster.operated import of_spec
from core.errors import StillwaterError
from core.gate.asked import GateAnswer, RemovalRequest
from core.gate.responding import API, PRIORITY, RESPONDER
from handlers.adapters import eks
from handlers.adapters.eks import EksApi
from handlers.eviction.responder import Responder
from infra.eks.api import ApiError
from infra.gate.definition import GATE as DEFINITION
from tests.next_kubernetes.conftest import GATE, GATE_GROUP, Server
from tests.unit.infra.programs import description

NAMESPACE = "kafka"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVICTIONS = f"/apis/{API}/namespaces/{NAMESPACE}/evictions"
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "eviction-gate.md"
SHOWN = re.compile(r"```yaml\n(apiVersion: admissionregistration.*?)```", re.DOTALL)
NOT_YET = GateAnswer(allowed=False, reason="Node 10 may not leave: not yet.")
EVICTOR = "imperative-eviction.k8s.io/evictor"


@dataclass
class Gate:
    """Answers as it is told."""

    answer: GateAnswer = NOT_YET
    asked: list[RemovalRequest] = field(default_factory=list)

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        del deadline
        self.asked.append(asked)
        return self.answer


@pytest.fixture(scope="session")
def kafka(server: Server) -> Server:
    """Kafka's namespace, the gate's own rights in it, and the policy that the how-to shows."""
    admin = server.admin
    admin.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    cluster = of_spec(clusters.parse(description(eviction_gate={"image": "example.com/gate:1.4"})))
    rules = [
        {"apiGroups": [rule.api_group], "resources": [*rule.resources], "verbs": [*rule.verbs]}
        for rule in DEFINITION.kubernetes(cluster).inside
    ]
    admin.post(f"{roles}/roles", {"metadata": {"name": "gate"}, "rules": rules})
    admin.post(
        f"{roles}/rolebindings",
        {
            "metadata": {"name": "gate"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gate"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GATE_GROUP}
            ],
        },
    )
    (shown,) = SHOWN.findall(HOW_TO.read_text())
    for item in yaml.safe_load_all(shown):
        plural = {"MutatingAdmissionPolicy": "policies"}.get(item["kind"], "policybindings")
        admin.post(f"/apis/admissionregistration.k8s.io/v1/mutatingadmission{plural}", item)
    return server


@pytest.fixture
def pod(kafka: Server) -> Iterator[dict[str, Any]]:
    """A broker's pod, as the policy has it."""
    deadline = time.monotonic() + 30
    while True:
        body = {
            "metadata": {"name": "orders-broker-a-10", "labels": {"strimzi.io/pool-name": "a"}},
            "spec": {"containers": [{"name": "kafka", "image": "kafka"}]},
        }
        made = kafka.admin.post(PODS, body)
        # A policy is in force some moments after it was made.
        if made["spec"].get("evictionResponders") or time.monotonic() > deadline:
            break
        _delete(kafka)
        time.sleep(0.5)
    yield made
    _delete(kafka)


def _delete(kafka: Server) -> None:
    kafka.admin.delete(f"{PODS}/orders-broker-a-10", gracePeriodSeconds=0)


@pytest.fixture
def responder(kafka: Server, monkeypatch: pytest.MonkeyPatch) -> Responder:
    monkeypatch.setattr(eks, "eks_token", lambda *_: GATE)
    api = EksApi(
        endpoint=kafka.endpoint, ca_pem=kafka.ca_pem, eks_cluster="orders", region="us-east-1"
    )
    return Responder(api, Gate(), NAMESPACE)


@pytest.fixture
def eviction(kafka: Server, pod: dict[str, Any]) -> Iterator[str]:
    """An Eviction in which it is the gate's turn; yields its path."""
    reference = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    kafka.admin.post(
        EVICTIONS, {"metadata": {"name": "e-1"}, "spec": {"target": {"pod": reference}}}
    )
    path = f"{EVICTIONS}/e-1"
    turns = [
        {"name": RESPONDER, "priority": PRIORITY, "state": "Active"},
        {"name": EVICTOR, "priority": 100, "state": "Inactive"},
    ]
    started = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    own: dict[str, Any] = {"name": RESPONDER, "startTime": started}
    status = {
        "requesters": [{"name": "example.com/drain", "intent": "Eviction"}],
        "targetResponders": turns,
        "responders": [own, {"name": EVICTOR}],
    }
    kafka.admin.merge(f"{path}/status", {"status": status})
    yield path
    kafka.admin.delete(path)


def own(kafka: Server, path: str) -> dict[str, Any]:
    responders = kafka.admin.get(path)["status"]["responders"]
    return dict(next(each for each in responders if each["name"] == RESPONDER))


def test_a_brokers_pod_names_the_gate_before_kubernetes_own_evictor(pod: dict[str, Any]) -> None:
    assert pod["spec"]["evictionResponders"] == [{"name": RESPONDER, "priority": PRIORITY}]


def test_a_denial_is_a_heartbeat_and_a_yes_ends_the_turn(
    kafka: Server, eviction: str, responder: Responder
) -> None:
    gate = responder.gate
    assert isinstance(gate, Gate)
    began = own(kafka, eviction)["startTime"]
    responder.turn()
    told = own(kafka, eviction)
    assert (told["message"], told["startTime"]) == (gate.answer.reason, began)
    assert told["heartbeatTime"] >= began
    assert "completionTime" not in told
    # Heartbeats keep their distance, and the gate is asked all the same.
    responder.turn()
    assert own(kafka, eviction) == told
    gate.answer = GateAnswer(allowed=True, reason="Node 10 may leave.")
    responder.turn()
    over = own(kafka, eviction)
    assert over["message"] == "Node 10 may leave."
    assert over["completionTime"] == over["heartbeatTime"]
    assert [each.username for each in gate.asked] == 3 * ["example.com/drain"]
    responder.turn()
    assert len(gate.asked) == 3


def test_a_pod_that_is_gone_ends_the_turn(
    kafka: Server, eviction: str, responder: Responder
) -> None:
    _delete(kafka)
    responder.turn()
    assert own(kafka, eviction)["message"] == "Pod orders-broker-a-10 is gone."
    kafka.admin.post(
        PODS,
        {
            "metadata": {"name": "orders-broker-a-10"},
            "spec": {"containers": [{"name": "kafka", "image": "kafka"}]},
        },
    )


def test_the_gate_may_write_its_report_and_nothing_else_of_an_eviction(
    kafka: Server, eviction: str, responder: Responder
) -> None:
    api = responder.api
    assert isinstance(api, EksApi)
    body = {"apiVersion": API, "kind": "Eviction", "metadata": {"labels": {"a.b/c": "d"}}}
    with pytest.raises(StillwaterError, match="403"):
        api.apply(eviction, body, manager="stillwater-gate")
    assert kafka.admin.get(eviction)["metadata"].get("labels") is None


def test_the_api_server_is_the_version_that_the_how_to_names(kafka: Server) -> None:
    assert kafka.admin.get("/version")["gitVersion"] == "v1.37.0"
    with pytest.raises(ApiError, match="404"):
        kafka.admin.get(f"{EVICTIONS}/nobody")
