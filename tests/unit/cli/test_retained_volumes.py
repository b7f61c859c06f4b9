"""cli.kafka_layer: which volumes a destroyed ephemeral environment takes with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cli.kafka_layer import VOLUMES, delete_retained, retained_volumes
from core.ground.errors import StillwaterError
from infra.eks.api import Api


def volume(
    name: str, *, phase: str = "Released", namespace: str = "kafka", driver: str = "ebs.csi.aws.com"
) -> dict[str, Any]:
    spec = {
        "csi": {"driver": driver},
        "claimRef": {"namespace": namespace},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


class Cluster(Api):
    """An API server whose EBS driver deletes what it may, or hangs."""

    def __init__(self, *volumes: dict[str, Any], hangs: bool = False) -> None:
        self.volumes = {v["metadata"]["name"]: v for v in volumes}
        self.hangs = hangs

    def get(self, path: str) -> dict[str, Any]:
        assert path == VOLUMES
        return {"items": list(self.volumes.values())}

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        self.volumes[name]["spec"] |= body["spec"]
        policy = self.volumes[name]["spec"]["persistentVolumeReclaimPolicy"]
        if policy == "Delete" and not self.hangs:
            del self.volumes[name]
        return {}


@pytest.mark.parametrize(
    "kept",
    [
        volume("in-use", phase="Bound"),
        volume("of-others", namespace="billing"),
        volume("no-ebs", driver="efs.csi.aws.com"),
        {**volume("no-csi"), "spec": {"hostPath": {"path": "/x"}}},
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_only_ebs_volumes_that_this_kafkas_claims_left_are_deleted(kept: dict[str, Any]) -> None:
    cluster = Cluster(volume("left"), kept)
    assert retained_volumes(list(cluster.volumes.values()), "kafka") == ("left",)
    assert delete_retained(cluster, "kafka") == ("left",)
    assert list(cluster.volumes) == [kept["metadata"]["name"]]


def test_a_driver_that_does_not_delete_is_named_with_the_volume() -> None:
    cluster = Cluster(volume("left"), hangs=True)
    with pytest.raises(StillwaterError, match=r"has not deleted left within 0 s"):
        delete_retained(cluster, "kafka", limit_seconds=0)
