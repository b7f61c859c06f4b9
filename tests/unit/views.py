"""What is seen of a cluster: all of it is well, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from core.incidents.observation import NodeView
from core.views import ClusterView, PartitionView, VoterView


def kafka_view(
    brokers: Iterable[int], *partitions: PartitionView, fenced: Iterable[int] = (), **changed: Any
) -> ClusterView:
    """Return a reading of Kafka with three controllers that keep up, of which 1 leads."""
    whole = ClusterView(
        brokers=frozenset(brokers),
        fenced=frozenset(fenced),
        voters=tuple(VoterView(n, 0.0) for n in (0, 1, 2)),
        quorum_leader=1,
        partitions=partitions,
    )
    return replace(whole, **changed)


def node_view(name: str, instance_id: str, zone: str = "z", **changed: Any) -> NodeView:
    """Return a node of the brokers' pool that is Ready and takes pods and volumes."""
    usual = NodeView(
        name=name,
        instance_id=instance_id,
        zone=zone,
        pool="broker",
        ready=True,
        schedulable=True,
        csi_ready=True,
    )
    return replace(usual, **changed)
