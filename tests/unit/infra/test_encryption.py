"""The key of the volumes: on every one of them, with a grant for each who makes or mounts one."""

from __future__ import annotations

import json

import pytest

from tests.unit.infra.recording import Recorded
from tests.unit.infra.variants import EVERYTHING, recorded

KEY = EVERYTHING["encryption_key"]
ROLE = "arn:aws:iam::123456789012:role"
SCALING = f"{ROLE}/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


@pytest.fixture(scope="module")
def held(cache: None) -> dict[str, Recorded]:
    return recorded("certificates")


def test_every_volume_of_a_node_has_the_key(held: dict[str, Recorded]) -> None:
    templates = [
        t for layer in held.values() for t in layer.of("ec2/launchTemplate:LaunchTemplate")
    ]
    assert len(templates) > 6
    for template in templates:
        mapped = template.inputs["blockDeviceMappings"]
        assert [each["ebs"]["kmsKeyId"] for each in mapped] == [KEY]


def test_every_volume_of_kafka_has_the_key(held: dict[str, Recorded]) -> None:
    storage = held["platform"].one("storage.k8s.io/v1:StorageClass").inputs["parameters"]
    assert storage["kmsKeyId"] == KEY


def test_who_launches_nodes_and_who_makes_volumes_may_use_it(held: dict[str, Recorded]) -> None:
    grants = held["foundation"].of("kms/grant:Grant")
    assert {g.inputs["keyId"] for g in grants} == {KEY}
    assert {g.inputs["granteePrincipal"] for g in grants} == {
        SCALING,
        f"{ROLE}/test-orders-ebs-csi",
    }
    for grant in grants:
        assert {"CreateGrant", "Decrypt", "GenerateDataKeyWithoutPlaintext"} <= set(
            grant.inputs["operations"]
        )


def test_no_node_starts_before_its_launcher_may_use_the_key(held: dict[str, Recorded]) -> None:
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
