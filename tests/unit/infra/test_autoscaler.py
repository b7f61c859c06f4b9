"""infra.charts.autoscaler: it adds nodes, and nothing lets it take one of Kafka's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.charts import unknown_values
from tests.unit.infra.programs import description, run_layer
from tests.unit.infra.recording import Recorded

RELEASE = "helm.sh/v3:Release"
OPTIONS = "k8s.io/cluster-autoscaler/node-template/autoscaling-options"
KAFKA_GROUPS = {
    f"autoScalingGroup:*:autoScalingGroupName/test-orders-{pool}-?"
    for pool in ("controller", "broker")
}


@pytest.fixture
def platform(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


@pytest.fixture
def values(platform: Recorded) -> dict[str, Any]:
    return dict(platform.one(RELEASE, "autoscaler-release").inputs["values"])


def groups_of(platform: Recorded, action: str) -> set[str]:
    """Return the groups an action is allowed on, without partition, region and account."""
    return {
        resource.split(":", 5)[5]
        for statement in platform.one(
            "iam/rolePolicy:RolePolicy", "autoscaler-policy"
        ).policy_statements
        if action in statement["Action"]
        for resource in statement["Resource"]
    }


def test_it_may_add_nodes_to_every_group_of_this_cluster(platform: Recorded) -> None:
    system = "autoScalingGroup:*:autoScalingGroupName/eks-test-orders-system-*"
    assert groups_of(platform, "autoscaling:SetDesiredCapacity") == {system, *KAFKA_GROUPS}


def test_it_may_not_end_a_node_of_kafka(platform: Recorded) -> None:
    ended = groups_of(platform, "autoscaling:TerminateInstanceInAutoScalingGroup")
    assert not ended & KAFKA_GROUPS
    assert len(ended) == 1


def test_an_idle_node_of_kafka_is_left_alone(layers: dict[str, Recorded]) -> None:
    for group in layers["kafka"].of("autoscaling/group:Group"):
        tags = {t["key"]: t for t in group.inputs["tags"]}
        for option in ("scaledownunneededtime", "scaledownunreadytime"):
            assert tags[f"{OPTIONS}/{option}"]["value"] == "8760h"
            assert tags[f"{OPTIONS}/{option}"]["propagateAtLaunch"] is False


def test_it_never_moves_nodes_between_zones(values: dict[str, Any]) -> None:
    assert values["extraArgs"]["balance-similar-node-groups"] is False
    assert values["autoDiscovery"] == {"clusterName": "test-orders"}


def test_a_pod_it_evicts_has_its_own_grace(values: dict[str, Any]) -> None:
    assert values["extraArgs"]["max-graceful-termination-sec"] == 330


def test_its_chart_knows_every_value(values: dict[str, Any]) -> None:
    # extraArgs names flags, which the chart passes on.
    given = {key: value for key, value in values.items() if key != "extraArgs"}
    assert unknown_values("cluster-autoscaler-9.59.0", given) == []


def test_its_pods_have_credentials_before_they_start(platform: Recorded) -> None:
    release = platform.one(RELEASE, "autoscaler-release")
    assert {"autoscaler-role-association", "autoscaler-policy"} <= release.depends_on
    association = platform.one(
        "eks/podIdentityAssociation:PodIdentityAssociation", "autoscaler-role-association"
    )
    assert association.inputs["serviceAccount"] == "cluster-autoscaler"


@pytest.mark.parametrize(
    "changed", [{"cluster_autoscaler": False}, {"node_provisioner": "karpenter"}]
)
def test_a_cluster_that_wants_none_has_none(
    layers: dict[str, Recorded], changed: dict[str, Any]
) -> None:
    references = {"test-foundation": layers["foundation"].outputs}
    recorded = run_layer("platform", description(**changed), references)
    assert not [r.name for r in recorded.resources if r.name.startswith("autoscaler")]
