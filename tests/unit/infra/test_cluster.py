"""infra.cluster: access by entries, secrets encrypted, add-ons in the order nodes need them."""

from __future__ import annotations

import pytest

from tests.unit.infra.programs import ZONES
from tests.unit.infra.recording import Recorded, Resource

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
    assert encryption["provider"]["keyArn"].endswith(f":{key.name}")
    assert key.inputs["enableKeyRotation"]


def test_nodes_reach_the_control_plane_without_leaving_the_vpc(control_plane: Resource) -> None:
    assert control_plane.inputs["vpcConfig"]["endpointPrivateAccess"]


def test_system_nodes_stand_in_every_zone_in_a_group_of_its_own(foundation: Recorded) -> None:
    groups = foundation.of(NODE_GROUP)
    assert {g.inputs["nodeGroupName"]: g.inputs["subnetIds"] for g in groups} == {
        f"test-orders-system-{zone[-1]}": [f"network-{zone}-private-id"] for zone in ZONES
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
    ],
)
def test_an_addon_stands_on_the_side_of_the_nodes_it_must(
    foundation: Recorded, addon: str, before: bool
) -> None:
    resource = foundation.one("eks/addon:Addon", f"cluster-addon-{addon}")
    for nodes in foundation.of(NODE_GROUP):
        assert (resource.name in nodes.depends_on) is before
        assert (nodes.name in resource.depends_on) is not before


def test_the_volume_driver_has_a_role_of_its_own(foundation: Recorded) -> None:
    association = foundation.one("eks/podIdentityAssociation:PodIdentityAssociation")
    assert association.inputs["serviceAccount"] == "ebs-csi-controller-sa"
    policies = {a.inputs["policyArn"] for a in foundation.of(ATTACHMENT) if "ebs-csi" in a.name}
    assert policies == {"arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2"}


def test_the_volume_driver_starts_behind_its_role_in_a_cluster_that_is_there(
    foundation: Recorded, control_plane: Resource
) -> None:
    association = foundation.one("eks/podIdentityAssociation:PodIdentityAssociation")
    driver = foundation.one("eks/addon:Addon", "cluster-addon-aws-ebs-csi-driver")
    assert control_plane.name in association.depends_on
    assert {association.name, "cluster-ebs-csi-policy"} <= driver.depends_on
