"""In which order Kafka's nodes go: asked anew before every node, since leaders and zones change.

Source: KafkaRoller (Strimzi 1.x): whoever has the controller role first, unready before ready, the
quorum's leader last of them, then brokers. Added here: brokers zone by zone.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.incidents.observation import PodView
from core.rotation.run_record import NodeTurn


def in_order(
    turns: Iterable[NodeTurn], pods: Iterable[PodView], quorum_leader: int | None
) -> tuple[NodeTurn, ...]:
    """Return turns with the one that goes first in front."""
    ready = {pod.node_id for pod in pods if pod.ready}

    def place(turn: NodeTurn) -> tuple[bool, bool, bool, str, int]:
        leads = turn.votes and turn.node_id == quorum_leader
        return (not turn.votes, leads, turn.node_id in ready, turn.zone, turn.node_id)

    return tuple(sorted(turns, key=place))
