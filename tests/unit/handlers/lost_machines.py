"""A machine that ends without a drain, and what Kubernetes and its group make of that."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.handlers.fakes import NEW, OLD, FakeCluster, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station


def end_instance(cluster: FakeCluster, instance_id: str, state: str = "stopped") -> None:
    """EC2 ends an instance; its kubelet falls silent, and its Node stays for now."""
    cluster.set_state(instance_id, state)
    cluster.node_views[instance_id] = replace(cluster.node_views[instance_id], ready=False)


def move_pod(station: Station) -> None:
    """Kubernetes gives up the pod, the group replaces the instance, the pod starts there."""
    station.cluster.attached.pop(node_named(OLD), None)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
