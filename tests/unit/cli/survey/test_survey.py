"""A cluster of other names, as its API server and EC2 Auto Scaling answer, becomes findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.survey import command
from core.errors import StillwaterError
from core.survey.facts import Unread
from core.survey.finding import NOT_READ, Weight
from core.survey.judge import findings
from infra.eks.api import Api, ApiError

LABELS = {"strimzi.io/cluster": "payments", "strimzi.io/broker-role": "true"}


def meta(name: str, namespace: str | None = None, **labels: str) -> dict[str, Any]:
    return {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}


def workload(name: str, image: str, **env: str) -> dict[str, Any]:
    container = {
        "name": name,
        "image": image,
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"metadata": meta(name, "tools"), "spec": spec}


ANSWERS: dict[str, list[dict[str, Any]]] = {
    "/apis/kafka.strimzi.io/v1/kafkas": [
        {
            "metadata": meta("payments", "streaming"),
            "spec": {
                "kafka": {
                    "listeners": [{"name": "plain", "port": 9092, "type": "internal"}],
                    "config": {"default.replication.factor": 3, "min.insync.replicas": 2},
                }
            },
        }
    ],
    "/api/v1/pods": [
        {
            "metadata": {"name": "payments-a-0", "namespace": "streaming", "labels": LABELS},
            "spec": {
                "nodeName": "n0",
                "terminationGracePeriodSeconds": 30,
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}],
            },
        }
    ],
    "/api/v1/nodes": [
        {
            "metadata": {
                "name": "n0",
                "labels": {
                    "topology.kubernetes.io/zone": "eu-north-1a",
                    "topology.kubernetes.io/region": "eu-north-1",
                },
            },
            "spec": {"providerID": "aws:///eu-north-1a/i-0abc"},
        }
    ],
    "/api/v1/namespaces": [],
    "/api/v1/persistentvolumes": [
        {"metadata": meta("pv"), "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    ],
    "/api/v1/namespaces/streaming/persistentvolumeclaims": [
        {
            "metadata": meta("data-0", "streaming"),
            "spec": {"storageClassName": "gp2", "volumeName": "pv"},
        }
    ],
    "/apis/storage.k8s.io/v1/storageclasses": [{"metadata": meta("gp2")}],
    "/apis/policy/v1/poddisruptionbudgets": [],
    "/apis/apps/v1/deployments": [],
    "/apis/apps/v1/daemonsets": [
        workload("nth", "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.0")
    ],
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": [],
}


class Answering(Api):
    """An API server that knows these listings, and refuses some."""

    def __init__(self, refused: str = "") -> None:
        super().__init__("https://unused.example", None)
        self.refused = refused

    def _request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        assert method == "GET"
        if self.refused and path.endswith(self.refused):
            raise ApiError(403, "Forbidden", f"GET {path} was refused (403)")
        if path == "/apis/kafka.strimzi.io":
            return {"preferredVersion": {"groupVersion": "kafka.strimzi.io/v1"}}
        if path not in ANSWERS:
            raise ApiError(404, "NotFound", f"GET {path} was refused (404)")
        return {"items": ANSWERS[path], "metadata": {}}


class Scaling:
    """EC2 Auto Scaling with one group, in one region."""

    def describe_auto_scaling_instances(self, **_: Any) -> Any:
        placed = {"InstanceId": "i-0abc", "AutoScalingGroupName": "workers"}
        return {"AutoScalingInstances": [placed]}

    def describe_auto_scaling_groups(self, **_: Any) -> Any:
        group = {
            "AutoScalingGroupName": "workers",
            "MaxSize": 1,
            "DesiredCapacity": 1,
            "AvailabilityZones": ["eu-north-1a", "eu-north-1b"],
        }
        return {"AutoScalingGroups": [group]}

    def describe_lifecycle_hooks(self, **_: Any) -> Any:
        return {"LifecycleHooks": []}


def scaling(region: str | None) -> Any:
    assert region == "eu-north-1"
    return Scaling()


def test_what_is_planted_is_found_and_nothing_else() -> None:
    found = findings(command.read(Answering(), scaling, None))
    assert {each.check for each in found} == {
        "listener",
        "zones",
        "grace",
        "anti-affinity",
        "reclaim",
        "binding",
        "expansion",
        "group-zones",
        "group-maximum",
        "hook-missing",
        "budget-missing",
        "nth-mode",
        "eviction-unasked",
    }


@pytest.mark.parametrize("kind", ["pods", "nodes", "daemonsets", "storageclasses", "namespaces"])
def test_what_may_not_be_listed_is_unknown_with_the_reason(kind: str) -> None:
    found = findings(command.read(Answering(kind), scaling, None))
    unread = [each for each in found if each.weight is Weight.UNKNOWN]
    assert unread
    assert all("403" in each.evidence for each in unread)


def test_a_setting_from_another_object_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    item = workload("nth", "x/aws-node-termination-handler:v1")
    item["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "x"}}]
    monkeypatch.setitem(ANSWERS, "/apis/apps/v1/daemonsets", [item])
    seen = command.read(Answering(), scaling, None)
    assert isinstance(seen.handlers, Unread)
    assert "ENABLE_SQS_TERMINATION_DRAINING" in seen.handlers.why


def examined(monkeypatch: pytest.MonkeyPatch) -> command.Survey:
    monkeypatch.setattr(command, "connect", lambda *_: ("shop", Answering("pods")))
    return command.examine(
        context=None, kubeconfig=Path("unused"), namespace=None, region="eu-north-1", profile=None
    )


def test_a_survey_is_one_object_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    done = examined(monkeypatch)
    shown = json.loads(command.as_json(done))
    assert shown["exit_code"] == done.exit_code == NOT_READ
    assert shown["kafkas"] == ["Kafka streaming/payments"]
    assert "shop (Kafka streaming/payments): " in command.verdict(done)


def test_a_cluster_without_kafka_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "/apis/kafka.strimzi.io/v1/kafkas", [])
    with pytest.raises(StillwaterError, match="no Kafka resource"):
        examined(monkeypatch)
