"""One reading of everything a run decides by; handlers.rotation.turns takes it before each turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.availability.budget import Spent
from core.availability.leaders import Freeze
from core.availability.operator import OperatorView
from core.ground.unknown import Unknown
from core.health.kafka import ErrorSnapshot
from core.incidents.observation import NOT_ASKED, GroupView, NodeClaim, NodeView, PodView
from core.incidents.record import Incident
from core.views import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """Everything true at `now` that a decision about a run may rest on."""

    now: float  # epoch seconds
    nodes: tuple[NodeView, ...] = ()
    pods: tuple[PodView, ...] = ()
    claims: tuple[NodeClaim, ...] = ()  # Karpenter's, where it launches the nodes
    groups: tuple[GroupView, ...] = ()
    kafka: ClusterView | None = None
    kafka_silence: str = NOT_ASKED  # why `kafka` is None, as a sentence
    operator: OperatorView | Unknown | None = None  # Strimzi's; None: it was not looked at
    incidents: Mapping[int, Incident] = field(default_factory=dict)  # the run's own, by node id
    # Of nodes whose turn is to come: the incidents by which their replacements are made ready.
    ahead: Mapping[int, Incident] = field(default_factory=dict)
    others: tuple[Incident, ...] = ()  # open incidents that are not the run's
    freezes: tuple[Freeze, ...] = ()
    errors: ErrorSnapshot | None = None  # None: nobody was asked
    # Brokers whose incidents are over and that do not lead again what they led before.
    leaders_owed: frozenset[int] = frozenset()
    recovering: tuple[int, ...] = ()  # brokers that still read their logs
    held: Mapping[int, int] = field(default_factory=dict)  # bytes of log, of who catches up
    spent: Spent | None = None  # what clients failed at since the run went on; None: no probe
    blind: str = ""  # why nothing could be read, as a sentence; then nothing above counts

    def pod_of(self, node_id: int) -> PodView | None:
        return next((p for p in self.pods if p.node_id == node_id), None)

    def node_of(self, node_id: int) -> NodeView | None:
        """Return the Kubernetes node a Kafka node runs on."""
        pod = self.pod_of(node_id)
        if pod is None or pod.node_name is None:
            return None
        return next((n for n in self.nodes if n.name == pod.node_name), None)

    def has_room(self, node_id: int) -> bool:
        """Say whether a node's replacement was made ready, or its group was asked for it."""
        incident = self.ahead.get(node_id)
        return incident is not None and (
            incident.surge_to is not None or incident.replacement is not None
        )

    def claim_of(self, instance_id: str) -> NodeClaim | None:
        return next((c for c in self.claims if c.instance_id == instance_id), None)

    def group_of(self, instance_id: str) -> GroupView | None:
        return next((g for g in self.groups if instance_id in g.instances), None)
