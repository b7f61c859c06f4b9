"""Decides what a drain of our own evicts now, where no termination handler drains (route `evict`).

Everything else on the node goes first: Strimzi's operator, which makes the broker's pod anew, may
be among it. The broker's pod goes last, on a reading that allows it at that moment and with the
lease. An eviction that is refused is asked for again at the next look, and nothing is ever deleted
instead. core.incidents.draining asks for Kafka's own node, core.incidents.decide while the gate
waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.incidents.actions import Action, Cordon, Evict, HookResult, Page, TakeLease, Uncordon
from core.incidents.consenting import consent
from core.incidents.decisions import (
    ENDING,
    STOPPED,
    complete,
    ec2_state,
    evicting,
    go,
    retain,
    stay,
)
from core.incidents.observation import Observation, PodView, Policy
from core.incidents.pods_on_node import PodOnNode
from core.incidents.record import Decision, Incident, State
from core.words import listing

# How long Kafka's pod waits for the others, of which one may be refused for hours.
OTHERS_SECONDS = 120.0
# A pod that is still there then is a person's matter.
LATE_SECONDS = 600.0
# Of several pods so many are named.
MOST_NAMED = 3


def ours(incident: Incident, policy: Policy) -> bool:
    """Say whether we drain the node ourselves: nobody else was to, and nobody has asked."""
    return policy.drain_route == "evict" and not evicting(incident)


def draining(incident: Incident, seen: Observation, policy: Policy, pod: PodView) -> Decision:
    """Evict what is on the node, Kafka's pod last."""
    waits = _kafka_waits(incident, seen, policy, pod)
    reason = waits or _eviction_text(incident, seen, pod)
    late = seen.now - incident.entered_at > LATE_SECONDS
    page = (Page("drain_stuck", reason),) if late else ()
    last = () if waits else tuple(_evict(each) for each in _kafkas(incident, seen))
    return stay(
        incident,
        policy,
        reason,
        *page,
        # Asked for, not stated: nothing of Kafka's is out before its pod is evicted.
        TakeLease(),
        *_emptying_actions(incident, seen),
        *last,
    )


def _kafka_waits(incident: Incident, seen: Observation, policy: Policy, pod: PodView) -> str | None:
    """Return what keeps Kafka's own pod for now; None: it is to go."""
    if pod.stopping:
        return f"{pod.name} has been told to stop on {incident.node_name}."
    still = f"{pod.name} is still on {incident.node_name}."
    if not _kafkas(incident, seen):
        return f"{still} The list of the node's pods does not show it: it is looked at once more."
    if incident.urgent:
        return None
    hindrance = seen.paused or _too_early_or_late(incident, seen, policy)
    hindrance = hindrance or other_kafka_pods(incident, seen, policy)
    if hindrance:
        return f"{still} {hindrance}"
    allowed, refusal = consent(incident, seen, policy)
    return None if allowed else f"{still} {refusal}"


def _too_early_or_late(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    drained_for = seen.now - incident.entered_at
    if drained_for + policy.drain_life_seconds > policy.hold_limit_seconds:
        # What is evicted now could outlive the decision to keep the node after all.
        return "It is too late to begin: the node is about to be kept."
    others = _leaving(seen)
    if others and drained_for <= OTHERS_SECONDS:
        return f"First to leave: {_join_titles(others)}."
    return None


def _eviction_text(incident: Incident, seen: Observation, pod: PodView) -> str:
    budget = seen.refusing_budget(pod.name)
    if budget is None:
        return f"{pod.name} is evicted from {incident.node_name}."
    return (
        f"PodDisruptionBudget {budget.name} allows no disruption, so {pod.name} is not evicted "
        f"from {incident.node_name}; it is asked for again."
    )


def other_kafka_pods(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return which other pods of this Kafka stand on the node: consent is for one of them.

    A drain that we send or begin takes all of them; of others' drains each is asked about.
    """
    theirs = policy.drain_route not in {"held", "evict"} or evicting(incident)
    if theirs or incident.release is not None:
        return None
    beside = sorted(
        pod.name
        for pod in seen.pods
        if pod.node_name == incident.node_name and pod.name != incident.pod_name
    )
    if not beside or incident.node_name is None:
        return None
    return (
        f"{listing(beside, MOST_NAMED)} of the same Kafka is on {incident.node_name}, too, and "
        f"would leave with it: move one of them by hand, or release the instance."
    )


def left_behind(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return who is still to leave beside Kafka; None: nobody, or the machine has ended."""
    if not ours(incident, policy) or ec2_state(seen) in ENDING | STOPPED or incident.let_go_by:
        return None
    others = _leaving(seen)
    if not others:
        return None
    return f"Still to leave {incident.node_name}, and asked for again: {_join_titles(others)}."


def idle(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Empty a node without Kafka, and let it go."""
    where = incident.node_name or incident.instance_id
    left = left_behind(incident, seen, policy)
    cordon = _cordon(incident, seen)
    if left is None and not cordon:
        reason = f"Nothing is left to drain on {where}."
        return go(State.GATING, reason, *complete(incident, HookResult.CONTINUE))
    # What came there since this reading is seen by the next.
    left = left or f"{where} takes no new pods from now on: it is looked at once more."
    drained_for = seen.now - incident.entered_at
    if drained_for > policy.hold_limit_seconds:
        return retain(incident, "drain_limit", f"{left} The node is kept.")
    page = (Page("drain_stuck", left),) if drained_for > LATE_SECONDS else ()
    return stay(incident, policy, left, *page, *_emptying_actions(incident, seen))


def carried_on(incident: Incident, seen: Observation, policy: Policy) -> tuple[Action, ...]:
    """Ask for what is left beside Kafka while the gate waits for the broker elsewhere."""
    left = left_behind(incident, seen, policy)
    if left is None:
        return ()
    late = seen.now - incident.entered_at > LATE_SECONDS
    return (*((Page("drain_stuck", left),) if late else ()), *_emptying_actions(incident, seen))


def taken_back(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Let a node take pods again that stays after all."""
    node = seen.node_named(incident.node_name)
    stays = state in {State.RETAINED, State.RIDDEN_THROUGH, State.CANCELLED}
    return (Uncordon(node.name),) if stays and node is not None and not node.schedulable else ()


def _emptying_actions(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    """Keep new pods off the node, evict what is not Kafka's, and name what nobody makes anew."""
    bare = [each for each in seen.on_node if not (each.stays or each.owned or each.kafka)]
    reason = (
        f"Not evicted from {incident.node_name}, since nobody owns it and would make it anew: "
        f"{_join_titles(bare)}. It ends with its machine; move it by hand if it matters."
    )
    page = (Page("pods_without_owner", reason),) if bare else ()
    evictions = (_evict(each) for each in _leaving(seen) if not each.stopping)
    return (*page, *_cordon(incident, seen), *evictions)


def _cordon(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    node = seen.node_named(incident.node_name)
    return (Cordon(node.name),) if node is not None and node.schedulable else ()


def _leaving(seen: Observation) -> list[PodOnNode]:
    """Return who is still to leave beside Kafka's own pods."""
    return [each for each in seen.on_node if each.owned and not (each.stays or each.kafka)]


def _kafkas(incident: Incident, seen: Observation) -> list[PodOnNode]:
    """Return Kafka's pods that go: the incident's own, and all where nobody waits for consent."""
    everyone = incident.urgent or incident.release is not None
    return [
        each
        for each in seen.on_node
        if each.kafka and not each.stopping and (everyone or each.name == incident.pod_name)
    ]


def _evict(pod: PodOnNode) -> Evict:
    return Evict(pod.namespace, pod.name, pod.uid, kafka=pod.kafka)


def _join_titles(pods: Sequence[PodOnNode]) -> str:
    return listing(sorted(pod.title for pod in pods), MOST_NAMED)
