"""What a doctor reads of a cluster that exists: what is there, and why a part is not known."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from cli.doctor import adopted
from cli.main import app
from core.checks.finding import Weight
from infra.eks.api import ApiError
from tests.unit.certificates import issue

DESCRIPTION = """
adopt:
  level: {level}
  eks_cluster: shop
  region: eu-north-1
  kafkas:
    - namespace: shop-kafka
      name: orders
      bootstrap: orders.example.com:9093
      authentication: tls
      credentials_secret: eyes
  managed_node_groups: [quorum]
  subnets: [subnet-0123456789abcdef0]
  security_groups: [sg-0123456789abcdef0]
  eviction_gate: {{image: "registry.example/stillwater-gate:1.4"}}
"""
GATE = {
    "spec": {
        "template": {"spec": {"containers": [{"image": "registry.example/stillwater-gate:1.4"}]}}
    },
    "status": {"availableReplicas": 2},
}
TRUSTED = {"webhooks": [{"clientConfig": {"caBundle": "eA=="}}]}
OPERATOR = {
    "metadata": {"name": "operator", "namespace": "ops"},
    "spec": {
        "template": {
            "spec": {
                "serviceAccountName": "strimzi",
                "containers": [{"name": "o", "image": "quay.io/strimzi/operator:1.2.0"}],
            }
        }
    },
}
KAFKA = {"metadata": {"name": "orders", "namespace": "shop-kafka"}, "spec": {"kafka": {}}}


class Missing(Exception):
    """SQS knows no such queue."""


class Service:
    """Every client of AWS's that the doctor makes."""

    exceptions = type("Exceptions", (), {"QueueDoesNotExist": Missing})

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "111122223333"}

    def can_paginate(self, _call: str) -> bool:
        return True

    def get_paginator(self, _call: str) -> Service:
        return self

    def paginate(self, **_asked: str) -> list[dict[str, list[str]]]:
        return [{"nodegroups": ["quorum"]}]

    def get_function_configuration(self, **asked: str) -> None:
        if asked["FunctionName"] == "shop-orders-sweep":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetFunction")

    def get_queue_url(self, **asked: str) -> None:
        if asked["QueueName"] == "shop-orders-ticks":
            raise Missing


class Session:
    def client(self, _service: str, **_options: Any) -> Service:
        return Service()


class Server:
    """An API server that has what is in `held`, and refuses Secrets where told to."""

    held: dict[str, Any]

    def judged(self, machines: object) -> None:
        """Take note of what the doctor asks to have judged around the machines."""

    def get(self, path: str, **_query: object) -> Any:
        assert "/secrets" not in path, "what a Secret holds was asked for"
        return self._held(path)

    def metadata(self, path: str) -> Any:
        return self._held(path)

    def _held(self, path: str) -> Any:
        found = self.held.get(path)
        if isinstance(found, int) or found is None:
            status = found or 404
            raise ApiError(status, "", f"GET {path} was refused ({status}): no")
        return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    gate = "shop-orders-gate"
    made.held = {
        "/api/v1/nodes": {"items": [{"metadata": {"name": "a", "labels": {"kafka-pool": "b"}}}]},
        "/apis/kafka.strimzi.io": {"preferredVersion": {"groupVersion": "kafka.strimzi.io/v1"}},
        "/apis/core.strimzi.io": {"versions": [{"version": "v1"}]},
        "/apis/kafka.strimzi.io/v1/kafkas": {"items": [KAFKA]},
        "/api/v1/namespaces/shop-kafka/secrets/eyes": {},
        "/api/v1/namespaces/shop-kafka/secrets/orders-cluster-ca-cert": {},
        "/apis/apps/v1/deployments": {"items": []},
        "/apis/apps/v1/daemonsets": {"items": []},
        f"/apis/apps/v1/namespaces/kube-system/deployments/{gate}": GATE,
        f"{adopted.WEBHOOKS}/{gate}": TRUSTED,
    }
    monkeypatch.setattr(adopted, "eks_api", lambda *_: made)
    monkeypatch.setattr(adopted.aws, "session", lambda **_: Session())

    def judged(_: object, machines: object) -> list[object]:
        made.judged(machines)
        return []

    monkeypatch.setattr(adopted, "surroundings_findings", judged)
    return made


def described(tmp_path: Path, level: str) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(DESCRIPTION.format(level=level))
    return path


def test_what_is_missing_is_named_and_nothing_else(server: Server, tmp_path: Path) -> None:
    found = adopted.examine(described(tmp_path, "gate"))
    assert [each.subject for each in found.findings] == [
        "function shop-orders-sweep",
        "queue shop-orders-ticks",
    ]
    assert (found.exit_code, found.account, found.cluster) == (1, "111122223333", "shop")


def test_a_gate_whose_authority_has_ended_is_trusted_by_nobody(
    server: Server, tmp_path: Path
) -> None:
    ended = issue("ca", None, datetime(2021, 1, 1, tzinfo=UTC)).certificate_pem
    bundle = base64.b64encode(ended.encode()).decode()
    server.held[f"{adopted.WEBHOOKS}/shop-orders-gate"] = {
        "webhooks": [{"clientConfig": {"caBundle": bundle}}]
    }
    found = adopted.examine(described(tmp_path, "gate")).findings
    assert [e.evidence for e in found if e.subject == "webhook shop-orders-gate"] == [
        "expected asks the gate, and trusts it, found does not"
    ]


def test_a_strimzi_of_before_v1_is_found(server: Server, tmp_path: Path) -> None:
    server.held["/apis/core.strimzi.io"] = {"versions": [{"version": "v1beta2"}]}
    found = adopted.examine(described(tmp_path, "watch")).findings
    assert [e.evidence for e in found if e.subject == "API of StrimziPodSets"] == [
        "expected v1, found v1beta2 alone"
    ]


def test_functions_in_subnets_call_what_their_rights_name(server: Server, tmp_path: Path) -> None:
    asked = []
    server.judged = asked.append  # type: ignore[attr-defined]
    adopted.examine(described(tmp_path, "watch"))
    (machines,) = asked
    assert machines.function_subnets == ("subnet-0123456789abcdef0",)
    assert machines.called >= {"autoscaling", "dynamodb", "ec2", "sqs", "s3"}
    # Slack's function stands outside the VPC.
    assert "secretsmanager" not in machines.called


def test_an_operator_elsewhere_is_read_by_its_account(server: Server, tmp_path: Path) -> None:
    server.held["/apis/apps/v1/deployments"] = {"items": [OPERATOR]}
    found = adopted.examine(described(tmp_path, "gate"))
    assert any("system:serviceaccount:ops:strimzi" in each.evidence for each in found.findings)


def test_a_part_that_is_refused_is_not_known_and_costs_no_other(
    server: Server, tmp_path: Path
) -> None:
    server.held["/api/v1/namespaces/shop-kafka/secrets/eyes"] = 403
    found = adopted.examine(described(tmp_path, "gate"))
    (unread,) = [each for each in found.findings if each.weight is Weight.UNKNOWN]
    assert unread.subject == "Secrets"
    assert "was refused (403)" in unread.evidence
    assert len(found.findings) == 3
    assert found.exit_code == 2


def test_a_description_of_a_survey_is_the_surveys(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["doctor", str(described(tmp_path, "survey"))])
    assert done.exit_code == 2
    assert "`stillwater survey` judges it" in done.stderr


def test_a_kafka_that_somebody_deletes_is_found_while_it_is_there(
    server: Server, tmp_path: Path
) -> None:
    going = {**KAFKA, "metadata": {**KAFKA["metadata"], "deletionTimestamp": "2026-11-01"}}
    server.held["/apis/kafka.strimzi.io/v1/kafkas"] = {"items": [going]}
    (first, *_) = adopted.examine(described(tmp_path, "gate")).findings
    assert first.subject == "Kafka shop-kafka/orders"
    assert first.evidence.endswith("found somebody deletes it")
