"""infra.kafka.storage: volumes encrypted by a key with its grants, kept, and with snapshots."""

import json
from typing import Any

import pytest

from core.ground import naming
from infra.tags import STATEFUL
from tests.unit.infra.programs import description, run_layer, run_layers
from tests.unit.infra.recording import Recorded
from tests.unit.infra.variants import EPHEMERAL, EVERYTHING, recorded

STORAGE = "storage.k8s.io/v1:"


@pytest.fixture
def platform(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


def test_every_storage_class_keeps_encrypts_and_waits_for_the_pod(platform: Recorded) -> None:
    classes = [each.inputs for each in platform.of(f"{STORAGE}StorageClass")]
    assert [each["metadata"]["name"] for each in classes] == [naming.STORAGE_CLASS]
    for each in classes:
        assert each["provisioner"] == "ebs.csi.aws.com"
        assert each["reclaimPolicy"] == "Retain"
        assert each["volumeBindingMode"] == "WaitForFirstConsumer"
        assert each["allowVolumeExpansion"] is True
        assert each["parameters"]["type"] == "gp3"
        assert each["parameters"]["encrypted"] == "true"


def test_every_performance_has_a_class_for_whose_end_nobody_waits(platform: Recorded) -> None:
    classes = platform.of(f"{STORAGE}VolumeAttributesClass")
    assert {c.inputs["metadata"]["name"]: c.inputs["parameters"] for c in classes} == {
        "gp3-3000-125": {"type": "gp3", "iops": "3000", "throughput": "125"},
        "gp3-4000-250": {"type": "gp3", "iops": "4000", "throughput": "250"},
    }
    for each in classes:
        assert each.inputs["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


KEY = EVERYTHING["encryption_key"]
ROLE = "arn:aws:iam::123456789012:role"
SCALING = f"{ROLE}/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


@pytest.fixture(scope="module")
def held(cache: None) -> dict[str, Recorded]:
    return recorded("certificates")


def test_every_volume_has_the_key(held: dict[str, Recorded]) -> None:
    templates = [
        t for layer in held.values() for t in layer.of("ec2/launchTemplate:LaunchTemplate")
    ]
    assert len(templates) > 6
    for template in templates:
        mapped = template.inputs["blockDeviceMappings"]
        assert [each["ebs"]["kmsKeyId"] for each in mapped] == [KEY]
    storage = held["platform"].one("storage.k8s.io/v1:StorageClass").inputs["parameters"]
    assert storage["kmsKeyId"] == KEY


def test_who_launches_nodes_and_who_makes_volumes_may_use_it(held: dict[str, Recorded]) -> None:
    grants = held["foundation"].of("kms/grant:Grant")
    assert {g.inputs["keyId"] for g in grants} == {KEY}
    expected = {SCALING, f"{ROLE}/test-orders-ebs-csi"}
    assert {g.inputs["granteePrincipal"] for g in grants} == expected
    for grant in grants:
        assert {"CreateGrant", "Decrypt", "GenerateDataKeyWithoutPlaintext"} <= set(
            grant.inputs["operations"]
        )
    # No node starts before its launcher may use the key.
    for group in held["foundation"].of("eks/nodeGroup:NodeGroup"):
        assert "cluster-scaling-grant" in group.depends_on


def test_karpenter_encrypts_what_it_launches_under_the_key(cache: None) -> None:
    layers = recorded("karpenter with everything")
    grantees = {g.inputs["granteePrincipal"] for g in layers["platform"].of("kms/grant:Grant")}
    assert grantees == {f"{ROLE}/test-orders-karpenter"}
    for node_class in layers["kafka"].of("karpenter.k8s.aws/v1:EC2NodeClass"):
        assert node_class.inputs["spec"]["blockDeviceMappings"][0]["ebs"]["kmsKeyID"] == KEY


def test_without_a_key_nothing_names_one(layers: dict[str, Recorded]) -> None:
    for layer in layers.values():
        assert layer.of("kms/grant:Grant") == []
        for template in layer.of("ec2/launchTemplate:LaunchTemplate"):
            assert "kmsKeyId" not in json.dumps(template.inputs)


POLICY = "dlm/lifecyclePolicy:LifecyclePolicy"
SNAPSHOT_CLASS = "snapshot.storage.k8s.io/v1:VolumeSnapshotClass"
STORAGE_CLASS = "storage.k8s.io/v1:StorageClass"


def with_snapshots(layers: dict[str, Recorded], chosen: dict[str, Any] | None) -> Recorded:
    references = {"test-foundation": layers["foundation"].outputs}
    return run_layer("platform", description(snapshots=chosen), references)


def test_root_volumes_are_not_snapshot_with_kafkas(layers: dict[str, Recorded]) -> None:
    for layer in ("foundation", "kafka"):
        for template in layers[layer].of("ec2/launchTemplate:LaunchTemplate"):
            for launched in template.inputs["tagSpecifications"]:
                assert "stillwater:snapshots" not in launched["tags"]


def test_the_spec_says_how_often_and_how_many(layers: dict[str, Recorded]) -> None:
    chosen = {"every_hours": 6, "start_at_utc": "01:30", "kept": 28}
    policy = with_snapshots(layers, chosen).one(POLICY).inputs
    assert policy["policyDetails"]["targetTags"] == {"stillwater:snapshots": "test-orders"}
    (schedule,) = policy["policyDetails"]["schedules"]
    assert schedule["createRule"] == {"interval": 6, "intervalUnit": "HOURS", "times": "01:30"}
    assert schedule["retainRule"] == {"count": 28}
    assert policy["state"] == "ENABLED"


def test_no_schedule_leaves_the_class_for_snapshots_by_hand(layers: dict[str, Recorded]) -> None:
    recorded = with_snapshots(layers, None)
    assert not recorded.of(POLICY)
    assert recorded.one(SNAPSHOT_CLASS).inputs["deletionPolicy"] == "Retain"


def test_it_snapshots_and_deletes_this_clusters_alone(platform: Recorded) -> None:
    policy = platform.one("iam/rolePolicy:RolePolicy", "snapshots-policy")
    ours = {"StringEquals": {"aws:ResourceTag/stillwater:snapshots": "test-orders"}}
    for statement in policy.policy_statements:
        if statement["Sid"] in ("SnapshotOurVolumes", "DeleteOurOldOnes"):
            assert statement["Condition"] == ours


def test_what_cannot_be_made_again_is_protected_in_every_layer(layers: dict[str, Recorded]) -> None:
    seen = set()
    for layer in layers.values():
        for resource in layer.resources:
            assert resource.protect is (resource.type in STATEFUL), resource.name
            seen.add(resource.type)
    assert seen >= {
        "aws:dynamodb/table:Table",
        "aws:eks/cluster:Cluster",
        "aws:s3/bucket:Bucket",
        "kubernetes:kafka.strimzi.io/v1:Kafka",
        "kubernetes:storage.k8s.io/v1:StorageClass",
    }


def test_aws_itself_refuses_to_delete_the_cluster(layers: dict[str, Recorded]) -> None:
    assert layers["foundation"].one("eks/cluster:Cluster").inputs["deletionProtection"] is True


def test_an_ephemeral_environment_can_be_destroyed(cache: None) -> None:
    for layer in run_layers(EPHEMERAL["certificates"], real_sizes=True).values():
        assert not [r.name for r in layer.resources if r.protect]
        for cluster in layer.of("eks/cluster:Cluster"):
            assert cluster.inputs["deletionProtection"] is False
