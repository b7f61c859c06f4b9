"""infra.eks: access by entries, secrets encrypted, add-ons in order, what instances are told."""

import base64
import email
import json
from typing import Any

import pytest

from core.cluster.network import service_cidr
from core.ground.errors import InvalidInput
from infra import versions
from infra.eks.cluster import NODE_MONITORING, addon_names
from infra.eks.launch import is_arm, managed_ami_type
from infra.tags import Tags
from infra.versions import ADDONS, ADDONS_KUBERNETES, doubts, problems
from tests.every_case import every_case
from tests.unit.infra.programs import ZONES, description, run_layer, spec
from tests.unit.infra.recording import CA, ENDPOINT, Recorded, Resource

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


def test_access_is_by_entries_within_the_vpc_and_secrets_have_a_rotating_key(
    foundation: Recorded, control_plane: Resource
) -> None:
    assert control_plane.inputs["accessConfig"]["authenticationMode"] == "API"
    assert control_plane.inputs["vpcConfig"]["endpointPrivateAccess"]
    encryption = control_plane.inputs["encryptionConfig"]
    key = foundation.one("kms/key:Key")
    assert encryption["resources"] == ["secrets"]
    assert encryption["provider"]["keyArn"].endswith(f":key/{key.name}")
    assert key.inputs["enableKeyRotation"]


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
        assert group.inputs["capacityType"] == "ON_DEMAND"
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
def test_addons_precede_or_follow_nodes(foundation: Recorded, addon: str, before: bool) -> None:
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


def test_nodes_may_neither_take_addresses_nor_make_volumes(layers: dict[str, Recorded]) -> None:
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
    assert f"has kube-proxy at {version} with kubernetes.version 1.35" in problem
    assert "3 minor versions older" in problem
    assert versions.problems("1.35", {"kube-proxy": "v1.32.0-eksbuild.1"}) == []


def test_an_addon_that_is_not_ours_or_a_version_that_eks_has_not_is_refused() -> None:
    (problem,) = versions.problems("1.35", {"kube-poxy": "v1"})
    assert "kube-poxy, which is not an add-on of this cluster" in problem
    (problem,) = versions.problems("1.35", {"coredns": "latest"})
    assert "has coredns at latest, and EKS's versions read like v1." in problem


def test_the_volume_driver_reports_its_limits_and_needs_no_metadata_service(
    foundation: Recorded,
) -> None:
    driver = foundation.one(ADDON, "cluster-addon-aws-ebs-csi-driver")
    told = json.loads(driver.inputs["configurationValues"])
    assert told["controller"]["region"] == "us-east-1"
    assert told["node"] == {"enableMetrics": True, "hostNetwork": True}


def test_nobody_reaches_the_api_server_from_outside_unless_named(control_plane: Resource) -> None:
    vpc = control_plane.inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] is False
    office = description(kubernetes={"public_access_cidrs": ["203.0.113.0/24"]})
    vpc = run_layer("foundation", office).one(CLUSTER).inputs["vpcConfig"]
    assert vpc["endpointPublicAccess"] is True
    assert vpc["publicAccessCidrs"] == ["203.0.113.0/24"]


def test_all_control_plane_logs_expire(foundation: Recorded, control_plane: Resource) -> None:
    expected = {"api", "audit", "authenticator", "controllerManager", "scheduler"}
    assert set(control_plane.inputs["enabledClusterLogTypes"]) == expected
    logs = foundation.one("cloudwatch/logGroup:LogGroup")
    assert logs.inputs["name"] == "/aws/eks/test-orders/cluster"
    assert logs.inputs["retentionInDays"] == 90
    assert logs.name in control_plane.depends_on


@pytest.mark.parametrize(
    ("said", "support"), [({}, "STANDARD"), ({"upgrade_policy": "extended"}, "EXTENDED")]
)
def test_extended_support_is_paid_for_by_who_asks(said: dict[str, str], support: str) -> None:
    recorded = run_layer("foundation", description(kubernetes=said))
    cluster = recorded.one("eks/cluster:Cluster").inputs
    assert cluster["upgradePolicy"] == {"supportType": support}


def test_network_policies_are_enforced(layers: dict[str, Recorded]) -> None:
    plugin = layers["foundation"].one("eks/addon:Addon", "cluster-addon-vpc-cni").inputs
    # The add-on's schema wants text.
    assert json.loads(plugin["configurationValues"]) == {"enableNetworkPolicy": "true"}


TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


def node_config(encoded: str) -> dict[str, Any]:
    """Return the NodeConfig as nodeadm would find it."""
    message = email.message_from_bytes(base64.b64decode(encoded))
    parts = [part for part in message.walk() if not part.is_multipart()]
    assert [part.get_content_type() for part in parts] == ["application/node.eks.aws"]
    return dict(json.loads(parts[0].get_payload()))


def test_a_broker_node_joins_its_cluster_and_outlasts_the_grace_of_its_pods(
    layers: dict[str, Recorded],
) -> None:
    template = layers["kafka"].one(TEMPLATE, "nodes-us-east-1b-broker-template")
    told = node_config(template.inputs["userData"])["spec"]
    config = told["kubelet"].pop("config")
    assert told == {
        "cluster": {
            "name": "test-orders",
            "apiServerEndpoint": ENDPOINT,
            "certificateAuthority": CA,
            "cidr": "172.20.0.0/16",
        },
        "kubelet": {
            "flags": [
                "--node-labels=stillwater.dev/pool=broker",
                "--register-with-taints=dedicated=kafka:NoSchedule",
            ]
        },
    }
    total, critical = (
        int(config[key].removesuffix("s"))
        for key in ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")
    )
    assert total - critical > spec().timings.pod_grace_seconds
    assert critical > 0


@every_case(
    ("instance_type", "arm"),
    [
        ("m7g.large", True),
        ("c7gn.xlarge", True),
        ("r8gd.2xlarge", True),
        ("im4gn.large", True),
        ("a1.large", True),
        ("g5g.xlarge", True),
        ("g5.xlarge", False),
        ("m7i.large", False),
        ("r6id.xlarge", False),
    ],
)
def test_the_image_fits_the_processor(instance_type: str, arm: bool) -> None:
    assert is_arm(instance_type) is arm
    assert managed_ami_type(instance_type).startswith("AL2023_ARM" if arm else "AL2023_x86")


def test_the_image_is_recommended_for_the_version(layers: dict[str, Recorded]) -> None:
    names = {args["name"] for token, args in layers["kafka"].invokes if "ssm" in token}
    assert names == {
        "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id"
    }


@pytest.mark.parametrize(
    ("vpc", "services"), [("10.40.0.0/16", "172.20.0.0/16"), ("172.20.0.0/18", "10.100.0.0/16")]
)
def test_service_addresses_never_overlap_the_vpc(vpc: str, services: str) -> None:
    assert service_cidr([vpc]) == services


def test_services_keep_away_from_every_block_of_the_vpc() -> None:
    assert service_cidr(["172.20.0.0/16", "10.100.0.0/16"]) == "192.168.0.0/16"
    with pytest.raises(InvalidInput, match=r"leave no room .* network\.secondary_cidrs"):
        service_cidr(["172.20.0.0/16", "10.100.0.0/16", "192.168.0.0/16", "172.31.0.0/16"])


MAJOR, MINOR, _ = ADDONS["coredns"].split(".", 2)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({}, 0),
        ({"coredns": f"{MAJOR}.{MINOR}.99-eksbuild.1"}, 0),
        ({"coredns": f"{MAJOR}.{int(MINOR) - 4}.7-eksbuild.1"}, 1),
        ({"snapshot-controller": "v6.3.0-eksbuild.1"}, 1),
        # Of it the gate knows what fits.
        ({"kube-proxy": "v1.34.0-eksbuild.2"}, 0),
    ],
    ids=["ours", "another patch", "an old minor", "an old major", "kube-proxy"],
)
def test_a_version_nobody_tried_is_named_with_who_knows(chosen: dict[str, str], said: int) -> None:
    assert problems(ADDONS_KUBERNETES, chosen) == []
    found = doubts(ADDONS_KUBERNETES, chosen)
    assert len(found) == said
    assert all("preflight" in sentence for sentence in found)


def test_the_users_tags_are_kept_but_never_hide_ours() -> None:
    tags = Tags(
        cluster="orders", environment="prod", extra={"team": "x", "stillwater:cluster": "mine"}
    )
    assert tags.everywhere["team"] == "x"
    assert tags.everywhere["stillwater:cluster"] == "orders"
