"""Observes what is true now for one incident: adapters -> core.incidents.observation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from core.availability.lease import Lease, blocking_holder, companions, hinders, lease_of
from core.availability.operator import OperatorView
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from core.ground.naming import instance_of
from core.ground.placement import PodNeeds
from core.incidents.consenting import asks_of_all, unleased_drains, waiting_turns
from core.incidents.learn import learn
from core.incidents.observation import (
    NOT_ASKED,
    Observation,
    PodOnNode,
    PodView,
    RootTask,
    StandingDrain,
)
from core.incidents.record import Incident, State
from core.incidents.replacement import places
from core.views import ClusterView
from handlers.adapters.aws import AwsCloud
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kubernetes import NO_CLAIMS, EksDrain, EksNodes, NodeClaims
from handlers.adapters.templates import RootVolumes
from handlers.store.documents import Freezes
from handlers.store.ledger import Ledger

# Kafka is asked where its answer decides; asking it costs more than everything else together.
_ASKS_KAFKA = _OUT = frozenset({State.DRAINING, State.GATING})


class ReadsKafka(Protocol):
    """Whoever tells how Kafka is."""

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        """Return one reading; raises StillwaterError where there is none."""


@dataclass(frozen=True)
class Sources:
    """Whom to ask."""

    cloud: AwsCloud
    nodes: EksNodes
    kafka: KafkaAdmin
    ledger: Ledger
    freezes: Freezes
    drain: EksDrain | None = None  # None: we drain no node ourselves
    claims: NodeClaims = NO_CLAIMS
    roots: RootVolumes | None = None  # None: no root volume is replaced in place


def observe(
    incident: Incident, sources: Sources, now: float, kafka: ReadsKafka | None = None
) -> Observation:
    """Read everything a decision about `incident` rests on; what fails is said, not raised.

    AWS or Kubernetes out of reach makes a blind observation: the loop then keeps the instance and
    its hooks, and looks again. Kafka out of reach only leaves its part out. `kafka` is asked in the
    place of the sources'.
    """
    try:
        seen = _observation(incident, sources, now, kafka or sources.kafka)
    except (StillwaterError, *NO_ANSWER) as error:
        seen = Observation(now=now, instance=None, blind=f"Nothing could be read: {error}")
    # Last: whoever pauses while the rest is read is heard.
    return replace(seen, paused=_pause_sentence(sources, now))


def _pause_sentence(sources: Sources, now: float) -> str:
    """Return who has paused the cluster; not knowing it is no permission to go on."""
    try:
        pause = sources.freezes.current_pause(now)
    except (StillwaterError, *NO_ANSWER) as error:
        return f"Whether the cluster is paused could not be read: {error}"
    return "" if pause is None else pause.sentence


def _observation(
    incident: Incident, sources: Sources, now: float, asked: ReadsKafka
) -> Observation:
    instance = sources.cloud.instance(incident.instance_id)
    group_name = incident.group or (instance.group if instance else None)
    leases = sources.ledger.leases()
    beside = companions(leases, incident.id, incident.party, now)
    own = lease_of(leases, incident.id)
    whole = own is not None and asks_of_all(incident)
    kafka, silence = _ask_kafka(incident, beside, asked, whole=whole)
    others = [o for o in sources.ledger.open_incidents() if o.id != incident.id]
    pods = sources.nodes.kafka_pods()
    operator = read_operator(sources.nodes) if _asks_operator(incident) else None
    seen = Observation(
        now=now,
        instance=instance,
        group=None if group_name is None else sources.cloud.group(group_name),
        nodes=sources.nodes.nodes(),
        claims=sources.claims.claims(),
        pods=pods,
        attachments=sources.nodes.attachments(),
        volumes=_volumes(incident, sources.cloud),
        budgets=sources.nodes.budgets() if _asks_budgets(incident) else (),
        operator=operator,
        taken_out=_taken_out(others),
        kafka=kafka,
        kafka_silence=silence,
        lease_holder=blocking_holder(leases, incident.id, incident.party, now),
        beside=beside,
        waiting=tuple(waiting_turns(others, incident)) if incident.awaits_turn else (),
        drains=_drains(incident, leases, others, sources),
        own_drain_at=None if own is None else own.forwarded_at,
        on_node=_pods_on_node(incident, sources),
        root_task=_root_task(incident, sources),
        leaving=frozenset(other.instance_id for other in others),
        to_be_placed=frozenset(other.id for other in others if not _has_moved(other, pods)),
        asking=frozenset(o.id for o in others if _asks_the_same_group(o, incident)),
        lost={o.instance_id: o.zone for o in others if o.zone and _lost_another(o, incident)},
        freezes=sources.freezes.current(now),
    )
    known = learn(incident, seen)
    return replace(
        seen,
        tenants=_tenants(known, seen, sources.nodes),
        claim_troubles=_claim_troubles(known, seen, sources.nodes),
    )


def _drains(
    incident: Incident, leases: tuple[Lease, ...], others: Iterable[Incident], sources: Sources
) -> tuple[StandingDrain, ...]:
    """Return what is known of the drains that others have begun, where they decide."""
    if not incident.awaits_turn:
        return ()
    noted = (
        lease
        for lease in leases
        if lease.out_at is not None and hinders(lease, incident.id, incident.party)
    )
    lost = (
        Lease(other.id, 0.0, other.node_id, forwarded_at=other.forwarded.last_at)
        for other in unleased_drains(others, leases, incident)
        if other.forwarded is not None
    )
    return tuple(_drain(lease, sources) for lease in (*noted, *lost))


def _drain(lease: Lease, sources: Sources) -> StandingDrain:
    holder = sources.ledger.get(lease.holder)
    instance_id = instance_of(lease.holder)
    instance = sources.cloud.instance(instance_id)
    known = StandingDrain(
        holder=lease.holder,
        instance_id=instance_id,
        node_id=lease.node_id,
        forwarded_at=lease.forwarded_at,
        instance_state=None if instance is None else instance.state,
    )
    if holder is None:
        return known
    sent = holder.forwarded
    return replace(
        known,
        # A lease whose item was deleted is written again without it; the record knows.
        forwarded_at=known.forwarded_at or (None if sent is None else sent.last_at),
        open=holder.open,
        state=holder.state.value,
        expects_return=holder.expects_return,
    )


def _asks_budgets(incident: Incident) -> bool:
    """A budget matters once a drain is sent, and before that to those who go in company."""
    in_company = incident.party is not None and incident.state is State.HOLDING
    return in_company or incident.state is State.DRAINING


def _pods_on_node(incident: Incident, sources: Sources) -> tuple[PodOnNode, ...]:
    """Return all that is on a node which we empty ourselves."""
    emptied = incident.state in {State.DRAINING, State.GATING}
    if sources.drain is None or incident.node_name is None or not emptied:
        return ()
    return sources.drain.pods_on(incident.node_name)


def _root_task(incident: Incident, sources: Sources) -> RootTask | None:
    """Return what EC2 does to the instance's root volume by this incident's word."""
    gated = incident.in_place is not None and incident.state is State.GATING
    if sources.roots is None or not gated:
        return None
    return sources.roots.task_of(incident.instance_id, incident.id)


def _tenants(
    incident: Incident, seen: Observation, kubernetes: EksNodes
) -> dict[str, tuple[PodNeeds, ...] | Unknown]:
    """Return what runs on the few nodes that may take the incident's pod."""
    pod = seen.pod_named(incident.pod_name)
    if pod is None or not pod.needs.requests:
        return {}
    return {node.name: _needs_on(node.name, kubernetes) for node in places(incident, seen)}


def _claim_troubles(incident: Incident, seen: Observation, kubernetes: EksNodes) -> tuple[str, ...]:
    """Return what is wrong with the claims of a pod that was placed and does not start."""
    pod = seen.pod_named(incident.pod_name)
    if incident.state is not State.GATING or pod is None or pod.ready or not pod.trouble:
        return ()
    try:
        return kubernetes.claim_troubles(pod.name)
    except StillwaterError as error:
        return (f"its claims could not be read ({error})",)


def _needs_on(node: str, kubernetes: EksNodes) -> tuple[PodNeeds, ...] | Unknown:
    """Return the pods on a node; where they cannot be read, it takes no other."""
    try:
        return kubernetes.tenants(node)
    except StillwaterError as error:
        return Unknown(str(error))


def _asks_operator(incident: Incident) -> bool:
    return incident.node_id is not None and incident.state in {State.HOLDING, State.DRAINING}


def read_operator(nodes: EksNodes) -> OperatorView | Unknown:
    """Read what Strimzi's operator does; what cannot be read blinds nobody."""
    try:
        return nodes.operator()
    except StillwaterError as error:
        return Unknown(str(error))


def _taken_out(others: Iterable[Incident]) -> frozenset[str]:
    """Return the pods that other incidents have taken out, or are taking out."""
    return frozenset(
        each.pod_name
        for each in others
        if each.pod_name and (each.lost_at is not None or each.state in _OUT)
    )


def observe_operator(
    incident: Incident, nodes: EksNodes, ledger: Ledger, now: float
) -> Observation:
    """Read the operator alone, with the pods it restarts: asked directly before a drain."""
    others = (other for other in ledger.open_incidents() if other.id != incident.id)
    return Observation(
        now=now,
        instance=None,
        pods=nodes.kafka_pods(),
        operator=read_operator(nodes),
        taken_out=_taken_out(others),
    )


def _has_moved(other: Incident, pods: Iterable[PodView]) -> bool:
    """Say whether an incident's pod runs elsewhere: the scheduler may pick a node of another's."""
    pod = next((pod for pod in pods if pod.name == other.pod_name), None)
    return pod is not None and pod.node_name not in {None, other.node_name}


def _asks_the_same_group(other: Incident, incident: Incident) -> bool:
    """There is one group for each pool in each zone."""
    waits = other.surge_to is not None and other.terminate_asked_at is None
    place = (incident.zone, incident.pool)
    known = incident.zone is not None
    return waits and known and not other.called_off and (other.zone, other.pool) == place


def _lost_another(other: Incident, incident: Incident) -> bool:
    """Say whether another machine was lost, and not one that the same broker stood on before."""
    same = other.node_id is not None and other.node_id == incident.node_id
    return other.lost_at is not None and not same


def _volumes(incident: Incident, cloud: AwsCloud) -> tuple[str, ...]:
    """Return what EC2 still has attached, where the gate waits for it."""
    gated = incident.state is State.GATING and incident.node_id is not None
    return cloud.volumes_on(incident.instance_id) if gated else ()


def _ask_kafka(
    incident: Incident, beside: frozenset[int], kafka: ReadsKafka, *, whole: bool
) -> tuple[ClusterView | None, str]:
    rides = incident.leaders_moved_at is not None
    asks = incident.state in _ASKS_KAFKA or incident.awaits_turn
    if incident.node_id is None or not (rides or asks):
        return None, NOT_ASKED
    try:
        # Its companions are on their way out: that one of them is silent is no news.
        about = None if whole else {incident.node_id, *beside}
        return kafka.read(about).drop_doubts(beside), ""
    except StillwaterError as error:
        return None, str(error)
