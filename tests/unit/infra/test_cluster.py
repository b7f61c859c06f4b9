"""infra.eks.cluster: access by entries, secrets encrypted, add-ons in the order nodes need them."""

from __future__ import annotations

import json

import pytest

from infra import versions
from infra.eks.cluster import NODE_MONITORING, addon_names, configuration
from infra.versions import ADDONS
from tests.unit.infra.charts import unknown_values
from tests.unit.infra.programs import ZONES, description, run_layer
from tests.unit.infra.recording import Recorded, Resource

ADDON, ASSOCIATION = "eks/addon:Addon", "eks/podIdentityAssociation:PodIdentityAssociation"
CLUSTER = "eks/cluster:Cluster"
NODE_GROUP = "eks/nodeGroup:NodeGroup"
ATTACHMENT = "iam/rolePolicyAttachment:RolePolicyAttachment"


@pytest.fixture
def foundation(layers: dict[str, Recorded]) -> Recorded:
    return layers["foundation"]


@pytest.fixture
def control_plane(foundation: Recorded) -> Resource:
    return foundation.one("eks/cluster:Cluster")


def test_access_is_by_entries_alone(control_plane: Resource) -> None:
    assert control_plane.inputs["accessConfig"]["authenticationMode"] == "API"


def test_secrets_are_encrypted_with_a_rotating_key(
    foundation: Recorded, control_plane: Resource
) -> None:
    encryption = control_plane.inputs["encryptionConfig"]
    key = foundation.one("kms/key:Key")
    assert encryption["resources"] == ["secrets"]
    assert encryption["provider"]["keyArn"].endswith(f":key/{key.name}")
    assert key.inputs["enableKeyRotation"]


def test_nodes_reach_the_control_plane_without_leaving_the_vpc(control_plane: Resource) -> None:
    assert control_plane.inputs["vpcConfig"]["endpointPrivateAccess"]


def test_a_zone_added_later_has_nodes_and_the_control_plane_stays(control_plane: Resource) -> None:
    # "They should belong to the exact set of AZs in which subnets were provided."
    assert control_plane.ignore_changes == ("vpcConfig.subnetIds",)


def test_system_nodes_stand_in_every_zone_in_a_group_of_its_own(foundation: Recorded) -> None:
    groups = foundation.of(NODE_GROUP)
    assert {g.inputs["nodeGroupName"]: g.inputs["subnetIds"] for g in groups} == {
        f"test-orders-system-{zone[-1]}": [f"subnet-network-{zone}-private"] for zone in ZONES
    }
    for group in groups:
        assert group.inputs["scalingConfig"] == {"desiredSize": 1, "minSize": 1, "maxSize": 2}
        assert group.ignore_changes == ("scalingConfig.desiredSize",)


@pytest.mark.parametrize(
    ("addon", "before"),
    [
        ("vpc-cni", True),
        ("kube-proxy", True),
        ("eks-pod-identity-agent", True),
        ("coredns", False),
        ("aws-ebs-csi-driver", False),
        ("snapshot-controller", False),
        ("eks-node-monitoring-agent", False),
    ],
)
def test_an_addon_stands_on_the_side_of_the_nodes_it_must(
    foundation: Recorded, addon: str, before: bool
) -> None:
    resource = foundation.one("eks/addon:Addon", f"cluster-addon-{addon}")
    for nodes in foundation.of(NODE_GROUP):
        assert (resource.name in nodes.depends_on) is before
        assert (nodes.name in resource.depends_on) is not before


@pytest.mark.parametrize(
    ("addon", "service_account", "policy"),
    [
        ("vpc-cni", "aws-node", "AmazonEKS_CNI_Policy"),
        ("ebs-csi", "ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"),
    ],
)
def test_an_addon_that_calls_aws_has_a_role_of_its_own_before_its_pods_start(
    foundation: Recorded, addon: str, service_account: str, policy: str
) -> None:
    association = foundation.one(ASSOCIATION, f"cluster-{addon}-association")
    assert association.inputs["serviceAccount"] == service_account
    policies = {a.inputs["policyArn"] for a in foundation.of(ATTACHMENT) if addon in a.name}
    assert policies == {f"arn:aws:iam::aws:policy/{policy}"}
    waiting = [a for a in foundation.of(ADDON) if association.name in a.depends_on]
    assert [a.name.endswith(("vpc-cni", "aws-ebs-csi-driver")) for a in waiting] == [True]


def test_nodes_themselves_may_neither_take_addresses_nor_make_volumes(
    layers: dict[str, Recorded],
) -> None:
    for layer, role in (("foundation", "test-orders-system"), ("kafka", "test-orders-nodes")):
        policies = {
            a.inputs["policyArn"].rpartition("/")[2]
            for a in layers[layer].of(ATTACHMENT)
            if a.inputs["role"] == role
        }
        assert policies == {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"}


def test_every_addon_has_a_pinned_version(foundation: Recorded) -> None:
    pinned = {a.inputs["addonName"]: a.inputs["addonVersion"] for a in foundation.of(ADDON)}
    assert pinned == ADDONS
    assert set(pinned) >= {"snapshot-controller", "eks-pod-identity-agent", "coredns"}


def test_the_monitoring_agent_is_left_out_where_nobody_wants_it() -> None:
    assert set(ADDONS) - set(addon_names(node_monitoring=False)) == {NODE_MONITORING}
    assert addon_names(node_monitoring=True) == tuple(ADDONS)


def test_another_kubernetes_needs_another_kube_proxy() -> None:
    (problem,) = versions.problems("1.34", {})
    assert "kube-proxy known here is for 1.35" in problem
    assert versions.problems("1.34", {"kube-proxy": "v1.34.6-eksbuild.11"}) == []


@pytest.mark.parametrize("version", ["v1.36.0-eksbuild.1", "v1.31.14-eksbuild.2"])
def test_a_kube_proxy_that_eks_never_has_beside_a_control_plane_is_refused(version: str) -> None:
    (problem,) = versions.problems("1.35", {"kube-proxy": version})
    assert f"has kube-proxy at {version} beside kubernetes.version 1.35" in problem
    assert "3 minor versions older at the most" in problem
    assert versions.problems("1.35", {"kube-proxy": "v1.32.0-eksbuild.1"}) == []


def test_a_version_of_an_addon_that_is_not_ours_is_refused() -> None:
    (problem,) = versions.problems("1.35", {"kube-poxy": "v1"})
    assert "kube-poxy, which is no add-on of this cluster" in problem


def test_an_addons_version_is_one_as_eks_lists_them() -> None:
    (problem,) = versions.problems("1.35", {"coredns": "latest"})
    assert "has coredns at latest, and EKS's versions read like v1." in problem


def test_the_volume_driver_tags_what_it_makes_and_reports_its_limits(
    foundation: Recorded,
) -> None:
    driver = foundation.one(ADDON, "cluster-addon-aws-ebs-csi-driver")
    told = json.loads(driver.inputs["configurationValues"])
    assert told["controller"]["extraVolumeTags"]["stillwater:cluster"] == "orders"
    assert told["node"]["enableMetrics"] is True


def test_what_needs_the_metadata_service_is_on_its_nodes_network_or_needs_it_not(
    foundation: Recorded,
) -> None:
    driver = foundation.one(ADDON, "cluster-addon-aws-ebs-csi-driver")
    told = json.loads(driver.inputs["configurationValues"])
    assert told["controller"]["region"] == "us-east-1"
    assert told["node"]["hostNetwork"] is True


def test_nobody_reaches_the_api_server_from_outside_unless_named(control_plane: Resource) -> None:
    vpc = control_plane.inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] is False
    office = description(kubernetes={"public_access_cidrs": ["203.0.113.0/24"]})
    vpc = run_layer("foundation", office).one(CLUSTER).inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] is True
    assert vpc["publicAccessCidrs"] == ["203.0.113.0/24"]


def test_the_control_plane_logs_everything_into_a_group_that_expires(
    foundation: Recorded, control_plane: Resource
) -> None:
    assert set(control_plane.inputs["enabledClusterLogTypes"]) == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    logs = foundation.one("cloudwatch/logGroup:LogGroup")
    assert logs.inputs["name"] == "/aws/eks/test-orders/cluster"
    assert logs.inputs["retentionInDays"] == 90
    assert logs.name in control_plane.depends_on


def test_system_nodes_are_never_spot(foundation: Recorded) -> None:
    assert {g.inputs["capacityType"] for g in foundation.of(NODE_GROUP)} == {"ON_DEMAND"}


def test_the_volume_driver_knows_every_value_it_is_told() -> None:
    told = configuration("aws-ebs-csi-driver", "eu-west-1", {"team": "streaming"})
    assert told is not None
    assert unknown_values("aws-ebs-csi-driver-2.64.0", told) == []


@pytest.mark.parametrize(
    ("said", "support"), [({}, "STANDARD"), ({"upgrade_policy": "extended"}, "EXTENDED")]
)
def test_extended_support_is_paid_for_by_who_asks_for_it_alone(
    said: dict[str, str], support: str
) -> None:
    recorded = run_layer("foundation", description(kubernetes=said))
    cluster = recorded.one("eks/cluster:Cluster").inputs
    assert cluster["upgradePolicy"] == {"supportType": support}


def test_network_policies_are_enforced(layers: dict[str, Recorded]) -> None:
    plugin = layers["foundation"].one("eks/addon:Addon", "cluster-addon-vpc-cni").inputs
    # The add-on's schema wants text.
    assert json.loads(plugin["configurationValues"]) == {"enableNetworkPolicy": "true"}
