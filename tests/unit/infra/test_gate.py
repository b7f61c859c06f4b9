"""The eviction gate: asked where somebody drains, and never in the way of what heals."""

from __future__ import annotations

import re

import pytest

from core import cluster as clusters
from core.gate import CLEANERS
from core.ground.errors import InvalidInput
from tests.unit.infra.programs import description, run_changed, run_layers
from tests.unit.infra.recording import CONTROL_PLANE, CONTROL_PLANE_IPV6, Recorded

RBAC = "rbac.authorization.k8s.io/v1:"
IMAGE = "registry.example/stillwater-gate:1.4"


@pytest.fixture(scope="module")
def operations(cache: None) -> Recorded:
    return run_changed("operations", eviction_gate={"image": IMAGE}, connect={"replicas": 1})


@pytest.fixture(scope="module")
def webhooks(operations: Recorded) -> dict[str, dict[str, object]]:
    found = operations.one(
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration", "gate-webhooks"
    )
    return {each["name"]: each for each in found.inputs["webhooks"]}


def test_evictions_wait_for_the_gate_and_what_heals_does_not(webhooks: dict[str, object]) -> None:
    policies = {name: each["failurePolicy"] for name, each in webhooks.items()}  # type: ignore[index]
    assert policies == {
        "evictions.stillwater.dev": "Fail",
        "pods.stillwater.dev": "Ignore",
        "nodes.stillwater.dev": "Ignore",
    }


def test_only_kafkas_own_pods_are_asked_about(webhooks: dict[str, dict[str, object]]) -> None:
    (condition,) = webhooks["evictions.stillwater.dev"]["matchConditions"]  # type: ignore[misc]
    pattern = re.search(r"matches\('(.*)'\)", condition["expression"])[1]  # type: ignore[index]
    assert re.match(pattern, "orders-broker-a-10")
    assert re.match(pattern, "orders-controller-c-2")
    assert not re.match(pattern, "orders-connect-connect-0")
    assert not re.match(pattern, "orders-entity-operator-5d8f-1")


def test_who_cleans_up_is_not_even_asked(webhooks: dict[str, dict[str, object]]) -> None:
    conditions = webhooks["pods.stillwater.dev"]["matchConditions"]
    said = " ".join(each["expression"] for each in conditions)  # type: ignore[attr-defined]
    assert all(user in said for user in CLEANERS)
    assert "system:serviceaccount:strimzi:strimzi-cluster-operator" in said
    assert "'system:node:' + oldObject.spec.nodeName" in said


def test_two_replicas_stand_where_no_drain_of_a_broker_reaches_them(operations: Recorded) -> None:
    deployment = operations.one("apps/v1:Deployment", "gate-deployment").inputs["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 2
    assert "tolerations" not in pod
    assert pod["nodeSelector"] == {"stillwater.dev/pool": "system"}
    budget = operations.one("policy/v1:PodDisruptionBudget", "gate-budget").inputs["spec"]
    assert budget["selector"] == deployment["selector"]
    assert pod["containers"][0]["image"] == IMAGE


def test_it_writes_two_objects_by_name_and_nothing_of_a_node(
    operations: Recorded,
) -> None:
    roles = [*operations.of(f"{RBAC}Role"), *operations.of(f"{RBAC}ClusterRole")]
    ours = [each for each in roles if each.name.startswith("gate-")]
    writing = [
        (rule["resources"], rule.get("resourceNames"))
        for role in ours
        for rule in role.inputs["rules"]
        if not {"get", "list"} >= set(rule["verbs"])
    ]
    assert sorted(writing) == [
        (["secrets"], ["stillwater-gate"]),
        (["validatingwebhookconfigurations"], ["stillwater-gate"]),
    ]


def test_without_it_nothing_of_it_is_made(cache: None) -> None:
    bare = run_layers(description())["operations"]
    assert not [each for each in bare.of("apps/v1:Deployment") if "gate" in each.name]


@pytest.mark.parametrize("image", ["registry.example/gate", "registry.example/gate:latest"])
def test_an_image_without_a_version_is_refused_in_a_sentence(image: str) -> None:
    with pytest.raises(InvalidInput, match="names no version"):
        clusters.parse(description(eviction_gate={"image": image}))


def test_the_control_plane_alone_reaches_the_gate(operations: Recorded) -> None:
    admitted = operations.one("networking.k8s.io/v1:NetworkPolicy", "gate-admitted").inputs
    pods = operations.one("apps/v1:Deployment", "gate-deployment").inputs
    assert admitted["metadata"]["namespace"] == pods["metadata"]["namespace"]
    assert admitted["spec"] == {
        "podSelector": pods["spec"]["selector"],
        # Without a word about Egress it stays open.
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {"ipBlock": {"cidr": cidr}}
                    for cidr in (*CONTROL_PLANE.values(), CONTROL_PLANE_IPV6)
                ],
                "ports": [{"port": 8443, "protocol": "TCP"}],
            }
        ],
    }
