"""The snapshot controller's kinds are there as long as any cluster of the twin has its add-on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.kubernetes.client import ApiError
from local.kubernetes.crds import DEFINITIONS
from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_eks import SNAPSHOT_CONTROLLER, AddonAdapter
from local.pulumi.provider import Existing, Resource

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = [pytest.mark.integration, pytest.mark.long]
URN = "urn:pulumi:tide-foundation::stillwater::aws:eks/addon:Addon::cluster-addon-snapshots"
KIND = f"{DEFINITIONS}/volumesnapshotclasses.snapshot.storage.k8s.io"


def test_an_add_on_that_goes_leaves_the_kinds_another_cluster_has(plane: Plane) -> None:
    # The foundation of the twin's own cluster has them already.
    aws, resource = Aws(plane.place), Resource(URN)
    inputs = {"clusterName": "tide", "addonName": SNAPSHOT_CONTROLLER, "addonVersion": "v1"}
    for _ in range(2):
        made = AddonAdapter().create(aws, resource, inputs)
        AddonAdapter().delete(aws, Existing(resource, made.id, inputs, {}))
        kind = plane.api.get(KIND)["metadata"]
        assert "deletionTimestamp" not in kind
        assert "eks-tide" not in {entry["manager"] for entry in kind["managedFields"]}


def test_the_last_add_on_takes_its_kinds_and_the_next_brings_them_again(plane: Plane) -> None:
    aws, resource = Aws(plane.place), Resource(URN)
    inputs = {"clusterName": plane.cluster, "addonName": SNAPSHOT_CONTROLLER, "addonVersion": "v1"}
    for _ in range(3):
        AddonAdapter().delete(aws, Existing(resource, "unused", inputs, {}))
        with pytest.raises(ApiError, match="not found"):
            plane.api.get(KIND)
        AddonAdapter().create(aws, resource, inputs)
        assert "deletionTimestamp" not in plane.api.get(KIND)["metadata"]
