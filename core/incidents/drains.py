"""Decides what a drain of our own evicts now, where no termination handler drains (route `evict`).

Everything else on the node goes first: Strimzi's operator, which makes the broker's pod anew, may
be among it. The broker's pod goes last, on a reading that allows it at that moment and with the
lease. An eviction that is refused is asked for again at the next look, and nothing is ever deleted
instead. core.incidents.draining asks for Kafka's own node, core.incidents.decide while the gate
waits.

Decides whether a drain whose incident is over has ended safely, or may still take a broker out.

core.incidents.terminating asks it in state `holding`, of every lease that was used and never given
back: the node of a `retained` incident may still be drained by a message that waits in the
termination handler's queue, and the broker of a `lost` one may be on its way back. Until both are
ruled out by what is seen, nobody else goes.

Reads what the node termination handler posts when a drain attempt has ended.

It posts `{{ toJson . }}` of its own event, after the attempt, whether it went well or not: so a
report says that NTH is done trying, and nothing about the outcome. Its EventID ends in the hex of
the announcement's own id, by which a report finds its incident.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.availability.consent import check_returned
from core.availability.lease import Lease, hinders
from core.errors import InvalidInput
from core.fields import instance_in, readable, text
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
from core.incidents.observation import Observation, PodOnNode, PodView, Policy, StandingDrain
from core.incidents.record import Decision, Incident, State
from core.window import clock
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


_GONE = frozenset({"terminated", None})  # EC2's states of an instance that nobody can drain


def seen_to_end(incident: Incident) -> bool:
    """Say whether an incident that is over saw its own drain end, so that no lease outlives it.

    One that a person let go as it was has seen nothing.
    """
    return incident.state is State.RELEASED and incident.release is None


def without_lease(
    others: Iterable[Incident], leases: Iterable[Lease], incident: Incident
) -> Iterator[Incident]:
    """Yield the open incidents whose drain was sent, and of which the lease's item knows nothing.

    Somebody deleted that item, or the table was restored: the incidents' own records still count.
    """
    used = {lease.holder for lease in leases if lease.out_at is not None}
    for other in others:
        if other.forwarded is None or other.node_id is None or other.id in used:
            continue
        asked = Lease(other.id, 0.0, other.node_id, other.party)
        if hinders(asked, incident.id, incident.party):
            yield other


def unsafe_drains(seen: Observation, policy: Policy) -> Iterator[tuple[StandingDrain, str]]:
    """Yield every drain of others that has not ended safely, and why not."""
    for drain in seen.drains:
        reason = not_ended(drain, seen, policy)
        if reason is not None:
            yield drain, reason


def not_ended(drain: StandingDrain, seen: Observation, policy: Policy) -> str | None:
    """Return what keeps a drain from having ended safely; None: it has.

    An open incident ends its own drain. Of one that is over, the message must be able to do nothing
    any more (its queue has dropped it, or its instance is gone), and the broker must be back in
    every ISR, unless it was let go for good or the cluster knows it no longer.
    """
    if drain.open:
        return f"Incident {drain.holder} takes a Kafka node out first."
    what = f"Incident {drain.holder} is over ({drain.state}), but"
    until = _message_ends(drain, seen, policy)
    if until is not None:
        may = (
            "a pod that it evicted may still be on its way"
            if policy.drain_route == "evict"
            else "the termination handler may still be given its drain"
        )
        return f"{what} {may}, until {clock(until)}."
    away = _away(drain, seen)
    return None if away is None else f"{what} its Kafka node is not back. {away}"


def _message_ends(drain: StandingDrain, seen: Observation, policy: Policy) -> float | None:
    """Return until when a forwarded message may still drain the node; None: it cannot."""
    if drain.forwarded_at is None:
        return None
    if drain.instance_state in _GONE and seen.node_of(drain.instance_id) is None:
        return None
    ends = drain.forwarded_at + policy.drain_life_seconds
    return ends if seen.now < ends else None


def _away(drain: StandingDrain, seen: Observation) -> str | None:
    """Return what the broker lacks; None where it is whole, or none is expected back."""
    node_id = drain.node_id
    if node_id is None or not drain.expects_return:
        return None
    if seen.kafka is None:
        return seen.kafka_silence
    pod = next((p for p in seen.pods if p.node_id == node_id), None)
    if pod is None and seen.kafka.forgot(node_id):
        return None
    if pod is None or not pod.ready:
        return f"Its pod is not Ready: {'there is none' if pod is None else pod.name}."
    verdict = check_returned(node_id, seen.kafka)
    return None if verdict.allowed else verdict.reason


ACTOR = "nth"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainReport:
    """One attempt that NTH has ended."""

    nth_event_id: str
    announcement_id: str
    instance_id: str
    kind: str
    node_name: str | None


def read(body: str) -> DrainReport:
    """Read a report; raises InvalidInput with a sentence for anything else."""
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(
            ["The body is no valid JSON; set NTH's webhookTemplate to {{ toJson . }}."]
        ) from None
    if not isinstance(message, Mapping):
        raise InvalidInput(["The body is no JSON object, as NTH's events are."])
    event_id, kind = text(message, "EventID"), text(message, "Kind")
    instance_id = instance_in(message.get("InstanceID"))
    missing = [
        name
        for name, value in (("EventID", event_id), ("Kind", kind), ("InstanceID", instance_id))
        if value is None
    ]
    if event_id is None or kind is None or instance_id is None:
        raise InvalidInput([f"The body has no usable {' and no '.join(missing)}."])
    return DrainReport(
        nth_event_id=event_id,
        announcement_id=_announcement_id(event_id),
        instance_id=instance_id,
        kind=kind,
        node_name=text(message, "NodeName"),
    )


def _refuse_constant(name: str) -> object:
    # Python reads NaN and Infinity, which are no JSON.
    raise ValueError(name)


def _announcement_id(event_id: str) -> str:
    """Return the id in NTH's own: asg-lifecycle-term-<hex of the announcement's id>."""
    try:
        return readable(bytes.fromhex(event_id.rpartition("-")[2]))
    except ValueError:
        raise InvalidInput(
            [f"EventID {event_id[:80]!r} does not end in the hex of an announcement's id."]
        ) from None


def concerns(incident: Incident, report: DrainReport) -> bool:
    """Say whether a report is about the drain that this incident had forwarded."""
    if incident.instance_id != report.instance_id or incident.forwarded is None:
        return False
    return report.announcement_id == _forwarded_id(incident)


def _forwarded_id(incident: Incident) -> str:
    """Return the id by which NTH knows what it was sent (its RequestId where no event has one)."""
    try:
        sent = json.loads(incident.drain_event or "")
    except ValueError:
        # The announcement got lost; handlers.incidents.act sent one in its place.
        return f"stillwater-{incident.id}"
    return text(sent, "id") or text(sent, "RequestId") or ""


def note_report(incident: Incident, report: DrainReport, now: float) -> Incident:
    """Add a report to the incident's history; the same one again changes nothing."""
    where = report.node_name or f"the node of {report.instance_id}"
    said = f"NTH has ended its attempt to drain {where} ({report.nth_event_id})."
    sent = incident.forwarded
    if sent is None or any(note.reason == said for note in incident.notes):
        return incident
    reported = sent if sent.reported_at is not None else replace(sent, reported_at=now)
    return replace(incident, forwarded=reported).with_note(now, ACTOR, said)
