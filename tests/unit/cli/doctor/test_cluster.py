"""cli.doctor.account: what Kubernetes lists, in core's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from cli.doctor.account import KubernetesCluster
from core.checks import facts
from core.checks.drift import COMPARED
from core.checks.expected import expectation_of
from infra.eks.api import Api
from infra.kafka.cluster import kafka_spec
from tests.unit.infra.programs import spec

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "doctor.md"
SPEC = spec()
EXPECTED = expectation_of(SPEC, [])
ARN = "arn:aws:elasticloadbalancing:us-east-1:1:targetgroup/test-orders-10/0123"


class Lists:
    """An API server that only lists."""

    def __init__(self, items: Mapping[str, list[dict[str, Any]]]) -> None:
        self._items = items
        self.asked: dict[str, dict[str, str]] = {}

    def get(self, path: str, limit: int = 0, **query: str) -> dict[str, Any]:
        if path == "/apis/kafka.strimzi.io":
            return {"preferredVersion": {"groupVersion": "kafka.strimzi.io/v1"}}
        self.asked[path] = query
        return {"items": self._items.get(path.rpartition("/")[2], [])}


def cluster() -> KubernetesCluster:
    return KubernetesCluster(EXPECTED, lambda: cast("Api", None))


def read(**items: list[dict[str, Any]]) -> tuple[dict[str, Any], Lists]:
    api = Lists(items)
    found = {
        part: members
        for _, reader in cluster().readers()
        for part, members in reader(cast("Api", api))
    }
    return found, api


def item(name: str, **rest: Any) -> dict[str, Any]:
    labels = rest.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels, **rest.pop("metadata", {})}, **rest}


def test_an_empty_cluster_is_read_in_ten_lists() -> None:
    found, api = read()
    assert (len(api.asked), len(found)) == (10, 11)
    assert all(members == {} for members in found.values())
    assert api.asked["/api/v1/namespaces"] == {"fieldSelector": "metadata.name=kafka"}


def granted() -> set[tuple[str, str, str]]:
    """Return (namespace, API group, resource) of all that the guide's roles let anybody list."""
    (manifests,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return {
        (role["metadata"].get("namespace", ""), group, resource)
        for role in yaml.safe_load(manifests)["items"]
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list"]
    }


def test_the_guides_roles_allow_what_is_listed_and_nothing_else() -> None:
    _, api = read()
    parsed = (
        re.fullmatch(r"/apis?/(?:([a-z0-9.]+)/)?v\w+/(?:namespaces/([^/]+)/)?(\w+)", path)
        for path in api.asked
    )
    asked = {(m[2] or "", m[1] or "", m[3]) for m in parsed if m is not None}
    assert len(asked) == len(api.asked)
    # By the survey's reader.
    pools = ("kafka", "kafka.strimzi.io", "kafkanodepools")
    assert {*asked, pools} == granted()


def test_a_namespace_is_known_by_its_gate_label() -> None:
    label = {"elbv2.k8s.aws/pod-readiness-gate-inject": "enabled"}
    assert read(namespaces=[item("kafka", labels=label)])[0]["namespaces"] == {
        "kafka": facts.Namespace(gate_label="enabled")
    }
    assert read(namespaces=[item("kafka")])[0]["namespaces"]["kafka"].gate_label is None


def test_a_binding_names_its_target_group_by_arn_or_by_name() -> None:
    service = {"name": "orders-broker-a-nlb-10", "port": "tcp-nlb"}
    by_arn = {"serviceRef": service, "targetGroupARN": ARN, "targetType": "ip"}
    by_name = {"serviceRef": service, "targetGroupName": "test-orders-10", "targetType": "ip"}
    found, _ = read(targetgroupbindings=[item("a", spec=by_arn), item("b", spec=by_name)])
    assert {binding.target_group for binding in found["bindings"].values()} == {"test-orders-10"}


def pod(name: str, phase: str = "Running", **rest: Any) -> dict[str, Any]:
    labels = {"strimzi.io/pool-name": "broker-a", "strimzi.io/broker-role": "true"}
    gates = [{"conditionType": "target-health.elbv2.k8s.aws/orders-broker-10"}]
    return item(
        name,
        labels=rest.pop("labels", labels),
        metadata={"namespace": "kafka", **rest.pop("metadata", {})},
        spec={"readinessGates": gates, "containers": []},
        status={"phase": phase},
    )


def test_only_running_pods_of_kafkas_pools_are_asked_for_their_gates() -> None:
    found, api = read(
        pods=[
            pod("orders-broker-a-10"),
            pod("orders-broker-b-20", phase="Pending"),
            pod("orders-broker-c-30", metadata={"deletionTimestamp": "2026-11-20T00:00:00Z"}),
            pod("orders-entity-operator-7f9", labels={}),
        ]
    )
    (name, seen), *others = found["pods"].items()
    assert (name, seen.broker, others) == ("orders-broker-a-10", True, [])
    assert seen.readiness_gates == {"target-health.elbv2.k8s.aws/orders-broker-10"}
    path = "/api/v1/namespaces/kafka/pods"
    assert api.asked[path] == {"labelSelector": "strimzi.io/cluster=orders"}


def volume(namespace: str, claim: str) -> dict[str, Any]:
    spec = {
        "claimRef": {"namespace": namespace, "name": claim},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    return item(f"pv-{namespace}-{claim}", spec=spec)


def test_only_volumes_of_this_kafka_are_looked_at() -> None:
    found, _ = read(
        persistentvolumes=[
            volume("kafka", "data-0-orders-broker-a-10"),
            volume("kafka", "data-0-payments-broker-a-10"),
            volume("kafka", "data-orders-connect-0"),
            volume("other", "data-0-orders-broker-a-10"),
            item("unclaimed", spec={}),
        ]
    )
    (seen,) = found["volumes"].values()
    assert (seen.title, seen.reclaim) == ("kafka/data-0-orders-broker-a-10", "Delete")


def test_a_budget_is_what_is_written() -> None:
    found, _ = read(
        poddisruptionbudgets=[
            budget("orders-kafka", minAvailable=5),
            budget("loose", maxUnavailable="50%"),
        ]
    )
    said = {
        name: (each.least_available, each.most_unavailable)
        for name, each in found["budgets"].items()
    }
    assert said == {"orders-kafka": ("5", None), "loose": (None, "50%")}


def budget(name: str, **said: Any) -> dict[str, Any]:
    return item(name, metadata={"namespace": "kafka"}, spec={"selector": {}, **said})


def deployment(*env: dict[str, Any]) -> dict[str, Any]:
    container = {"image": "aws-node-termination-handler:v1.25.6", "env": list(env)}
    pod_spec = {"containers": [container], "terminationGracePeriodSeconds": 450}
    return item(
        "aws-node-termination-handler",
        metadata={"namespace": "kube-system"},
        spec={"template": {"spec": pod_spec}},
    )


def test_the_drain_timeout_is_in_the_handlers_environment() -> None:
    set_to = {"name": "NODE_TERMINATION_GRACE_PERIOD", "value": "420"}
    other = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    (handler,) = read(deployments=[deployment(other, set_to)])[0]["termination_handlers"].values()
    said = (handler.drain_timeout_seconds, handler.grace_seconds, handler.runs)
    assert said == (420, 450, True)
    (handler,) = read(deployments=[deployment(other)])[0]["termination_handlers"].values()
    # Its own default.
    assert handler.drain_timeout_seconds == 120


def beside(name: str, image: str, **env: str) -> dict[str, Any]:
    variables = [{"name": key, "value": value} for key, value in env.items()]
    container = {"name": name, "image": image, "env": variables}
    template = {"spec": {"containers": [container]}}
    return item(name, metadata={"namespace": "ops"}, spec={"template": template})


def test_a_drain_cleaner_is_read_where_it_answers_for_kafkas_namespace() -> None:
    image = "quay.io/strimzi/drain-cleaner:1.6.0"
    found, _ = read(
        deployments=[
            beside("cleaner", image),
            beside("off", image, STRIMZI_DRAIN_KAFKA="false"),
            beside("elsewhere", image, STRIMZI_DRAIN_NAMESPACES="payments"),
        ]
    )
    said = {title: each.drains_kafka for title, each in found["drain_cleaners"].items()}
    assert said == {"ops/cleaner": True, "ops/off": False}


def test_a_kafka_says_whom_its_listeners_let_in_and_what_they_may_do() -> None:
    door = {"name": "nlb", "tls": False}
    asks = {"name": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
    rules = {"type": "simple", "superUsers": ["CN=ops"]}
    config = {"allow.everyone.if.no.acl.found": "true"}
    kafka = {"listeners": [door, asks], "authorization": rules, "config": config}
    made = item("orders", metadata={"namespace": "kafka"}, spec={"kafka": kafka})
    assert read_kafka(made) == {
        "doors": {
            "nlb asks nobody who they are, without TLS",
            "internal asks for scram-sha-512, over TLS",
        },
        "authorization": "simple",
        "super_users": {"CN=ops"},
        "everyone_may": True,
    }


def read_kafka(made: dict[str, Any]) -> dict[str, Any]:
    return compared(read(kafkas=[made])[0]["kafkas"]["orders"])


def compared(kafka: Any) -> dict[str, Any]:
    return {field: getattr(kafka, field) for field in COMPARED["kafkas"].labels}


def test_a_kafka_is_made_as_the_doctor_expects_it() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 0}
    made = item("orders", metadata={"namespace": "kafka"}, spec=kafka_spec(SPEC), status=ready)
    (expected,) = (EXPECTED.snapshot.kafkas or {}).values()
    assert read_kafka(made) == compared(expected)
