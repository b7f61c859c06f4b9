"""docs/how-to/restore-a-broker-from-a-snapshot.md: its commands fit what the volumes carry."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.kafka.storage import SNAPSHOT_CLASS, volume_tags
from infra.tags import cluster_tags
from local.kubernetes import ebs
from tests.unit.infra.programs import spec

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "restore-a-broker-from-a-snapshot.md"


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("ec2", region_name="us-east-1")


@pytest.fixture(scope="module")
def guide() -> str:
    return GUIDE.read_text()


def test_the_guide_finds_the_snapshot_of_the_brokers_volume_and_of_no_other(
    ec2: Any, guide: str
) -> None:
    filters = [
        {"Name": name, "Values": [value]}
        for name, value in re.findall(r"Name=(tag:[^,]+),Values=(\S+)", guide)
    ]
    assert len(filters) == 2
    cluster, wanted = spec(environment="prod"), None
    parameters = volume_tags(cluster_tags(cluster).volume_tags(cluster.prefix))
    for claim in ("data-0-orders-broker-a-10", "data-0-orders-broker-b-20"):
        # The twin's driver tags a volume by our storage class's parameters.
        tags = ebs.tags(
            parameters, volume="pvc-1", claim=claim, namespace="kafka", cluster=cluster.prefix
        )
        tag_list = [{"Key": key, "Value": value} for key, value in tags.items()]
        volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=500, VolumeType="gp3")
        # As the schedule does: it copies the volume's tags.
        made = ec2.create_snapshot(
            VolumeId=volume["VolumeId"],
            TagSpecifications=[{"ResourceType": "snapshot", "Tags": tag_list}],
        )
        wanted = wanted or made["SnapshotId"]
    found = ec2.describe_snapshots(OwnerIds=["self"], Filters=filters)["Snapshots"]
    assert [(s["SnapshotId"], s["State"]) for s in found] == [(wanted, "completed")]


def test_the_class_for_snapshots_by_hand_is_ours(guide: str) -> None:
    assert f"volumeSnapshotClassName: {SNAPSHOT_CLASS}" in guide
