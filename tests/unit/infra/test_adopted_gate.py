"""The eviction gate beside a cluster that exists: one per Kafka, and what it writes."""

from __future__ import annotations

import functools
from typing import Any

from core.settings.functions import TickSettings
from tests.unit.infra.recording import Recorded
from tests.unit.infra.test_adopted import IMAGE, KINDS_OF_OURS, ONE, QUEUE, run
from tests.unit.infra.told import told


@functools.cache
def gating() -> Recorded:
    return run(level="gate", eviction_gate=IMAGE)


def test_at_gate_each_kafka_has_a_gate_of_its_own_and_nothing_of_theirs_is_managed() -> None:
    webhooks = gating().of(
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
    )
    found = {w.inputs["metadata"]["name"]: w.inputs["webhooks"] for w in webhooks}
    assert sorted(found) == ["shop-orders-gate", "shop-trial-gate"]
    spaces = {
        name: asked[0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for name, asked in found.items()
    }
    assert spaces == {"shop-orders-gate": "shop-kafka", "shop-trial-gate": "lab"}
    for name, asked in found.items():
        assert {a["clientConfig"]["service"]["name"] for a in asked} == {name}
    for kind in ("apps/v1:Deployment", "core/v1:Service", "core/v1:Secret", "v1:ServiceAccount"):
        made = [r.inputs["metadata"]["name"] for r in gating().resources if r.type.endswith(kind)]
        assert sorted(made) == ["shop-orders-gate", "shop-trial-gate"], kind
    made_in_aws = [r for r in gating().resources if r.type.startswith("aws:")]
    kinds = {r.type.rpartition("/")[2].split(":")[0] for r in made_in_aws}
    assert kinds - KINDS_OF_OURS == {"podIdentityAssociation"}
    assert not gating().of("autoscaling/lifecycleHook:LifecycleHook")


def test_the_gate_runs_off_kafkas_machines_and_knows_its_own_pods_by_name() -> None:
    deployment = gating().one("apps/v1:Deployment", "shop-orders-gate-deployment").inputs
    (preferred,) = deployment["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred["preference"]["matchExpressions"] == [
        {"key": "eks.amazonaws.com/nodegroup", "operator": "NotIn", "values": ["quorum"]},
        {"key": "kafka-pool", "operator": "DoesNotExist"},
        {"key": "karpenter.sh/nodepool", "operator": "NotIn", "values": ["spare"]},
    ]
    webhook = gating().one(
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration",
        "shop-orders-gate-webhooks",
    )
    asked = {each["name"]: each for each in webhook.inputs["webhooks"]}
    (evicted,) = asked["evictions.stillwater.dev"]["matchConditions"]
    assert evicted["expression"] == "request.name.matches('^orders-(.+)-[0-9]+$')"
    left_out = asked["pods.stillwater.dev"]["matchConditions"][0]["expression"]
    assert "system:serviceaccount:shop-kafka:strimzi-cluster-operator" in left_out
    assert '"system:serviceaccount:ops:roller"' in left_out


def written(kind: str) -> list[dict[str, Any]]:
    return [
        rule
        for role in gating().of(f"rbac.authorization.k8s.io/v1:{kind}")
        for rule in role.inputs["rules"]
        if not set(rule["verbs"]) <= {"get", "list"}
    ]


def test_the_gate_writes_its_own_secret_and_webhook_alone() -> None:
    rules = [*written("ClusterRole"), *written("Role")]
    named = {(r["resources"][0], *r["resourceNames"]) for r in rules if "resourceNames" in r}
    assert named == {
        (resource, f"shop-{kafka}-gate")
        for resource in ("secrets", "validatingwebhookconfigurations")
        for kafka in ("orders", "trial")
    }
    assert all("resourceNames" in rule for rule in rules)


def test_who_decides_is_told_that_evictions_ask() -> None:
    tick: Any = told(gating(), "shop-orders-handlers-tick-function", TickSettings)
    assert (tick.level, tick.gated) == ("gate", True)
    assert tick.reach.policy("kafka-a", tick.policy).drain_route == "asked"
    beside: Any = told(
        run(**ONE, queue_url=QUEUE, eviction_gate=IMAGE),
        "shop-orders-handlers-tick-function",
        TickSettings,
    )
    assert (beside.reach.level_of("kafka-a"), beside.reach.level_of("eks-quorum-0a")) == (
        "act",
        "gate",
    )
