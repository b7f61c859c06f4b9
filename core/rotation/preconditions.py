"""Decides whether a run may begin with a node; each objection names its cause and the remedy.

Stricter than what an instance needs that AWS takes away (consent): a rotation can wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from core.availability.consent import may_leave
from core.availability.operator import operator_tasks
from core.availability.zones import freeze_of
from core.health.metadata_errors import from_dict, vetoes
from core.incidents.observation import Policy
from core.incidents.unready import causes
from core.rotation.claims import of_claim
from core.rotation.observation import RunObservation
from core.rotation.run_record import NodeTurn, Options
from core.unknown import Unknown
from core.views import ClusterView, PartitionView, id_list

IN_SERVICE = "InService"


def objections(
    turn: NodeTurn,
    seen: RunObservation,
    options: Options,
    policy: Policy,
    away: Iterable[int] = (),
) -> Iterator[str]:
    """Yield every reason why a node may not go now; `away` are nodes that go together with it."""
    beside = frozenset(away)
    yield from but_consent(turn, seen, options, beside, policy)
    if seen.kafka is not None:
        verdict = may_leave(turn.node_id, seen.kafka, isr_margin=policy.isr_margin, beside=beside)
        if not verdict.allowed:
            yield verdict.reason


def but_consent(
    turn: NodeTurn,
    seen: RunObservation,
    options: Options,
    beside: AbstractSet[int],
    policy: Policy,
) -> Iterator[str]:
    """Yield the same but Kafka's consent, which a party gives as a whole."""
    yield from of_machines(turn, seen, beside, policy)
    yield from _of_node(turn, seen, policy)
    yield from _of_others(turn, seen, beside)
    yield from _of_operator(turn, seen, beside)
    if seen.kafka is None:
        yield seen.kafka_silence
        return
    yield from _of_kafka(turn, seen.kafka, options)
    yield from _of_recovering(turn.node_id, set(seen.recovering) - beside, options)
    yield from _without_pod(turn, seen, seen.kafka)
    if seen.errors is not None:
        known = options.acknowledged
        yield from vetoes(seen.errors, None if known is None else from_dict(known))


def of_machines(
    turn: NodeTurn, seen: RunObservation, beside: AbstractSet[int], policy: Policy
) -> Iterator[str]:
    """Yield what keeps a node's machine from being replaced now, its broker apart."""
    freeze = freeze_of(turn.zone, seen.freezes, seen.now)
    if freeze is not None:
        yield f"{freeze.sentence} Nothing planned happens there."
    claim = seen.claim_of(turn.instance_id)
    if claim is not None:
        yield from of_claim(claim, turn, seen, policy)
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
            f"{group.name} wants {wanted} instances of at most {group.maximum}: there is no "
            f"room for a replacement of node {turn.node_id}; raise its maximum."
        )


def _of_node(turn: NodeTurn, seen: RunObservation, policy: Policy) -> Iterator[str]:
    """Yield why nobody would know where a node's pod may go, or that others go with it."""
    node = seen.node_of(turn.node_id)
    if node is None:
        return
    lacking = [what for what, said in (("pool", node.pool), ("zone", node.zone)) if said is None]
    if lacking and seen.claim_of(turn.instance_id) is None:
        yield (
            f"Node {node.name} has no label of its {' and '.join(lacking)}, so nobody knows which "
            f"other node could take Kafka node {turn.node_id}; label it as the others."
        )
    with_it = [p.name for p in seen.pods if p.node_name == node.name and p.node_id != turn.node_id]
    if with_it and policy.drain_route in {"held", "evict"}:
        yield (
            f"Pod {with_it[0]} of the same Kafka is on {node.name}, too, and would leave together "
            f"with Kafka node {turn.node_id}; give each a node of its own first."
        )


def _of_others(turn: NodeTurn, seen: RunObservation, away: AbstractSet[int]) -> Iterator[str]:
    for incident in seen.others:
        if incident.node_id is not None:
            yield (
                f"Incident {incident.id} takes Kafka node {incident.node_id} out first "
                f"({incident.state.value}: {incident.reason.rstrip('.')})."
            )
    for pod in seen.pods:
        if not pod.ready and pod.node_id not in {turn.node_id, *away}:
            why = "; ".join(causes(pod, None)) or "it starts"
            yield f"Pod {pod.name} is not Ready; see to it first: {why}."


def _of_operator(turn: NodeTurn, seen: RunObservation, away: AbstractSet[int]) -> Iterator[str]:
    """Yield what Strimzi's operator has to do, but with the pods of this turn and beside it."""
    if isinstance(seen.operator, Unknown):
        yield f"Whether Strimzi's operator restarts pods is not known: {seen.operator.why}"
    elif seen.operator is not None:
        leaving = {pod.name for pod in seen.pods if pod.node_id in {turn.node_id, *away}}
        for task in operator_tasks(seen.operator, seen.pods, leaving, seen.now):
            if not task.is_about_only(leaving):
                yield task.sentence


def _of_recovering(node_id: int, recovering: set[int], options: Options) -> Iterator[str]:
    for broker_id in sorted(recovering):
        if broker_id != node_id:
            yield f"Broker {broker_id} is still recovering its logs; wait until it runs."
        elif not options.even_recovering:
            yield (
                f"Broker {broker_id} is still recovering its logs; wait until it runs, or allow it "
                f"with --even-recovering: the recovery then begins anew on the next node, and its "
                f"partitions are without it for as long."
            )


def _without_pod(turn: NodeTurn, seen: RunObservation, kafka: ClusterView) -> Iterator[str]:
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


def _of_kafka(turn: NodeTurn, kafka: ClusterView, options: Options) -> Iterator[str]:
    if turn.node_id in kafka.fenced:
        yield from _of_fenced(turn.node_id, kafka)
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


def _of_fenced(node_id: int, kafka: ClusterView) -> Iterator[str]:
    """Yield what speaks against a broker that is out already: it may be the last to have data."""
    for partition in kafka.held_by(node_id):
        others = sorted(set(partition.isr) - {node_id})
        few = len(others) < partition.min_isr < len(partition.replicas)
        if few:
            yield (
                f"Broker {node_id} is fenced, and partition {partition.name} has only "
                f"{id_list(others)} of the {partition.min_isr} in-sync replicas it needs; bring "
                f"another of {id_list(partition.replicas)} back first, or this one where it is."
            )


def unkeepable(node_id: int, kafka: ClusterView) -> Iterator[PartitionView]:
    """Yield the partitions that nobody can keep writable while a broker is away."""
    return (p for p in kafka.at_risk_on(node_id) if not p.keepable)


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
