"""infra.kafka.storage and what protects data: snapshots by tag, claims kept, leaves protected."""

from __future__ import annotations

from typing import Any

import pytest

from infra.tags import STATEFUL
from tests.unit.infra.programs import description, run_layer, run_layers
from tests.unit.infra.recording import Recorded
from tests.unit.infra.variants import EPHEMERAL

POLICY = "dlm/lifecyclePolicy:LifecyclePolicy"
SNAPSHOT_CLASS = "snapshot.storage.k8s.io/v1:VolumeSnapshotClass"
STORAGE_CLASS = "storage.k8s.io/v1:StorageClass"
NODE_POOL = "kafka.strimzi.io/v1:KafkaNodePool"


@pytest.fixture
def platform(layers: dict[str, Recorded]) -> Recorded:
    return layers["platform"]


def with_snapshots(layers: dict[str, Recorded], chosen: dict[str, Any] | None) -> Recorded:
    references = {"test-foundation": layers["foundation"].outputs}
    return run_layer("platform", description(snapshots=chosen), references)


def test_the_schedule_finds_the_volumes_that_the_storage_class_tags(platform: Recorded) -> None:
    targets = platform.one(POLICY).inputs["policyDetails"]["targetTags"]
    parameters = platform.one(STORAGE_CLASS).inputs["parameters"]
    assert targets == {"stillwater:snapshots": "test-orders"}
    assert "stillwater:snapshots=test-orders" in parameters.values()


def test_root_volumes_are_not_snapshot_with_kafkas(layers: dict[str, Recorded]) -> None:
    for layer in ("foundation", "kafka"):
        for template in layers[layer].of("ec2/launchTemplate:LaunchTemplate"):
            for launched in template.inputs["tagSpecifications"]:
                assert "stillwater:snapshots" not in launched["tags"]


def test_the_spec_says_how_often_and_how_many(layers: dict[str, Recorded]) -> None:
    chosen = {"every_hours": 6, "start_at_utc": "01:30", "kept": 28}
    policy = with_snapshots(layers, chosen).one(POLICY).inputs
    (schedule,) = policy["policyDetails"]["schedules"]
    assert schedule["createRule"] == {"interval": 6, "intervalUnit": "HOURS", "times": "01:30"}
    assert schedule["retainRule"] == {"count": 28}
    assert schedule["copyTags"] is True
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


def test_every_volume_of_kafka_outlives_its_claim(layers: dict[str, Recorded]) -> None:
    pools = layers["kafka"].of(NODE_POOL)
    assert pools
    for pool in pools:
        storage = pool.inputs["spec"]["storage"]
        assert storage["type"] == "jbod"
        assert [volume["deleteClaim"] for volume in storage["volumes"]] == [False] * len(
            storage["volumes"]
        )
        assert {volume["class"] for volume in storage["volumes"]} == {"gp3-kafka"}
    assert layers["platform"].one(STORAGE_CLASS).inputs["reclaimPolicy"] == "Retain"


def test_a_broker_has_the_volumes_of_its_spec(layers: dict[str, Recorded]) -> None:
    pool = layers["kafka"].one(NODE_POOL, "kafka-us-east-1a-broker")
    sizes = [volume["size"] for volume in pool.inputs["spec"]["storage"]["volumes"]]
    assert sizes == ["100Gi", "50Gi"]


def test_what_cannot_be_made_again_is_protected_in_every_layer(
    layers: dict[str, Recorded],
) -> None:
    seen = set()
    for recorded in layers.values():
        for resource in recorded.resources:
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
    for recorded in run_layers(EPHEMERAL["certificates"], real_sizes=True).values():
        assert not [r.name for r in recorded.resources if r.protect]
        for cluster in recorded.of("eks/cluster:Cluster"):
            assert cluster.inputs["deletionProtection"] is False
