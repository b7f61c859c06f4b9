"""infra.charts.lbc: the controller does bindings and gates, and may do nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.programs import spec
from tests.unit.infra.recording import Recorded


@pytest.fixture
def values(layers: dict[str, Recorded]) -> dict[str, Any]:
    return dict(layers["platform"].one("helm.sh/v3:Release", "lbc-release").inputs["values"])


def test_it_asks_for_target_health_as_often_as_the_spec_says(values: dict[str, Any]) -> None:
    timings = spec().timings
    requeue, cap = "RequeueDuration", "MaxExponentialBackoffDelay"
    assert values[f"targetgroupbinding{requeue}"] == f"{timings.lbc_requeue_seconds}s"
    assert values[f"targetgroupbinding{cap}"] == f"{timings.lbc_max_backoff_seconds}s"


def test_it_gates_brokers_and_never_controllers(values: dict[str, Any]) -> None:
    assert values["objectSelector"] == {"matchLabels": {"strimzi.io/broker-role": "true"}}
    # Set, it would also apply to a webhook that fails closed.
    assert "webhookNamespaceSelectors" not in values


def test_it_stands_in_nobody_elses_way(values: dict[str, Any]) -> None:
    assert values["enableServiceMutatorWebhook"] is False
    assert values["watchNamespace"] == "kafka"
    assert values["keepTLSSecret"] is True
    assert not any(values["controllerConfig"]["featureGates"].values())


def test_it_never_asks_the_metadata_service(values: dict[str, Any]) -> None:
    assert values["region"] == "us-east-1"
    assert values["vpcId"]


def test_it_moves_targets_of_this_cluster_alone(layers: dict[str, Recorded]) -> None:
    policy = layers["platform"].one("iam/rolePolicy:RolePolicy", "lbc-policy")
    (moving,) = [s for s in policy.policy_statements if s["Resource"] != ["*"]]
    assert moving["Action"] == [
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:RegisterTargets",
    ]
    assert moving["Condition"]["StringEquals"] == {
        "aws:ResourceTag/stillwater:cluster": "orders",
        "aws:ResourceTag/stillwater:environment": "test",
    }
    (resource,) = moving["Resource"]
    assert resource.endswith(":targetgroup/test-orders-*/*")


def test_target_groups_carry_the_tags_its_permission_asks_for(
    layers: dict[str, Recorded],
) -> None:
    for group in layers["kafka"].of("lb/targetGroup:TargetGroup"):
        assert group.inputs["tags"]["stillwater:cluster"] == "orders"
        assert group.inputs["tags"]["stillwater:environment"] == "test"


def test_it_has_credentials_before_it_starts(layers: dict[str, Recorded]) -> None:
    platform = layers["platform"]
    release = platform.one("helm.sh/v3:Release", "lbc-release")
    association = platform.one(
        "eks/podIdentityAssociation:PodIdentityAssociation", "lbc-role-association"
    )
    assert {association.name, "lbc-policy"} <= release.depends_on
    assert association.inputs["namespace"] == release.inputs["namespace"]
    service_account = release.inputs["values"]["serviceAccount"]["name"]
    assert association.inputs["serviceAccount"] == service_account
