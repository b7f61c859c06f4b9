"""Decides when a run may begin with a node, and in which order; each objection names the remedy.

Stricter than what an instance needs that AWS takes away (core.availability.consent), for a rotation
can wait: until the number of partitions out of sync has settled (as in Yelp's
kafka-rolling-restart), and until a maintenance window stays open for as long as the move is
expected to take. A node that Karpenter launched goes only while drains ask the gate, since its
NodeClaim has no graceful end otherwise. What AWS takes and what a person sends away knows no window
but its own due time (core.incidents.planned). The order is KafkaRoller's (Strimzi 1.x): whoever has
the controller role first, unready before ready, the quorum's leader last of them, then brokers,
here zone by zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from core.availability.consent import freeze_of, may_leave
from core.availability.operator import operator_tasks
from core.ground.fields import Unknown
from core.ground.window import clock
from core.ground.words import id_list, span
from core.health.kafka import snapshot_from_dict, vetoes
from core.incidents.observation import DISRUPTED_TAINT, DO_NOT_DISRUPT, NodeClaim, PodView, Policy
from core.incidents.planned import serves_on
from core.incidents.record import State
from core.incidents.replacement import causes
from core.rotation.estimate import RunObservation
from core.rotation.run_record import NodeTurn, Options, Run
from core.views import ClusterView, PartitionView

READINGS = 3


def count_out_of_sync(run: Run, kafka: ClusterView | None) -> Run:
    """Return a run with what a reading adds to its last counts; one that is not whole adds none."""
    if kafka is None or kafka.stale or kafka.doubts:
        return run
    counts = (*run.out_of_sync, len(kafka.out_of_sync))
    return replace(run, out_of_sync=counts[-READINGS:])


def why_unsettled(run: Run) -> str | None:
    """Return what speaks against beginning with any node; None: the number has settled.

    Where the run has never seen a partition out of sync, one reading is enough.
    """
    counts = run.out_of_sync
    same = len(set(counts)) == 1 and len(counts) == READINGS
    if same or not any(counts):
        return None
    seen = ", ".join(str(count) for count in counts)
    return (
        f"The number of partitions out of sync is not the same at {READINGS} readings ({seen}); "
        f"wait until it has settled."
    )


def claim_objections(
    claim: NodeClaim, turn: NodeTurn, seen: RunObservation, policy: Policy
) -> Iterator[str]:
    """Yield why a node's claim may not be deleted for its rotation."""
    named = f"NodeClaim {claim.name} of node {turn.node_id}"
    if policy.drain_route != "asked":
        yield (
            f"{named} would be drained before its successor is there: set `eviction_gate`, which a "
            f"drain of Karpenter's waits for, in a cluster of your own stacks."
        )
    if claim.grace_seconds is not None or claim.unreadable:
        yield (
            f"{named} has a terminationGracePeriod, or a field that cannot be read: Karpenter "
            f"would delete the broker past its disruption budget when it ends. Take it off the "
            f"NodePool, and end this one when Kafka can bear it."
        )
    node, pod = seen.node_of(turn.node_id), seen.pod_of(turn.node_id)
    # Karpenter reads the Node's once it has joined; a person may have meant either.
    if claim.do_not_disrupt or (node is not None and node.do_not_disrupt):
        yield f"{named} is marked {DO_NOT_DISRUPT}: take that off, or leave the node out."
    if pod is not None:
        yield from _eviction_objections(pod, seen.now)
    if claim.leaves:
        yield f"Karpenter ends {named} already; `stillwater incidents` says what about it."
    elif not claim.serves:
        yield f"{named} is not initialized yet."


def _eviction_objections(pod: PodView, now: float) -> Iterator[str]:
    """Yield why Karpenter would not evict a pod, whatever the gate answers."""
    if pod.undisturbed_until is not None and pod.undisturbed_until > now:
        yield (
            f"{pod.name} says {DO_NOT_DISRUPT}: Karpenter would neither make room for it nor evict "
            f"it. Take that off."
        )
    if pod.ignores_disruption:
        yield (
            f"{pod.name} tolerates the taint {DISRUPTED_TAINT}: Karpenter would end its node "
            "without an eviction. Narrow its tolerations."
        )


def drifted_nodes(seen: RunObservation) -> dict[int, str]:
    """Return the nodes that are not what Karpenter would launch today, and why, by Kafka's id."""
    found = {}
    for pod in seen.pods:
        node = seen.node_of(pod.node_id)
        claim = None if node is None else seen.claim_of(node.instance_id or "")
        if claim is not None and claim.says("Drifted"):
            found[pod.node_id] = f"drifted: {claim.conditions['Drifted'].reason}"
    return found


@dataclass(frozen=True, slots=True)
class WindowWait:
    """Until when a node waits, and why; `until` is None where no window is ever long enough."""

    until: float | None
    sentence: str


def wait_of(turn: NodeTurn, now: float, options: Options, policy: Policy) -> WindowWait | None:
    """Say that a node has to wait for a maintenance window; None: it may begin."""
    if policy.maintenance is None or options.any_time:
        return None
    takes = turn.expected_seconds or 0.0
    stretches = list(policy.maintenance.stretches(now))
    until = next((opens for opens, closes in stretches if closes - max(opens, now) >= takes), None)
    if until is not None and until <= now:
        return None
    opens, closes = stretches[0]
    node = f"{turn.role.capitalize()} {turn.node_id} is expected to take {span(takes)}"
    if until is None:
        remedy = "make maintenance.duration_minutes longer, or say --any-time"
        return WindowWait(None, f"{node}, and no maintenance window stays open as long: {remedy}.")
    if until == opens:
        return WindowWait(until, f"The maintenance window opens at {clock(opens)}.")
    short = f"closes at {clock(closes)}" if opens <= now else f"of {clock(opens)} is too short"
    return WindowWait(
        until,
        f"{node}, and the maintenance window {short}: it waits for the one that opens at "
        f"{clock(until)}.",
    )


def departure_order(
    turns: Iterable[NodeTurn], pods: Iterable[PodView], quorum_leader: int | None
) -> tuple[NodeTurn, ...]:
    """Return turns with the one that goes first in front."""
    ready = {pod.node_id for pod in pods if pod.ready}

    def place(turn: NodeTurn) -> tuple[bool, bool, bool, str, int]:
        leads = turn.votes and turn.node_id == quorum_leader
        return (not turn.votes, leads, turn.node_id in ready, turn.zone, turn.node_id)

    return tuple(sorted(turns, key=place))


IN_SERVICE = "InService"


def objections(
    turn: NodeTurn, seen: RunObservation, options: Options, policy: Policy, away: Iterable[int] = ()
) -> Iterator[str]:
    """Yield every reason why a node may not go now; `away` are nodes that go together with it."""
    beside = frozenset(away)
    yield from objections_but_consent(turn, seen, options, beside, policy)
    if seen.kafka is not None:
        verdict = may_leave(turn.node_id, seen.kafka, isr_margin=policy.isr_margin, beside=beside)
        if not verdict.allowed:
            yield verdict.reason


def objections_but_consent(
    turn: NodeTurn, seen: RunObservation, options: Options, beside: AbstractSet[int], policy: Policy
) -> Iterator[str]:
    """Yield the same but Kafka's consent, which a party gives as a whole."""
    yield from machine_objections(turn, seen, beside, policy)
    yield from _node_objections(turn, seen, policy)
    yield from _other_objections(turn, seen, options, beside)
    yield from _operator_objections(turn, seen, beside)
    if seen.kafka is None:
        yield seen.kafka_silence
        return
    yield from _kafka_objections(turn, seen.kafka, options)
    yield from _recovery_objections(turn.node_id, set(seen.recovering) - beside, options)
    yield from _missing_pods(turn, seen, seen.kafka)
    if seen.errors is not None:
        known = options.acknowledged
        yield from vetoes(seen.errors, None if known is None else snapshot_from_dict(known))


def machine_objections(
    turn: NodeTurn, seen: RunObservation, beside: AbstractSet[int], policy: Policy
) -> Iterator[str]:
    """Yield what keeps a node's machine from being replaced now, its broker apart."""
    freeze = freeze_of(turn.zone, seen.freezes, seen.now)
    if freeze is not None:
        yield f"{freeze.sentence} Nothing planned happens there."
    claim = seen.claim_of(turn.instance_id)
    if claim is not None:
        yield from claim_objections(claim, turn, seen, policy)
        return
    group = seen.group_of(turn.instance_id)
    if group is None:
        yield (
            f"Instance {turn.instance_id} of node {turn.node_id} belongs to no Auto Scaling group "
            f"of this cluster, so nothing would replace it."
        )
        return
    lifecycle = group.instances[turn.instance_id]
    if lifecycle != IN_SERVICE:
        yield (
            f"{group.name} has instance {turn.instance_id} of node {turn.node_id} in {lifecycle}; "
            f"`stillwater incidents` says what about it."
        )
    if turn.image_id is not None or seen.has_room(turn.node_id):
        return  # No second machine is needed, or it was asked for.
    new = (n for n in beside if not seen.has_room(n))
    homes = {node.instance_id for n in new if (node := seen.node_of(n)) is not None}
    wanted = group.desired + len(homes & set(group.instances))
    if wanted >= group.maximum:
        yield (
            f"{group.name} wants {wanted} instances of at most {group.maximum}, which leaves no "
            f"place for a replacement of node {turn.node_id}; raise its maximum."
        )


def _node_objections(turn: NodeTurn, seen: RunObservation, policy: Policy) -> Iterator[str]:
    """Yield why nobody would know where a node's pod may go, or that others go with it."""
    node = seen.node_of(turn.node_id)
    if node is None:
        return
    lacking = [what for what, said in (("pool", node.pool), ("zone", node.zone)) if said is None]
    if lacking and seen.claim_of(turn.instance_id) is None:
        yield (
            f"Node {node.name} has no label of its {' and '.join(lacking)}, so it is unknown which "
            f"other node could take Kafka node {turn.node_id}; label it as the others."
        )
    with_it = [p.name for p in seen.pods if p.node_name == node.name and p.node_id != turn.node_id]
    if with_it and policy.drain_route in {"held", "evict"}:
        yield (
            f"Pod {with_it[0]} of the same Kafka is also on {node.name} and would leave with Kafka "
            f"node {turn.node_id}; give each a node of its own first."
        )


def _other_objections(
    turn: NodeTurn, seen: RunObservation, options: Options, away: AbstractSet[int]
) -> Iterator[str]:
    for incident in seen.others:
        waits = serves_on(incident, seen.now, options.deadline_seconds)
        if incident.node_id is not None and not (waits and incident.state is State.OPENED):
            yield (
                f"Incident {incident.id} takes Kafka node {incident.node_id} out first "
                f"({incident.state.value}: {incident.reason.rstrip('.')})."
            )
    for pod in seen.pods:
        if not pod.ready and pod.node_id not in {turn.node_id, *away}:
            why = "; ".join(causes(pod, None)) or "it starts"
            yield f"Pod {pod.name} is not Ready; see to it first: {why}."


def _operator_objections(
    turn: NodeTurn, seen: RunObservation, away: AbstractSet[int]
) -> Iterator[str]:
    """Yield what Strimzi's operator has to do, but with the pods of this turn and beside it."""
    if isinstance(seen.operator, Unknown):
        yield f"Whether Strimzi's operator restarts pods is not known: {seen.operator.why}"
    elif seen.operator is not None:
        leaving = {pod.name for pod in seen.pods if pod.node_id in {turn.node_id, *away}}
        for task in operator_tasks(seen.operator, seen.pods, leaving, seen.now):
            if not task.is_about_only(leaving):
                yield task.sentence


def _recovery_objections(node_id: int, recovering: set[int], options: Options) -> Iterator[str]:
    for broker_id in sorted(recovering):
        if broker_id != node_id:
            yield f"Broker {broker_id} is still recovering its logs; wait until it runs."
        elif not options.even_recovering:
            yield (
                f"Broker {broker_id} is still recovering its logs; wait until it runs, or allow it "
                "with --even-recovering. The recovery then begins again on the next node."
            )


def _missing_pods(turn: NodeTurn, seen: RunObservation, kafka: ClusterView) -> Iterator[str]:
    """Yield the nodes that are part of the cluster and have no pod at all: nobody starts them."""
    nodes = (kafka.brokers - kafka.fenced) | {turn.node_id}
    if any(pod.role not in {None, "broker"} for pod in seen.pods):
        # Somebody else's controllers may run where no pod of theirs is seen.
        nodes |= {voter.node_id for voter in kafka.voters}
    for node_id in sorted(nodes - {pod.node_id for pod in seen.pods}):
        yield (
            f"Node {node_id} is part of the cluster and has no pod; see to its node pool and the "
            f"operator first."
        )


def _kafka_objections(turn: NodeTurn, kafka: ClusterView, options: Options) -> Iterator[str]:
    if turn.node_id in kafka.fenced:
        yield from _fenced_objections(turn.node_id, kafka)
    if kafka.reassigning:
        yield (
            f"{len(kafka.reassigning)} partitions are being reassigned, among them "
            f"{kafka.reassigning[0]}; wait until they have moved, or cancel it."
        )
    for partition in kafka.below_minimum[:1]:
        yield (
            f"Partition {partition.name} has {len(partition.isr)} in-sync replicas of the "
            f"{partition.min_isr} it needs, {len(kafka.below_minimum)} partitions in all; nothing "
            f"planned happens before they have caught up."
        )
    for partition in unkeepable(turn.node_id, kafka):
        if partition.topic not in options.accepted_topics:
            yield f"{unavailable(partition)} Allow it with --accept-unavailable."


def _fenced_objections(node_id: int, kafka: ClusterView) -> Iterator[str]:
    """Yield what speaks against a broker that is out already: it may be the last to have data."""
    for partition in kafka.held_by(node_id):
        others = sorted(set(partition.isr) - {node_id})
        if len(others) < partition.min_isr < len(partition.replicas):
            yield (
                f"Broker {node_id} is fenced. Partition {partition.name} has only "
                f"{id_list(others)} of the {partition.min_isr} in-sync replicas it needs. Bring "
                f"another of {id_list(partition.replicas)} back first, or this one where it is."
            )


def unkeepable(node_id: int, kafka: ClusterView) -> Iterator[PartitionView]:
    """Yield the partitions that nobody can keep writable while a broker is away."""
    return (p for p in kafka.risky_partitions(node_id) if not p.keepable)


def unavailable(partition: PartitionView) -> str:
    """Say what a partition that cannot be kept is without while one of its brokers is away."""
    factor = len(partition.replicas)
    lost = "neither read nor written" if factor == 1 else "not written with acks=all"
    one = "" if factor == 1 else "one of "
    return (
        f"Partition {partition.name} has replication factor {factor} and min.insync.replicas "
        f"{partition.min_isr}: it is {lost} while {one}broker {id_list(partition.replicas)} is "
        f"away; raise its replication factor."
    )
