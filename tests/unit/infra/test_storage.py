"""infra.kafka.storage: volumes are encrypted, made where the pod is, growable, and kept."""

from __future__ import annotations

import pytest

from core.ground import naming
from tests.unit.infra.recording import Recorded

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


def test_volumes_carry_our_tags_though_the_driver_makes_them(platform: Recorded) -> None:
    parameters = platform.one(f"{STORAGE}StorageClass").inputs["parameters"]
    tags = {value for key, value in parameters.items() if key.startswith("tagSpecification_")}
    assert "stillwater:cluster=orders" in tags


def test_every_performance_asked_for_has_a_class(platform: Recorded) -> None:
    classes = platform.of(f"{STORAGE}VolumeAttributesClass")
    assert {c.inputs["metadata"]["name"]: c.inputs["parameters"] for c in classes} == {
        "gp3-3000-125": {"type": "gp3", "iops": "3000", "throughput": "125"},
        "gp3-4000-250": {"type": "gp3", "iops": "4000", "throughput": "250"},
    }


def test_nobody_waits_for_a_class_that_volumes_still_use(platform: Recorded) -> None:
    for each in platform.of(f"{STORAGE}VolumeAttributesClass"):
        assert each.inputs["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
