"""Names every wait of an open incident: for what, how long that takes, and when a person is called.

core.incidents.decide asks `overdue` at each look. A wait that lasts longer than its limit calls a
person once, whatever the decision of that look was: with EC2's own state, what the incident holds,
and the forced way out. Most waits have a better page of their own, which comes first. The page
docs/guarantees.md renders this table, and the explorer holds it: a confirmation that never comes
is paged for within its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.incidents.actions import Page
from core.incidents.decisions import ec2_state, is_hooked
from core.incidents.observation import Observation, Policy
from core.incidents.record import TERMINAL, UNDRAINED, Decision, Incident, State
from core.words import span

# EC2 stops or ends a machine within two minutes; one that hangs may do so for hours.
ENDING_SECONDS = 900.0
# Auto Scaling shows a termination within seconds of accepting it.
GROUP_SECONDS = 300.0
# From the end of a pod's grace: the kubelet kills it then, and tells so within moments.
KILLED_SECONDS = 120.0
# A replacement takes a few minutes; Cluster Autoscaler gives up on a node after as many.
LATE_REPLACEMENT_SECONDS = 900.0
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


def _in_state(incident: Incident, seen: Observation, policy: Policy) -> float:
    """Return since when it is in its state, its window open, and nobody wanted it kept."""
    opened = 0.0
    if _is_scheduled(incident) and policy.maintenance is not None:
        opened, _ = policy.maintenance.opening(seen.now)
    return max(incident.entered_at, incident.kept_at or 0.0, opened)


def _for_its_start(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    del seen, policy
    return incident.entered_at if _is_scheduled(incident) else None


def _for_a_decision(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    return None if _is_scheduled(incident) else _in_state(incident, seen, policy)


def _is_scheduled(incident: Incident) -> bool:
    return incident.scheduled_said_at is not None and not is_hooked(incident)


def _for_its_turn(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    """One for which a run only makes ready is called off by itself, after an hour."""
    return None if incident.ahead else _in_state(incident, seen, policy)


def _for_ec2(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    del seen, policy
    return incident.ending_since


def _for_the_kubelet(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    """Return when the grace of a pod ended that was told to stop, on a machine that runs."""
    del policy
    pod = seen.pod_named(incident.pod_name)
    on_it = pod is not None and pod.stopping and pod.node_name == incident.node_name
    return pod.out_since if pod is not None and on_it else None


def _for_the_group(incident: Incident, seen: Observation, policy: Policy) -> float | None:
    del policy
    accepted = incident.terminate_asked_at is not None and incident.refusal is None
    return incident.terminate_asked_at if accepted and seen.lifecycle_state == "InService" else None


RELEASE = "`stillwater release ENV INSTANCE` lets the instance go whatever Kafka says"
WAITS: tuple[Wait, ...] = (
    Wait(
        states=frozenset({State.OPENED}),
        awaits="the maintenance window, or the time before AWS's own date",
        usual="days",
        since=_for_its_start,
        limit=lambda _: WINDOW_SECONDS,
        pages=("stands_still", "scheduled", "held_past_date"),
        way_out=RELEASE,
    ),
    Wait(
        states=frozenset({State.OPENED}),
        awaits="a first decision: a second look at an idle node, EC2's word on a machine that ends",
        usual="a minute",
        since=_for_a_decision,
        limit=lambda _: ENDING_SECONDS,
        pages=("stands_still", "scheduled", "unknown_instance"),
        way_out="`stillwater ignore ENV INSTANCE` closes the incident",
    ),
    Wait(
        states=frozenset({State.REPLACING}),
        awaits="another node that can take the pod",
        usual="3 minutes",
        since=_for_its_turn,
        limit=lambda _: LATE_REPLACEMENT_SECONDS,
        pages=("late_replacement", "no_capacity", "no_group", "no_room", "scale_in"),
        way_out="`stillwater release ENV INSTANCE` lets it go without a replacement",
    ),
    Wait(
        states=frozenset({State.HOLDING}),
        awaits="its turn, Kafka's consent, and Strimzi's operator at rest",
        usual="minutes for each broker that is out before",
        since=_for_its_turn,
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
        since=_for_the_group,
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
        since=_in_state,
        limit=lambda policy: 3 * policy.forward_again_seconds + SLACK_SECONDS,
        pages=("drain_stuck", "drain_limit", "not_back", "ended_early"),
        way_out=RELEASE,
    ),
    Wait(
        states=frozenset({State.DRAINING, State.GATING}),
        awaits="the kubelet to end a pod whose grace is over",
        usual="seconds",
        since=_for_the_kubelet,
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
        since=_in_state,
        limit=lambda policy: policy.post_condition_wait_seconds + SLACK_SECONDS,
        pages=("not_back", "hook_refuses", "lost", "machine_late", "root_detached", "drain_limit"),
        way_out=RELEASE,
    ),
    Wait(
        states=EVERY,
        awaits="EC2 to end or stop a machine that it says it is ending",
        usual="2 minutes",
        since=_for_ec2,
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
        f"{span(seen.now - since)} for {wait.awaits}; {wait.usual} is usual. "
        f"EC2 says {ec2_state(seen) or 'nothing of it'}. "
        f"{_held_text(incident, seen)} Way out: {way_out}."
    )


def _held_text(incident: Incident, seen: Observation) -> str:
    """Say what the incident keeps from others while it waits."""
    drained = incident.state not in UNDRAINED and incident.node_id is not None
    held = [
        *(["the lease"] if seen.lease_holder == incident.id or drained else []),
        *(["its lifecycle hooks"] if is_hooked(incident) else []),
        *([f"room for one more instance in {incident.group}"] if incident.surge_to else []),
        *([f"node {incident.spare}"] if incident.spare else []),
        *(["what its broker led"] if incident.leaders_moved_at is not None else []),
    ]
    return f"It holds {', '.join(held)}." if held else "It holds nothing."
