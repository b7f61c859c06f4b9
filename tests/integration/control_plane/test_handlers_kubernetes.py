"""λ tick's reader on the real API server: its own EKS token, its own role, nothing but lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.errors import StillwaterError
from handlers.adapters.kubernetes import EksNodes
from local import environment
from local.kubernetes import control_plane

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "ip-10-9-0-1.ec2.internal",
        "labels": {
            "topology.kubernetes.io/zone": "us-east-1a",
            "stillwater.dev/pool": "broker",
        },
    },
    "spec": {"providerID": "aws:///us-east-1a/i-0a"},
}
CSI_NODE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSINode",
    "metadata": {"name": NODE["metadata"]["name"]},
    "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-0a", "topologyKeys": []}]},
}


@pytest.fixture
def reader(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> EksNodes:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", plane.admin.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", plane.admin.secret_key)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", plane.place.url("moto"))
    return EksNodes(
        endpoint=plane.place.url("apiserver", "https"),
        ca_pem=control_plane.ca_file(plane.place).read_text(),
        eks_cluster=plane.cluster,
        region=environment.REGION,
        namespace="kafka",
        kafka_cluster="orders",
    )


def test_nodes_and_their_drivers_are_read_with_an_eks_token(plane: Plane, reader: EksNodes) -> None:
    plane.api.post("/api/v1/nodes", NODE)
    plane.api.post("/apis/storage.k8s.io/v1/csinodes", CSI_NODE)
    try:
        seen = {node.name: node for node in reader.nodes()}[str(CSI_NODE["metadata"]["name"])]
    finally:
        plane.api.delete(f"/apis/storage.k8s.io/v1/csinodes/{CSI_NODE['metadata']['name']}")
        plane.api.delete(f"/api/v1/nodes/{CSI_NODE['metadata']['name']}")
    assert (seen.instance_id, seen.zone, seen.pool) == ("i-0a", "us-east-1a", "broker")
    assert seen.csi_ready
    assert not seen.ready
    assert reader.kafka_pods() == ()
    assert reader.attachments() == {}


def test_an_identity_without_an_access_entry_is_refused_in_a_sentence(
    reader: EksNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    with pytest.raises(StillwaterError, match="answered 401 to GET /api/v1/"):
        reader.kafka_pods()
