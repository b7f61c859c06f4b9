"""Decides whether a node may go now: Kafka's consent, the operator at rest, its turn.

Every story asks it before a drain, handlers.incidents.act directly before one is sent, core.gate
before an eviction. Of several that wait the one with the least time left goes first: AWS's date, a
hook that runs out and Karpenter's deadline say how much that is, and who has none of them is given
the hold limit from when it first waited, so that nobody is passed for ever. This decides who asks
for the lease, never who gets it: core.availability.lease knows no order. A drain whose incident is
over still keeps the others waiting until what is seen says that it has ended safely.

A party leaves together, in this order:

    lease -> leaders away from all of the party -> label -> another reading -> drain

All of its leaders move at once: one broker at a time, a leader could go to one that stops next.
Two budgets divide Kafka's pods by the label (infra.kafka.cluster.budgets): whoever carries it is
under one that lets all of them go, everybody else under one that allows one pod fewer than there
are. The other reading matters: a budget that a pod has left is not counted anew for it, and would
let somebody else go until it is (handlers.adapters.kubernetes has it counted). Label and leaders
come back with the lease's end, and Strimzi makes a pod anew without the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.availability.consent import check_returned, may_leave, successor, too_much
from core.availability.lease import Lease, hinders, lease_of, members, valid_leases
from core.availability.operator import OperatorTask, operator_tasks
from core.events import Kind
from core.ground.fields import Unknown
from core.ground.window import clock
from core.ground.words import id_list, listing
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    Action,
    CloseBudget,
    Decision,
    DropLease,
    EndDrain,
    ForwardDrain,
    KeepErrors,
    MoveLeaders,
    OpenBudget,
    Page,
    RestoreLeaders,
    TakeLease,
    go,
    lease_renewal,
    retain,
    stay,
)
from core.incidents.learn import (
    IDLE_PATIENCE_SECONDS,
    IDLE_SECONDS,
    doubt,
    forced_soon,
    wanted_kept,
)
from core.incidents.observation import (
    Observation,
    PodView,
    Policy,
    StandingDrain,
    WaitingTurn,
    zones_of,
)
from core.incidents.record import EXPEDITED, UNDRAINED, Incident, State

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
    # One that yields is opened before the drain is sent.
    if not seen.beside or budget is None or budget.yields or is_open(incident, seen):
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
    # Taken by AWS or a group: nothing that we planned, or that may wait.
    announced = incident.is_hooked and not (_is_rotated(incident) or incident.called_off)
    if tasks and announced and all(each.is_stalled(seen.now) for each in tasks):
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


def _is_rotated(incident: Incident) -> bool:
    return any(key.startswith(f"{Kind.ROTATION}:") for key in incident.announcements)


def _insists(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS takes the instance, and waits no longer: past the limit, or near its date."""
    if _is_rotated(incident) or incident.called_off:
        return False
    due = incident.taken_at
    if due is not None and seen.now >= due - policy.hold_limit_seconds:
        return True
    return incident.is_hooked and seen.now - incident.waits_since > policy.hold_limit_seconds


def is_overruled(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS's word alone lets a node go that is some partition's last in sync."""
    if seen.kafka is None or incident.node_id is None or incident.release is not None:
        return False
    margin = policy.isr_margin
    plain = may_leave(incident.node_id, seen.kafka, isr_margin=margin, beside=seen.beside)
    return not plain.allowed and consent(incident, seen, policy)[0]


# Of several pods so many are named.
MOST_NAMED = 3


def other_kafka_pods(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return which other pods of this Kafka stand on the node: consent is for one of them.

    A drain that we send or begin takes all of them; of others' drains each is asked about.
    """
    theirs = policy.drain_route not in {"held", "evict"} or incident.is_evicted
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
        f"{listing(beside, MOST_NAMED)} of the same Kafka is also on {incident.node_name} "
        "and would leave with it: move one of them by hand, or release the instance."
    )


def kept_back(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Say who wants the instance kept for now: a pause, a person, or a zone that is frozen."""
    if seen.paused:
        return seen.paused
    if (until := incident.held_to(seen.now)) is not None:
        return f"Instance {incident.instance_id} is held until {clock(until)}."
    if incident.release is not None:
        return None
    freeze = None if out_of_time(incident, seen, policy) else seen.freeze(incident.zone)
    return None if freeze is None else f"{freeze.sentence} Nothing is drained there."


def out_of_time(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether the instance is taken so soon that nothing may wait for a frozen zone.

    A freeze keeps planned work away; it keeps neither AWS from its date nor Karpenter from its
    deadline, and a broker that is not moved by then is lost instead.
    """
    if forced_soon(incident, seen.now, policy.planned_margin_seconds):
        return True
    if incident.scheduled_said_at is None or incident.called_off:
        return False
    hurried = EXPEDITED in (incident.event_type or "").upper()
    due = incident.taken_at
    return hurried or (due is not None and seen.now >= due - policy.planned_margin_seconds)


def past_hold_limit(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep an instance that has been held for too long: never silently, never for ever.

    A pause, a person's hold and a frozen zone outlast our limit, which counts anew after them; they
    do not outlast the one that AWS sets a hook.
    """
    if not incident.is_hooked or policy.drain_route == "asked":
        return None  # Nothing of ours runs out: whoever waits for a window may wait for days.
    last = max(policy.hook_limit_seconds - policy.heartbeat_timeout_seconds, 0.0)
    held, waited = seen.now - incident.held_since, seen.now - incident.waits_since
    patient = wanted_kept(incident, seen) or waited <= policy.hold_limit_seconds
    if patient and held <= last:
        return None
    return retain(
        incident,
        "hold_limit",
        f"Instance {incident.instance_id} was held for {held:.0f} s without "
        f"being allowed to go ({incident.reason.rstrip('.')}); it is kept until a person decides.",
    )


def forward_now(policy: Policy) -> Decision:
    """Drain at once: two minutes leave no time for a replacement."""
    if policy.drain_route == "direct":
        return go(State.DRAINING, "The termination handler heard the warning itself.", KeepErrors())
    if policy.drain_route == "asked":
        reason = (
            "EC2 takes the instance within two minutes: the webhook allows every eviction on it."
        )
        return go(State.DRAINING, reason, KeepErrors())
    return go(
        State.DRAINING,
        "EC2 takes the instance within two minutes: the drain starts at once.",
        ForwardDrain(),
    )


def overtaking_decision(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Stop waiting for a replacement or a turn when something else has made it pointless."""
    if incident.urgent:
        return forward_now(policy)
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.node_name not in {None, incident.node_name}:
        # Evicted by somebody else, or by a drain whose invocation died before recording it.
        reason = f"Pod {pod.name} has moved to {pod.node_name} already."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    gone = incident.node_name is not None and seen.node_named(incident.node_name) is None
    homeless = pod is None or pod.node_name is None
    if incident.is_evicted and homeless and incident.node_id is not None:
        # By somebody who asked nobody: it is out, and not on its way to where it was.
        reason = f"Pod {incident.pod_name} has left {incident.node_name}, which others drain."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    if incident.is_hooked and gone and homeless:
        reason = f"Node {incident.node_name} is gone from Kubernetes, and its pod with it."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    return past_hold_limit(incident, seen, policy)


def look_again(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep a node that may be idle where it is until that is sure; None: it is."""
    if seen.paused:
        return stay(incident, policy, seen.paused)
    waited = seen.now - incident.held_since
    patient = waited <= IDLE_PATIENCE_SECONDS
    doubtful = doubt(incident, seen, patient=patient)
    if doubtful is not None:
        reason = f"{doubtful}: it is looked at again."
        page = () if patient else (Page("volume_on_idle_node", reason),)
        return stay(incident, policy, reason, *page)
    if incident.node_name is None:
        return None  # It never joined.
    since = incident.idle_since
    # Homeless pods alone reset it, and are believed to belong elsewhere once patience is over.
    sure = not patient if since is None else seen.now - since >= IDLE_SECONDS
    if sure:
        return None
    reason = f"No Kafka pod is on {incident.node_name}: it is looked at once more."
    return stay(incident, policy, reason)


# Ticks of whoever is first may be late by so many intervals.
LATE_INTERVALS = 3


def turn_due_at(incident: Incident, seen: Observation, policy: Policy) -> float:
    """Return by when an incident's turn is to have come."""
    entered = (t.at for t in incident.transitions if t.state is State.HOLDING)
    ends = [next(entered, seen.now) + policy.hold_limit_seconds]
    if incident.is_hooked:
        ends.append(incident.waits_since + policy.hold_limit_seconds)
    disruption, release = incident.disruption, incident.release
    dates = (
        incident.taken_at,
        None if disruption is None else disruption.forced_at,
        None if release is None else release.at,
    )
    return min(*ends, *(at for at in dates if at is not None), ends[0])


def asking(decision: Decision, incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Return a decision that waits for others, and says so."""
    return replace(decision, turn_due_at=turn_due_at(incident, seen, policy))


def who_goes_first(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return the incident that is to have the lease before this one; None: it is this one's turn.

    Where somebody holds it, or a companion does, the lease itself says who goes.
    """
    if seen.lease_holder is not None or seen.beside:
        return None
    mine = turn_due_at(incident, seen, policy), incident.id
    late = LATE_INTERVALS * policy.tick_interval_seconds
    first = min(
        ((w.due_at, w.incident_id) for w in seen.waiting if seen.now <= w.next_look_at + late),
        default=mine,
    )
    return None if first >= mine else first[1]


def waiting_turns(others: Iterable[Incident], incident: Incident) -> Iterator[WaitingTurn]:
    """Yield who else asks for its turn, of another party than an incident's."""
    for other in others:
        together = other.party is not None and other.party == incident.party
        if other.turn_due_at is not None and not together:
            looked_at = max(other.ticked_at or 0.0, other.next_tick_at or 0.0)
            yield WaitingTurn(other.id, other.turn_due_at, looked_at)


def others_first(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Wait for drains of others that may still take a broker out; end those that cannot."""
    for drain, reason in unsafe_drains(seen, policy):
        waited = seen.now - incident.entered_at
        late = not drain.open and waited > LATE_REPLACEMENT_SECONDS
        page = (Page("drain_standing", reason),) if late else ()
        return asking(stay(incident, policy, reason, *page), incident, seen, policy)
    ended = tuple(EndDrain(drain.holder) for drain in seen.drains)
    if not ended:
        return None
    holders = ", ".join(drain.holder for drain in seen.drains)
    # Read once more before anything follows from it.
    return stay(incident, policy, f"The drain of {holders} has ended safely.", *ended)


_GONE = frozenset({"terminated", None})  # EC2's states of an instance that nobody can drain


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


def seen_to_end(incident: Incident) -> bool:
    """Say whether an incident that is over saw its own drain end, so that no lease outlives it.

    One that a person let go as it was has seen nothing.
    """
    return incident.state is State.RELEASED and incident.release is None


def unleased_drains(
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
        return f"Pod {away.name} is not Ready, so no set is opened.", _label_removal(incident, seen)
    if not is_open(incident, seen):
        pod = incident.pod_name or ""
        others = id_list(sorted(together - {incident.node_id}))
        return f"{pod} is opened to leave together with {others}.", (OpenBudget(pod),)
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


def closing_actions(
    incident: Incident, seen: Observation, decision: Decision
) -> tuple[Action, ...]:
    """Take the incident's label off once it holds no lease to leave by, whatever the reason."""
    held = seen.lease_holder == incident.id or decision.state is State.DRAINING
    kept = decision.state in _OPEN_IN and held
    if kept and not any(isinstance(each, DropLease) for each in decision.actions):
        return ()
    return _label_removal(incident, seen)


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


def _label_removal(incident: Incident, seen: Observation) -> tuple[Action, ...]:
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
    begun = incident.is_hooked or incident.in_place is not None
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


def leaders_return(incident: Incident, seen: Observation, decision: Decision) -> tuple[Action, ...]:
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
