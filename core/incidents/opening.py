"""Decides when Kafka's disruption budgets let a party's pod go beside others, and when no longer.

Two budgets divide Kafka's pods by one label (infra.kafka.budgets): whoever carries it is under one
that lets all of them go, everybody else under one that allows one pod fewer than there are. So
while anybody is labelled, nobody else can be evicted; and one that leaves alone needs no label.

    lease -> label -> another reading -> drain      the label comes off with the lease

The other reading matters: a budget that a pod has left is not counted anew for it, and would let
somebody else go until it is (handlers.adapters.kubernetes has it counted).

Strimzi makes a pod anew without the label: it is one of those that stay again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.availability.lease import Lease, lease_of, members, valid_leases
from core.incidents.actions import Action, CloseBudget, DropLease, OpenBudget
from core.incidents.observation import Observation, PodView
from core.incidents.record import Decision, Incident, State
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
