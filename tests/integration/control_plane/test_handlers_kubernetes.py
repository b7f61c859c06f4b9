"""λ tick's reader on the real API server: its own EKS token, its own role, nothing but lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from botocore.credentials import ReadOnlyCredentials

from core.ground.errors import StillwaterError
from core.incidents.observation import NodeView
from handlers.adapters.kubernetes import EksNodes
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration


@pytest.fixture
def reader(plane: Plane) -> EksNodes:
    return EksNodes(plane.handlers_api(), "kafka", "orders")


def test_nodes_and_their_drivers_are_read_with_an_eks_token(plane: Plane, reader: EksNodes) -> None:
    owned = {"Name": f"tag:kubernetes.io/cluster/{plane.cluster}", "Values": ["owned"]}
    running = {"Name": "instance-state-name", "Values": ["running"]}
    found = plane.aws("ec2").describe_instances(Filters=[owned, running])["Reservations"]
    zones = {
        instance["InstanceId"]: instance["Placement"]["AvailabilityZone"]
        for reservation in found
        for instance in reservation["Instances"]
        if "eks:nodegroup-name" in {tag["Key"] for tag in instance["Tags"]}
    }
    assert zones

    def nodes() -> dict[str, NodeView] | None:
        seen = {n.instance_id: n for n in reader.nodes() if n.instance_id in zones}
        able = len(seen) == len(zones) and all(n.ready and n.csi_ready for n in seen.values())
        return {str(id_): node for id_, node in seen.items()} if able else None

    seen = until(nodes, "every node of the group is ready, its EBS driver too")
    assert {id_: node.zone for id_, node in seen.items()} == zones
    assert {node.pool for node in seen.values()} == {"system"}
    assert all(node.schedulable for node in seen.values())
    assert reader.kafka_pods() == ()


def test_an_identity_without_an_access_entry_is_refused_in_a_sentence(plane: Plane) -> None:
    nobody = ReadOnlyCredentials(plane.admin.access_key, "not-the-secret", None)
    reader = EksNodes(replace(plane, admin=nobody).handlers_api(), "kafka", "orders")
    with pytest.raises(StillwaterError, match="answered 401 to GET /api/v1/"):
        reader.kafka_pods()
