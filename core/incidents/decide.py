"""Decides what happens to an instance that leaves: one pure function, `next_action`.

    opened -> replacing -> holding -> draining -> gating -> released
    side exits: ridden_through, cancelled, retained, lost

handlers.tick calls it once per tick with what is remembered (core.incidents.record) and what is
true now (core.incidents.observation), carries out the actions in order, and records the decision
with `settle`. A decision that is repeated after a crash must be harmless: every action is
idempotent. Each state has its step, and each story a module: terminating, planned, evicted,
in_place, lost. `WAITS` names every wait of an open incident: for what, how long that takes, and
when a person is called, once, with EC2's own state, what the incident holds, and the forced way
out. Most waits have a better page of their own, which comes first. docs/guarantees.md renders the
table, and the explorer holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from core.events import Interruption, Kind
from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.ground.window import clock
from core.ground.words import span
from core.incidents import evicted, in_place, lost, planned, replacement
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    Action,
    Decision,
    DropLease,
    ForwardDrain,
    FreeSpare,
    Heartbeat,
    KeepErrors,
    Page,
    RestoreLeaders,
    asked_for,
    go,
    lease_renewal,
    retain,
    stay,
)
from core.incidents.consenting import (
    closing_actions,
    forward_now,
    kept_back,
    leaders_return,
    led_again_by_a_run,
    look_again,
    others_first,
    past_hold_limit,
    stalled_operator,
)
from core.incidents.evicted import claim_to_end, deadlines
from core.incidents.observation import ENDING, STOPPED, Observation, Policy
from core.incidents.planned import add_reboots
from core.incidents.record import TERMINAL, UNDRAINED, Incident, State
from core.incidents.replacement import GROUP_SECONDS, spare_kept, terminate_through_group
from core.incidents.terminating import (
    draining,
    gating,
    holding,
    is_our_drain,
    remaining_evictions,
    replacing,
    uncordon_actions,
)

# Auto Scaling may announce a termination before its own describe call shows it.
IN_SERVICE_GRACE_SECONDS = 60.0
RETAINED = "Terminating:Retained"
# An API server that is upgraded is away for minutes.
BLIND_SECONDS = 900.0


def why_unanswered(interruption: Interruption) -> str | None:
    """Say why an announcement opens no incident; None: it opens one."""
    if interruption.kind is Kind.ASG_LAUNCH:
        return f"Instance {interruption.instance_id} is being launched, which takes nothing away."
    if interruption.closed:
        return f"What AWS announced for {interruption.instance_id} is over or called off."
    return None


def why_overruled(interruption: Interruption, closed_at: float | None, now: float) -> str | None:
    """Say that AWS has closed what an announcement that came late is about; None: it has not."""
    if closed_at is None or not interruption.is_outdated(closed_at, now):
        return None
    return (
        f"AWS announced this for instance {interruption.instance_id} before it closed the event "
        f"on {clock(closed_at)}."
    )


def next_action(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Decide the next step of one incident, after `learn` has added what `seen` shows."""
    if not incident.open:
        return Decision(state=incident.state, reason=incident.reason)
    if incident.unreadable is not None:
        return _page_once(_held_unread(incident, policy), incident, seen, policy)
    decision = _blind(incident, seen, policy) if seen.blind else _seeing(incident, seen, policy)
    return _page_once(decision, incident, seen, policy)


def _held_unread(incident: Incident, policy: Policy) -> Decision:
    """Hold an incident that a newer release wrote: its hooks beat, and somebody is told."""
    reason = (
        f"Incident {incident.id} was written by a newer release ({incident.unreadable}), which "
        f"this one cannot read: deploy that release again, or decide by hand."
    )
    return stay(incident, policy, reason, Page("unreadable", reason))


def _seeing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Decide on a reading: what others have ended, what a person wants, then the state's step."""
    decided = _ended_elsewhere(incident, seen, policy) or _decide_on_request(incident, seen, policy)
    decision = decided or _STEPS[incident.state](incident, seen, policy)
    decision = add_reboots(decision, incident, seen, policy)
    state = decision.state
    # Before a drain: afterwards what the operator does is nobody's hindrance.
    stalled = stalled_operator(incident, seen) if state in UNDRAINED else None
    called = (
        *_doubt_pages(incident, seen, state),
        *(() if stalled is None else (Page("operator_stalled", stalled),)),
        *deadlines(incident, seen, decision),
    )
    if policy.drain_route == "asked":
        kept = kept_back(incident, seen, policy)
        tidied: tuple[Action, ...] = () if kept else claim_to_end(incident, seen, decision)
    else:
        tidied = _tidying_actions(incident, seen, state)
    ours = is_our_drain(incident, policy)
    uncordoned = uncordon_actions(incident, seen, state) if ours else ()
    back = in_place.tidying_actions(incident, seen, decision)
    added = (*called, *tidied, *uncordoned, *back)
    decision = replace(decision, actions=(*decision.actions, *added))
    late = overdue(incident, seen, policy, decision)
    decision = replace(decision, actions=(*decision.actions, *late))
    shut = (*closing_actions(incident, seen, decision), *leaders_return(incident, seen, decision))
    return replace(decision, actions=(*shut, *decision.actions))


def _doubt_pages(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Call a person where no reading of Kafka is whole, since nobody goes before one is.

    At once where Kafka hides something until a right is granted, later where it may mend itself: a
    reading that is not whole, or none at all.
    """
    if state in TERMINAL:
        return ()
    lasts = seen.now - (incident.doubted_since or seen.now) > BLIND_SECONDS
    if seen.kafka is None:
        silent = seen.kafka_silent and lasts
        return (Page("kafka_silent", seen.kafka_silence),) if silent else ()
    if seen.kafka.withheld:
        return (Page("kafka_rights", seen.kafka.doubt),)
    return (Page("doubt", seen.kafka.doubt),) if seen.kafka.doubts and lasts else ()


def _tidying_actions(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Keep what waits for this incident, and leave nothing of it behind when it is over."""
    if state not in TERMINAL:
        return spare_kept(incident, seen, state)
    left: list[Action] = [FreeSpare(n.name) for n in seen.nodes if n.spare_for == incident.id]
    if incident.leaders_moved_at is not None:
        left.append(RestoreLeaders(elect=not led_again_by_a_run(incident, state)))
    return (*left, *replacement.room_return(incident, seen, state))


def _page_once(
    decision: Decision, incident: Incident, seen: Observation, policy: Policy
) -> Decision:
    """Call a person once for each reason, and keep the hooks waiting until the next look."""
    actions = tuple(
        a for a in decision.actions if not (isinstance(a, Page) and a.key in incident.pages)
    )
    delay = decision.delay_seconds
    if delay is not None and incident.is_hooked:
        delay = min(delay, policy.heartbeat_timeout_seconds / 4)
    if _heartbeat_is_due(decision, incident, seen, policy):
        actions = (Heartbeat(DRAIN_HOOK), Heartbeat(GATE_HOOK), *actions)
    return replace(decision, actions=actions, delay_seconds=delay)


def _heartbeat_is_due(
    decision: Decision, incident: Incident, seen: Observation, policy: Policy
) -> bool:
    """Keep both hooks waiting once half their timeout has passed since the last heartbeat."""
    if decision.delay_seconds is None or not incident.is_hooked:
        return False
    if policy.drain_route == "asked":
        return False  # The hooks are theirs, and so is their time.
    if not seen.blind and seen.ec2_state in ENDING:
        return False
    if incident.heartbeat_at is None and not incident.hooks_said:
        return True  # Found standing: since when they run, nobody has said.
    last = incident.heartbeat_at or incident.announced_at
    return seen.now - last >= policy.heartbeat_timeout_seconds / 2


def _blind(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the instance while nothing can be read; a drain that has begun goes on by itself."""
    drained = incident.state in {State.DRAINING, State.GATING}
    if not drained:
        kept = past_hold_limit(incident, seen, policy)
        if kept:
            return kept
    lasts = seen.now - (incident.blind_since or seen.now) > BLIND_SECONDS
    # Nobody sees what happens meanwhile, and a wait without hooks has no other end.
    page = (Page("blind", seen.blind),) if lasts else ()
    return stay(incident, policy, seen.blind, *page, *(lease_renewal(incident) if drained else ()))


def _ended_elsewhere(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Recognise that somebody else has ended what this incident was doing."""
    # What comes after that for an instance which serves on has no hook, and is a matter of its own.
    hooked = incident.is_hooked and not incident.urgent
    if seen.lifecycle_state == RETAINED and incident.release is None and hooked:
        return retain(
            incident,
            "retained",
            f"The group retains instance {incident.instance_id}: a hook was abandoned or timed "
            f"out. It runs on until a person releases it.",
        )
    if incident.state not in UNDRAINED:
        return None
    if seen.ec2_state in STOPPED:
        drained = lost.follow_others_drain(incident, seen, policy)
        return drained or lost.decide_found(incident, seen, policy)
    terminating = incident.kind is Kind.ASG_TERMINATE and incident.release is None
    settled = seen.now - incident.held_since > IN_SERVICE_GRACE_SECONDS
    return _decide_unasked_termination(incident, seen) if terminating and settled else None


def _decide_unasked_termination(incident: Incident, seen: Observation) -> Decision | None:
    """Recognise a termination that its group knows nothing of, or whose group is gone."""
    if seen.lifecycle_state == "InService":
        reason = f"The group has instance {incident.instance_id} in service: it is not leaving."
        return go(State.CANCELLED, reason, DropLease())
    abandoned = incident.group is not None and seen.group is None
    if abandoned and seen.ec2_state not in ENDING:
        reason = (
            f"Group {incident.group} is gone and instance {incident.instance_id} runs on: no group "
            "terminates or replaces it."
        )
        return go(State.CANCELLED, reason, Page("group_gone", reason), DropLease())
    return None


def _decide_on_request(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Do what a person asked for; a drain that has begun can only be let go on."""
    if incident.state not in UNDRAINED or seen.own_drain_at is not None:
        return None
    if incident.ignored_by:
        said = f"{incident.ignored_by} wants this ignored"
        if incident.is_hooked:
            reason = f"{said}: instance {incident.instance_id} stays until a person releases it."
            return retain(incident, "ignored", reason)
        return planned.call_off(incident, seen, policy, f"{said}.")
    # A retained instance stands in no hook any more, whatever was announced of it once.
    waits = incident.held_to(seen.now) or asked_for(incident, policy)
    asked = None if waits else incident.release
    if asked is not None and seen.lifecycle_state in {"InService", RETAINED}:
        passed = others_first(incident, seen, policy) if incident.node_id is not None else None
        if passed is not None:
            return passed
        return terminate_through_group(incident, seen, policy, f"{asked.by} lets it go.")
    return None


def _decide_opened(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    if incident.urgent:
        return forward_now(policy)
    return _FIRST_STEPS[incident.kind](incident, seen, policy)


def _terminating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    if policy.drain_route == "direct":
        heard = "The termination handler heard the announcement itself."
        return go(State.DRAINING, heard, KeepErrors())
    if incident.node_id is not None:
        return go(
            State.REPLACING,
            f"Kafka node {incident.node_id} runs on {incident.node_name}: a replacement comes "
            f"first.",
        )
    again = look_again(incident, seen, policy)
    if again:
        return past_hold_limit(incident, seen, policy) or again
    reason = f"No Kafka pod runs on instance {incident.instance_id}: nothing is to be replaced."
    return go(State.DRAINING, reason, *(() if incident.drain_event is None else (ForwardDrain(),)))


def _decide_recommended(incident: Incident, *_: object) -> Decision:
    return go(
        State.RIDDEN_THROUGH,
        f"EC2 only recommends to leave instance {incident.instance_id}; a warning would open an "
        f"incident of its own.",
    )


def _decide_unannounced(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait for EC2's word on a state change that nothing announced: `lost` alone acts on it."""
    state = seen.ec2_state
    if state in lost.MAY_RUN:
        return go(State.CANCELLED, f"EC2 runs instance {incident.instance_id}: it stays.")
    return stay(
        incident, policy, f"Instance {incident.instance_id} is {state}, and nothing announced it."
    )


def _replacing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    step = planned.replacing if planned.is_planned(incident) else replacing
    return step(incident, seen, policy)


def _holding(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    waits = planned.is_planned(incident) and seen.own_drain_at is None
    kept = planned.holding(incident, seen, policy) if waits else None
    step = evicted.holding if asked_for(incident, policy) else holding
    return kept or step(incident, seen, policy)


def _gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    if incident.lost_at is not None:
        return lost.gating(incident, seen, policy)
    if in_place.stays(incident, seen):
        return in_place.gating(incident, seen, policy)
    decision = gating(incident, seen, policy)
    if decision.state is not State.GATING:
        return decision
    # EC2 may end an instance in the middle of its drain: what it holds is freed all the same.
    unbound = lost.unbound(incident, seen)
    evicted_too = remaining_evictions(incident, seen, policy)
    return replace(decision, actions=(*decision.actions, *unbound, *evicted_too))


def _decide_damaged(incident: Incident, *_: object) -> Decision:
    """Keep what AWS says is damaged: only a person knows whether the broker is better off gone."""
    what = incident.event_type or incident.kind.value
    return retain(
        incident,
        "damaged",
        f"AWS reports {what} for instance {incident.instance_id}; it is kept until a person "
        f"decides.",
    )


_Step = Callable[[Incident, Observation, Policy], Decision]
_FIRST_STEPS: Mapping[Kind, _Step] = {
    Kind.ASG_TERMINATE: _terminating,
    Kind.SCHEDULED_CHANGE: planned.decide_scheduled,
    Kind.ROTATION: planned.decide_asked,
    Kind.SICK_NODE: planned.decide_asked,
    Kind.EVICTION: evicted.decide_opened,
    Kind.REBALANCE: _decide_recommended,
    Kind.STATE_CHANGE: _decide_unannounced,
    Kind.INSTANCE_ISSUE: _decide_damaged,
    Kind.INSTANCE_STORE_DEGRADED: _decide_damaged,
    Kind.VOLUME_PROBLEM: _decide_damaged,
}
_STEPS: Mapping[State, _Step] = {
    State.OPENED: _decide_opened,
    State.REPLACING: _replacing,
    State.HOLDING: _holding,
    State.DRAINING: draining,
    State.GATING: _gating,
}
# EC2 stops or ends a machine within two minutes; one that hangs may do so for hours.
ENDING_SECONDS = 900.0
# From the end of a pod's grace: the kubelet kills it then, and tells so within moments.
KILLED_SECONDS = 120.0
# A maintenance window opens once a week.
WINDOW_SECONDS = 8 * 86_400.0
SLACK_SECONDS = 300.0
EVERY = frozenset(State) - TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One wait; `pages` call a person, the first of them at the limit if none has before."""

    states: frozenset[State]
    awaits: str
    usual: str
    # Epoch seconds; None: it does not wait for that.
    since: Callable[[Incident, Observation, Policy], float | None]
    limit: Callable[[Policy], float]
    pages: tuple[str, ...]
    way_out: str


def _state_began_at(incident: Incident, seen: Observation, policy: Policy) -> float:
    """Return since when it is in its state, its window open, and nobody wanted it kept."""
    opened = 0.0
    if incident.kind is Kind.SCHEDULED_CHANGE and policy.maintenance is not None:
        opened, _ = policy.maintenance.opening(seen.now)
    return max(incident.entered_at, incident.kept_at or 0.0, opened)


def _turn_wait_began(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    """One for which a run only makes ready is called off by itself, after an hour."""
    return None if incident.ahead else _state_began_at(incident, seen, policy)


def _kubelet_wait_began(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    """Return when the grace of a pod ended that was told to stop, on a machine that runs."""
    del policy
    pod = seen.pod_named(incident.pod_name)
    on_it = pod is not None and pod.stopping and pod.node_name == incident.node_name
    return pod.out_since if pod is not None and on_it else None


def _group_wait_began(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    del policy
    accepted = incident.terminate_asked_at is not None and incident.refusal is None
    return incident.terminate_asked_at if accepted and seen.lifecycle_state == "InService" else None


RELEASE = "`stillwater release ENV INSTANCE` lets the instance go whatever Kafka says"
WAITS: tuple[Wait, ...] = (
    Wait(
        states=frozenset({State.OPENED}),
        awaits="the maintenance window, or the time before AWS's own date",
        usual="days",
        since=lambda incident, *_: (
            incident.entered_at if incident.kind is Kind.SCHEDULED_CHANGE else None
        ),
        limit=lambda _: WINDOW_SECONDS,
        pages=("stands_still", "scheduled", "held_past_date"),
        way_out=RELEASE,
    ),
    Wait(
        states=frozenset({State.OPENED}),
        awaits="a first decision: a second look at an idle node, EC2's word on a machine that ends",
        usual="a minute",
        since=lambda incident, seen, policy: (
            None
            if incident.kind is Kind.SCHEDULED_CHANGE
            else _state_began_at(incident, seen, policy)
        ),
        limit=lambda _: ENDING_SECONDS,
        pages=("stands_still", "scheduled", "unknown_instance"),
        way_out="`stillwater ignore ENV INSTANCE` closes the incident",
    ),
    Wait(
        states=frozenset({State.REPLACING}),
        awaits="another node that can take the pod",
        usual="3 minutes",
        since=_turn_wait_began,
        limit=lambda _: LATE_REPLACEMENT_SECONDS,
        pages=("late_replacement", "no_capacity", "no_group", "no_room", "scale_in"),
        way_out="`stillwater release ENV INSTANCE` lets it go without a replacement",
    ),
    Wait(
        states=frozenset({State.HOLDING}),
        awaits="its turn, Kafka's consent, and Strimzi's operator at rest",
        usual="minutes for each broker that is out before",
        since=_turn_wait_began,
        limit=lambda policy: policy.hold_limit_seconds,
        pages=(
            "waits_long",
            "hold_limit",
            "drain_standing",
            "operator_stalled",
            "shared_node",
            "last_in_sync",
        ),
        way_out=RELEASE,
    ),
    Wait(
        states=frozenset({State.REPLACING, State.HOLDING, State.GATING}),
        awaits="the group to begin a termination that it has accepted",
        usual="5 seconds",
        since=_group_wait_began,
        limit=lambda _: GROUP_SECONDS,
        pages=("group_silent", "not_leaving"),
        way_out=(
            "`aws autoscaling detach-instances --instance-ids INSTANCE "
            "--no-should-decrement-desired-capacity --auto-scaling-group-name GROUP` takes the "
            "instance out of the group"
        ),
    ),
    Wait(
        states=frozenset({State.DRAINING}),
        awaits="the pod to leave its node",
        usual="1 to 6 minutes",
        since=_state_began_at,
        limit=lambda policy: 3 * policy.forward_again_seconds + SLACK_SECONDS,
        pages=("drain_stuck", "drain_limit", "not_back", "ended_early"),
        way_out=RELEASE,
    ),
    Wait(
        states=frozenset({State.DRAINING, State.GATING}),
        awaits="the kubelet to end a pod whose grace is over",
        usual="seconds",
        since=_kubelet_wait_began,
        limit=lambda _: KILLED_SECONDS,
        pages=("pod_stuck",),
        way_out=(
            "stop the instance (`aws ec2 stop-instances --force --instance-ids INSTANCE`): once "
            "EC2 confirms that, pod and volumes are freed. Never delete the pod by force while "
            "its machine runs"
        ),
    ),
    Wait(
        states=frozenset({State.GATING}),
        awaits="free volumes, and the broker back in every ISR elsewhere",
        usual="2 to 10 minutes, longer with much to copy",
        since=_state_began_at,
        limit=lambda policy: policy.post_condition_wait_seconds + SLACK_SECONDS,
        pages=("not_back", "hook_refuses", "lost", "machine_late", "root_detached", "drain_limit"),
        way_out=RELEASE,
    ),
    Wait(
        states=EVERY,
        awaits="EC2 to end or stop a machine that it says it is ending",
        usual="2 minutes",
        since=lambda incident, *_: incident.ending_since,
        limit=lambda _: ENDING_SECONDS,
        pages=("ec2_ending",),
        way_out=(
            "`aws ec2 stop-instances --force --instance-ids INSTANCE`, and a support case; pod and "
            "volumes are freed once EC2 confirms the end"
        ),
    ),
)


def overdue(
    incident: Incident, seen: Observation, policy: Policy, decision: Decision
) -> Iterator[Page]:
    """Yield a call for each wait that goes on past its limit, and that no page has told of."""
    if decision.state is not incident.state:
        return
    called = {*incident.pages, *(a.key for a in decision.actions if isinstance(a, Page))}
    for wait in WAITS:
        since = wait.since(incident, seen, policy) if incident.state in wait.states else None
        late = since is not None and seen.now - since > wait.limit(policy)
        if since is not None and late and called.isdisjoint(wait.pages):
            text = _overdue_text(incident, seen, wait, decision.reason, since)
            yield Page(wait.pages[0], text)


def _overdue_text(
    incident: Incident, seen: Observation, wait: Wait, reason: str, since: float
) -> str:
    names = {"INSTANCE": incident.instance_id, "GROUP": incident.group or "its group"}
    way_out = wait.way_out
    for placeholder, name in names.items():
        way_out = way_out.replace(placeholder, name)
    return (
        f"{reason.rstrip('.')}. Instance {incident.instance_id} has waited "
        f"{span(seen.now - since)} for {wait.awaits}; {wait.usual} is usual. EC2 says "
        f"{seen.ec2_state or 'nothing of it'}. {_held_text(incident, seen)} Way out: {way_out}."
    )


def _held_text(incident: Incident, seen: Observation) -> str:
    """Say what the incident keeps from others while it waits."""
    drained = incident.state not in UNDRAINED and incident.node_id is not None
    held = [
        *(["the lease"] if seen.lease_holder == incident.id or drained else []),
        *(["its lifecycle hooks"] if incident.is_hooked else []),
        *([f"room for one more instance in {incident.group}"] if incident.surge_to else []),
        *([f"node {incident.spare}"] if incident.spare else []),
        *(["what its broker led"] if incident.leaders_moved_at is not None else []),
    ]
    return f"It holds {', '.join(held)}." if held else "It holds nothing."
