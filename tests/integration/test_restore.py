"""docs/how-to/restore-a-broker-from-a-snapshot.md, followed step by step on the shared cluster."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.cluster import Storage
from core.ground import naming
from infra.kafka.storage import attributes_class
from local.demo import spec as demo_spec
from local.kubernetes.client import find, has_condition
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "restore-a-broker-from-a-snapshot.md"
BROKER, NODE_POOL, ZONE = 20, "broker-b", demo_spec.ZONES[1]
# What the guide's examples say, and what they would say of this broker. The order matters.
EXAMPLE = {
    "data-0-orders-broker-a-10": naming.claim(demo_spec.CLUSTER, NODE_POOL, BROKER, 0),
    "prod-orders": f"{demo_spec.ENVIRONMENT}-{demo_spec.CLUSTER}",
    "Value=orders": f"Value={demo_spec.CLUSTER}",
    "Value=prod": f"Value={demo_spec.ENVIRONMENT}",
    "us-east-1a": ZONE,
    "cluster: orders": f"cluster: {demo_spec.CLUSTER}",
    "pool-name: broker-a": f"pool-name: {NODE_POOL}",
}
CLAIM = EXAMPLE["data-0-orders-broker-a-10"]
SIZE_GIB = 100
POD = naming.pod(demo_spec.CLUSTER, NODE_POOL, BROKER)
READY_SECONDS = 120.0
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture(scope="module")
def guide() -> str:
    text = GUIDE.read_text()
    for example, ours in EXAMPLE.items():
        assert example in text
        text = text.replace(example, ours)
    # Whatever performance and size the example has, these are this broker's.
    text = re.sub(r"gp3-\d+-\d+", attributes_class(Storage(size_gib=SIZE_GIB)), text)
    return re.sub(r"\b\d+Gi\b", f"{SIZE_GIB}Gi", text)


@pytest.fixture
def paused(cluster: Cluster) -> Iterator[None]:
    """Step 3: Strimzi's hands are off for the test."""
    namespace = cluster.outputs["namespace"]
    path = f"/apis/kafka.strimzi.io/v1/namespaces/{namespace}/kafkas/{demo_spec.CLUSTER}"

    def annotate(value: str | None) -> None:
        pause = {"strimzi.io/pause-reconciliation": value}
        cluster.twin.api.merge(path, {"metadata": {"annotations": pause}})

    annotate("true")
    yield
    annotate(None)
    cluster.settle()


def restored_volume(cluster: Cluster, guide: str, source: str) -> str:
    """Steps 1 and 2: snapshot a volume as the schedule does, find it, make a volume of it."""
    ec2 = cluster.twin.aws("ec2")
    (old,) = ec2.describe_volumes(VolumeIds=[source])["Volumes"]
    made = ec2.create_snapshot(
        VolumeId=source, TagSpecifications=[{"ResourceType": "snapshot", "Tags": old["Tags"]}]
    )
    filters = [
        {"Name": name, "Values": [value]}
        for name, value in re.findall(r"Name=(tag:[^,]+),Values=(\S+)", guide)
    ]
    (snapshot,) = ec2.describe_snapshots(OwnerIds=["self"], Filters=filters)["Snapshots"]
    assert (snapshot["SnapshotId"], snapshot["State"]) == (made["SnapshotId"], "completed")
    tags = [
        {"Key": key, "Value": value}
        for key, value in re.findall(r"\{Key=([^,]+),Value=([^}]+)\}", guide)
    ]
    fresh = ec2.create_volume(
        SnapshotId=snapshot["SnapshotId"],
        AvailabilityZone=ZONE,
        VolumeType="gp3",
        Size=SIZE_GIB,
        Iops=3000,
        Throughput=125,
        TagSpecifications=[{"ResourceType": "volume", "Tags": tags}],
    )
    ec2.delete_snapshot(SnapshotId=snapshot["SnapshotId"])
    return str(fresh["VolumeId"])


@pytest.mark.long
@pytest.mark.usefixtures("paused")
def test_a_broker_comes_back_on_the_volume_of_its_snapshot(cluster: Cluster, guide: str) -> None:
    api, namespace = cluster.twin.api, cluster.outputs["namespace"]
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    pod = f"/api/v1/namespaces/{namespace}/pods/{POD}"
    old = api.get(f"{claims}/{CLAIM}")["spec"]["volumeName"]
    handle = api.get(f"{VOLUMES}/{old}")["spec"]["csi"]["volumeHandle"]
    fresh = restored_volume(cluster, guide, handle)

    api.delete(f"{claims}/{CLAIM}")
    before = api.get(pod)["metadata"]["uid"]
    api.delete(pod)
    cluster.until(lambda: find(api, f"{claims}/{CLAIM}") is None, "the claim is gone")

    (text,) = re.findall(r"<<'YAML'\n(.*?)\nYAML", guide, re.DOTALL)
    volume, claim = yaml.safe_load_all(text)
    volume["spec"]["csi"]["volumeHandle"] = fresh
    api.post(VOLUMES, volume)
    api.post(claims, claim)

    def bound() -> bool:
        return bool(api.get(f"{claims}/{CLAIM}")["status"]["phase"] == "Bound")

    def ready() -> dict[str, Any] | None:
        found = find(api, pod)
        if found is None or found["metadata"]["uid"] == before:
            return None
        return found if has_condition(found) else None

    cluster.until(bound, "the claim is bound to the restored volume")
    cluster.until(ready, "the broker is Ready on it", READY_SECONDS)
    ec2 = cluster.twin.aws("ec2")
    (attached,) = ec2.describe_volumes(VolumeIds=[fresh])["Volumes"]
    assert attached["State"] == "in-use"
    assert api.get(f"{VOLUMES}/{old}")["status"]["phase"] == "Released"

    # Step 7. It is retained: the API lets go of it at once, and EBS keeps it until told.
    api.delete(f"{VOLUMES}/{old}")
    cluster.until(lambda: find(api, f"{VOLUMES}/{old}") is None, "the old volume is deleted")
    assert ec2.describe_volumes(VolumeIds=[handle])["Volumes"][0]["State"] == "available"
    ec2.delete_volume(VolumeId=handle)
