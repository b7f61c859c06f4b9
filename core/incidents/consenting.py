"""Decides whether the node of an incident may go: Kafka's consent, and Strimzi's operator at rest.

core.incidents.terminating asks before a drain, handlers.incidents.act directly before it is sent,
core.incidents.draining before it is sent again, core.gate before an eviction.

Decides when Kafka's disruption budgets let a party's pod go beside others, and when no longer.

Two budgets divide Kafka's pods by one label (infra.kafka.cluster): whoever carries it is under one
that lets all of them go, everybody else under one that allows one pod fewer than there are. So
while anybody is labelled, nobody else can be evicted; and one that leaves alone needs no label.

    lease -> label -> another reading -> drain      the label comes off with the lease

The other reading matters: a budget that a pod has left is not counted anew for it, and would let
somebody else go until it is (handlers.adapters.kubernetes has it counted).

Strimzi makes a pod anew without the label: it is one of those that stay again.

Decides when leaders move away from a party before it leaves, and when they may return.

    lease -> leaders away from all of the party -> label -> another reading -> drain

All of its brokers at once: moved one broker at a time, a leader could go to one that stops next.
Each incident of the party asks for the whole of it, in its own name, so the orders are given back
when the last of them is over (handlers.incidents.shifts), by the sweep if nobody else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.availability.consent import may_leave, successor, too_much
from core.availability.lease import Lease, lease_of, members, valid_leases
from core.availability.operator import OperatorTask, operator_tasks
from core.events import Kind
from core.incidents.actions import (
    Action,
    CloseBudget,
    DropLease,
    MoveLeaders,
    OpenBudget,
    RestoreLeaders,
    TakeLease,
)
from core.incidents.decisions import is_hooked, stay
from core.incidents.observation import Observation, PodView, Policy, zones_of
from core.incidents.record import UNDRAINED, Decision, Incident, State
from core.unknown import Unknown
from core.views import id_list

# The disruption controller counts within a fraction of it.
OPEN_SECONDS = 1.0
# What an incident's lease is held in, with the drain still to come or on its way.
_OPEN_IN = frozenset({State.HOLDING, State.DRAINING})


def is_open(incident: Incident, seen: Observation) -> bool:
    """Say whether the incident's pod carries its label."""
    pod = seen.pod_named(incident.pod_name)
    return pod is not None and pod.may_leave == incident.id


def not_open_yet(incident: Incident, seen: Observation) -> tuple[str, tuple[Action, ...]] | None:
    """Return what is missing before a party's drain is sent, and what to do; None: nothing.

    A budget that knows no label, Strimzi's own say, stays as it is: there one follows another.
    """
    together = members(incident.party)
    if len(together) < 2 or not (_yielding(seen) or is_open(incident, seen)):
        return None
    away = next((p for p in seen.pods if not p.ready and p.node_id not in together), None)
    if away is not None:
        # Unlabelled it would not be let go either: the budget counts the others' pods.
        return f"Pod {away.name} is not Ready, so no party is opened.", _closing_actions(
            incident, seen
        )
    if not is_open(incident, seen):
        pod = incident.pod_name or ""
        others = id_list(sorted(together - {incident.node_id}))
        return f"{pod} is opened to leave beside {others}.", (OpenBudget(pod),)
    refusing = seen.refusing_budget(incident.pod_name)
    if refusing is not None:
        return f"PodDisruptionBudget {refusing.name} has not counted {incident.pod_name} yet.", ()
    still = next((b for b in seen.budgets if b.yields and b.disruptions_allowed > 0), None)
    if still is not None:
        why = f"PodDisruptionBudget {still.name} does not keep the others yet."
        return why, (OpenBudget(incident.pod_name or ""),)
    return None


def reopening_actions(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    """Open once more for a drain that is sent again: the pod may be another one by now."""
    together = len(members(incident.party)) > 1
    if incident.pod_name is None or not together or not _yielding(seen) or is_open(incident, seen):
        return ()
    return (OpenBudget(incident.pod_name),)


def closing(incident: Incident, seen: Observation, decision: Decision) -> tuple[Action, ...]:
    """Take the incident's label off once it holds no lease to leave by, whatever the reason."""
    held = seen.lease_holder == incident.id or decision.state is State.DRAINING
    kept = decision.state in _OPEN_IN and held
    if kept and not any(isinstance(each, DropLease) for each in decision.actions):
        return ()
    return _closing_actions(incident, seen)


def wrongly_open(
    pods: Iterable[PodView], leases: Iterable[Lease], open_ids: Iterable[str], now: float
) -> Iterator[tuple[str, str]]:
    """Yield the pods, each with its label's incident, that no lease of an open incident names."""
    valid, going = valid_leases(leases, now), frozenset(open_ids)
    for pod in pods:
        if pod.may_leave is None:
            continue
        lease = lease_of(valid, pod.may_leave)
        if lease is None or lease.node_id != pod.node_id or pod.may_leave not in going:
            yield pod.name, pod.may_leave


def _closing_actions(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    return tuple(CloseBudget(pod.name) for pod in seen.pods if pod.may_leave == incident.id)


def _yielding(seen: Observation) -> bool:
    return any(budget.yields for budget in seen.budgets)


# An election is seen within a second or two, and a controlled shutdown moves what is left.
ELECTED_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 1.0


def asks_of_all(incident: Incident) -> bool:
    """Say whether a reading has to show all partitions: the load of others is judged by it.

    Once its hooks stand: before, the turn ends at them, and brokers are asked for nothing.
    """
    begun = is_hooked(incident) or incident.in_place is not None
    return bool(_leavers(incident)) and begun and incident.leaders_moved_at is None


def _still_leads(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Wait until others lead what an incident's party leads; None: they do, or it leaves alone.

    A party whose leaders the others should not take over gives the lease back.
    """
    party = _leavers(incident)
    if not party or seen.kafka is None:
        return None
    led = [
        p for p in seen.kafka.partitions if p.leader in party and successor(p, party) is not None
    ]
    if incident.leaders_moved_at is None:
        # One that leaves alone hands over as many by its own shutdown.
        zones = zones_of(seen.nodes, seen.pods)
        refusal = too_much(party, seen.kafka, zones) if len(party) > 1 else None
        if refusal:
            return stay(incident, policy, refusal, DropLease())
        reason = f"Others are to lead what {id_list(sorted(party))} lead."
        moving = MoveLeaders(tuple(sorted(party)))
        return stay(incident, policy, reason, TakeLease(), moving, delay=LOOK_AGAIN_SECONDS)
    if led and seen.now - incident.leaders_moved_at < ELECTED_SECONDS:
        who = "The party leads" if len(party) > 1 else f"Broker {incident.node_id} leads"
        reason = f"{who} {len(led)} partitions still, {led[0].name} first."
        return stay(incident, policy, reason, TakeLease(), delay=LOOK_AGAIN_SECONDS)
    return None


def party_waits(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> Decision | None:
    """Wait until others lead what a party leads, and the budgets let it leave; None: they do."""
    leading = _still_leads(incident, seen, policy)
    if leading is not None:
        return replace(leading, reason=f"{reason} {leading.reason}")
    shut = not_open_yet(incident, seen)
    if shut is None:
        return None
    why, actions = shut
    return stay(incident, policy, f"{reason} {why}", TakeLease(), *actions, delay=OPEN_SECONDS)


def given_back(incident: Incident, seen: Observation, decision: Decision) -> tuple[Action, ...]:
    """Let a party lead again once its incident has no lease to leave by, and has not left."""
    if incident.leaders_moved_at is None or not _leavers(incident):
        return ()
    if decision.state not in UNDRAINED:
        return ()  # Its end gives them back.
    dropped = any(isinstance(each, DropLease) for each in decision.actions)
    return (RestoreLeaders(),) if dropped or seen.lease_holder != incident.id else ()


def led_again_by_a_run(incident: Incident, state: State) -> bool:
    """Say whether a run waits for a broker that is back, and has it lead again (following).

    Only a run takes parties and boots machines in place; one that called its own off is elsewhere.
    """
    back = state in {State.RELEASED, State.RIDDEN_THROUGH}
    return back and bool(_leavers(incident)) and not incident.called_off


def _leavers(incident: Incident) -> frozenset[int]:
    """Return whose leaders move first: a party's, or who stays away for as long as a boot takes."""
    party = frozenset(members(incident.party))
    if len(party) > 1:
        return party
    alone = incident.node_id if incident.in_place is not None else None
    return frozenset() if alone is None else frozenset({alone})


# How long the operator may be unreadable before a person is called.
UNKNOWN_SECONDS = 900.0


def consent(incident: Incident, seen: Observation, policy: Policy) -> tuple[bool, str]:
    """Say whether Kafka, or a person in its place, lets the node go, and why."""
    if incident.release is not None:
        return True, f"{incident.release.by} lets Kafka node {incident.node_id} go."
    if seen.kafka is None or incident.node_id is None:
        return False, seen.kafka_silence
    verdict = may_leave(
        incident.node_id,
        seen.kafka,
        isr_margin=policy.isr_margin,
        beside=seen.beside,
        even_last=_insists(incident, seen, policy),
    )
    busy = _operator_hinders(incident, seen)
    if not verdict.allowed:
        # The roll is why a replica is away, and the partition alone would not tell a person.
        return False, verdict.reason if busy is None else f"{verdict.reason} {busy}"
    waits = operator_refusal(incident, seen, policy) or _budget_refusal(incident, seen)
    if waits is not None:
        return False, waits
    if busy is None:
        return True, verdict.reason
    return True, f"{verdict.reason} Node {incident.node_id} does not wait any longer: {busy}"


def _budget_refusal(incident: Incident, seen: Observation) -> str | None:
    """Return which disruption budget would keep a party's eviction waiting; None: none."""
    budget = seen.refusing_budget(incident.pod_name)
    # One that yields is opened before the drain is sent (core.incidents.consenting).
    refused = budget is not None and not (budget.yields or is_open(incident, seen))
    if not (seen.beside and budget is not None and refused):
        return None
    # The eviction would only wait in the termination handler, and run out of its time there.
    return (
        f"Kafka node {incident.node_id} may leave together with {id_list(sorted(seen.beside))}, "
        f"and PodDisruptionBudget {budget.name} lets no other pod go until one is Ready again."
    )


def operator_refusal(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return why the operator keeps a node from leaving now; None: it does not.

    Between two pods of its roll everything is whole, and the next one goes without a word to us.
    AWS's own deadline overrides it, and so does a departure that was announced when the operator
    gets nowhere: a pod may wait for the very node that waits for the operator.
    """
    if incident.release is not None or incident.urgent or incident.node_id is None:
        return None
    waits = _operator_hinders(incident, seen)
    if waits is None or _insists(incident, seen, policy):
        return None
    tasks = _tasks_of_others(incident, seen)
    if tasks and _is_announced(incident) and all(each.is_stalled(seen.now) for each in tasks):
        return None
    return f"Node {incident.node_id} may not leave: {waits}"


def stalled_operator(incident: Incident, seen: Observation) -> str | None:
    """Return what of the operator's work needs a person; None: nothing does."""
    if isinstance(seen.operator, Unknown):
        since = incident.doubted_since or seen.now
        return _operator_hinders(incident, seen) if seen.now - since > UNKNOWN_SECONDS else None
    tasks = _tasks_of_others(incident, seen)
    stalled = next((each.sentence for each in tasks if each.is_stalled(seen.now)), None)
    return stalled and f"{stalled} Nothing planned starts before it has finished."


def _operator_hinders(incident: Incident, seen: Observation) -> str | None:
    if isinstance(seen.operator, Unknown):
        return f"Whether Strimzi's operator restarts pods is not known: {seen.operator.why}"
    return next((each.sentence for each in _tasks_of_others(incident, seen)), None)


def _tasks_of_others(incident: Incident, seen: Observation) -> list[OperatorTask]:
    """Return the operator's tasks but those about the incident's own pod alone.

    The next pod of that name has the new description: one restart instead of two.
    """
    if seen.operator is None or isinstance(seen.operator, Unknown):
        return []
    tasks = operator_tasks(seen.operator, seen.pods, seen.taken_out, seen.now)
    return [each for each in tasks if not each.is_about_only({incident.pod_name})]


def _is_announced(incident: Incident) -> bool:
    """Say whether AWS or a group takes the instance: nothing that we planned, or that may wait."""
    return is_hooked(incident) and not (_is_rotated(incident) or incident.called_off)


def _is_rotated(incident: Incident) -> bool:
    return any(key.startswith(f"{Kind.ROTATION}:") for key in incident.announcements)


def _insists(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS takes the instance, and waits no longer: past the limit, or near its date."""
    if _is_rotated(incident) or incident.called_off:
        return False
    due = incident.taken_at
    if due is not None and seen.now >= due - policy.hold_limit_seconds:
        return True
    return is_hooked(incident) and seen.now - incident.waits_since > policy.hold_limit_seconds


def is_overruled(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS's word alone lets a node go that is some partition's last in sync."""
    if seen.kafka is None or incident.node_id is None or incident.release is not None:
        return False
    margin = policy.isr_margin
    plain = may_leave(incident.node_id, seen.kafka, isr_margin=margin, beside=seen.beside)
    return not plain.allowed and consent(incident, seen, policy)[0]
