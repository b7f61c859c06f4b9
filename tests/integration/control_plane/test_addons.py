"""The snapshot controller's kinds come and go with its add-on, as often as that is made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.kubernetes.client import ApiError
from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_addons import DEFINITIONS, SNAPSHOT_CONTROLLER, Addon
from local.pulumi.provider import Existing, Resource

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
URN = "urn:pulumi:tide-foundation::stillwater::aws:eks/addon:Addon::cluster-addon-snapshots"
KIND = f"{DEFINITIONS}/volumesnapshotclasses.snapshot.storage.k8s.io"


def test_an_add_on_made_right_after_its_end_has_its_kinds(plane: Plane) -> None:
    aws, resource = Aws(plane.place), Resource(URN)
    inputs = {"clusterName": "tide", "addonName": SNAPSHOT_CONTROLLER, "addonVersion": "v1"}
    for _ in range(3):
        made = Addon().create(aws, resource, inputs)
        assert "deletionTimestamp" not in plane.api.get(KIND)["metadata"]
        Addon().delete(aws, Existing(resource, made.id, inputs, {}))
    with pytest.raises(ApiError, match="not found"):
        plane.api.get(KIND)
