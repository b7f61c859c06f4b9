from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events import Interruption, Kind
from core.incident_json import from_json, to_json
from core.incident_record import incident_id
from core.incidents import (
    ALLOWED,
    TERMINAL,
    Decision,
    Incident,
    State,
    learn,
    merge,
    next_action,
    open_incident,
    reopens,
    settle,
    unanswered,
    unattended,
)
from core.observations import (
    CompleteHook,
    ForwardDrain,
    GroupView,
    Heartbeat,
    HookResult,
    InstanceView,
    NodeView,
    Observation,
    Page,
    PodView,
    Policy,
    TakeLease,
)
from core.rotation import ClusterView, PartitionView, VoterView, may_leave, returned

T = TypeVar("T")
POLICY = Policy(hold_limit_seconds=600, post_condition_hold_seconds=5)
OLD, NEW = "i-old", "i-new"


def announcement(kind: Kind = Kind.ASG_TERMINATE, **changes: object) -> Interruption:
    said: dict[str, object] = {
        "kind": kind,
        "instance_id": OLD,
        "event_id": "e",
        "dedupe_key": f"{kind}:{changes.get('hook', '')}:{changes.get('closed', '')}",
        "account": None,
        "region": None,
        "occurred_at": 0.0,
        "group": "g" if kind is Kind.ASG_TERMINATE else None,
        "body": f"{kind} {changes.get('hook', '')}",
        **changes,
    }
    return Interruption(**said)  # type: ignore[arg-type]


def opened(kind: Kind = Kind.ASG_TERMINATE, **changes: object) -> Incident:
    if kind is Kind.ASG_TERMINATE:
        changes = {"hook": "drain", "lifecycle_token": "t", **changes}
    return open_incident(announcement(kind, **changes), 0.0)


def seen(now: float = 1.0, **changes: object) -> Observation:
    instance = InstanceView(instance_id=OLD, state="running", zone="z", private_dns_name="old")
    return Observation(now=now, **{"instance": instance, **changes})  # type: ignore[arg-type]


def step(incident: Incident, observation: Observation, policy: Policy = POLICY) -> Incident:
    return settle(
        learn(incident, observation),
        next_action(learn(incident, observation), observation, policy),
        observation.now,
    )


# --- what announcements do


def test_an_announcement_that_joined_already_changes_nothing() -> None:
    incident = opened()
    assert merge(incident, announcement(hook="drain", lifecycle_token="t"), 9.0) is incident


def test_the_second_hooks_announcement_adds_its_token() -> None:
    incident = merge(opened(), announcement(hook="gate", lifecycle_token="u"), 1.0)
    assert incident.hooks == {"drain": "t", "gate": "u"}
    assert incident.drain_event == "asg_terminate drain"


def test_the_gates_announcement_alone_is_never_forwarded_as_the_drain() -> None:
    assert opened(hook="gate").drain_event is None


def test_what_was_planned_becomes_a_termination_and_then_a_warning() -> None:
    incident = opened(Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
    incident = merge(incident, announcement(hook="drain", lifecycle_token="t"), 1.0)
    assert incident.kind is Kind.ASG_TERMINATE
    assert incident.group == "g"
    incident = merge(incident, announcement(Kind.SPOT_INTERRUPTION), 2.0)
    assert incident.urgent
    assert merge(incident, announcement(Kind.STATE_CHANGE), 3.0).kind is Kind.SPOT_INTERRUPTION


def test_a_clock_ahead_of_ours_does_not_postpone_heartbeats() -> None:
    assert open_incident(announcement(occurred_at=99.0), 10.0).announced_at == 10.0
    assert open_incident(announcement(occurred_at=None), 10.0).announced_at == 10.0


def test_a_termination_that_follows_a_retirement_of_days_ago_has_its_whole_time() -> None:
    days = 10 * 86_400.0
    retirement = opened(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", due_at=days * 2
    )
    said = announcement(hook="drain", lifecycle_token="t", occurred_at=days)
    incident = merge(step(retirement, seen(1.0)), said, days + 1)
    assert incident.held_since == days
    # Auto Scaling may announce before its own describe call shows it.
    in_service = GroupView(name="g", desired=1, maximum=2, instances={OLD: "InService"})
    assert step(incident, seen(days + 2, group=in_service)).open
    pod = PodView(name="c-10", node_id=10, role="broker", node_name="old", ready=True)
    node = NodeView(
        name="old",
        instance_id=OLD,
        zone="z",
        pool="broker",
        ready=True,
        schedulable=True,
        csi_ready=True,
    )
    leaving = GroupView(name="g", desired=1, maximum=2, instances={OLD: "Terminating:Wait"})
    shown = {"group": leaving, "nodes": (node,), "pods": (pod,)}
    incident = step(incident, seen(days + 3, **shown))
    assert step(incident, seen(days + 4, **shown)).state is State.REPLACING
    late = days + POLICY.hold_limit_seconds + 1
    assert step(incident, seen(late, **shown)).state is State.RETAINED


REOPENING = [
    (State.RELEASED, False),
    (State.LOST, False),
    (State.RETAINED, True),
    (State.CANCELLED, True),
    (State.RIDDEN_THROUGH, True),
]


@pytest.mark.parametrize(("state", "again"), REOPENING)
def test_an_instance_that_still_runs_may_be_announced_again(state: State, again: bool) -> None:
    finished = replace(opened(), state=state)
    assert reopens(finished, announcement(hook="drain", dedupe_key="new")) is again
    assert not reopens(finished, announcement(hook="drain"))


def test_a_later_round_has_an_id_of_its_own() -> None:
    assert [incident_id(OLD, n) for n in (1, 2)] == ["i-old", "i-old.2"]


def test_launches_and_called_off_plans_open_no_incident() -> None:
    assert unanswered(announcement(Kind.ASG_LAUNCH))
    assert unanswered(announcement(Kind.SCHEDULED_CHANGE, closed=True))
    assert unanswered(announcement()) is None


# --- what is decided for each kind


def test_the_retirement_of_an_instance_that_is_no_node_pages_once() -> None:
    incident = opened(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", due_at=86_400.0
    )
    decision = next_action(incident, seen(), POLICY)
    assert decision.state is State.OPENED
    assert [type(a) for a in decision.actions] == [Page]
    assert "1970-01-02 00:00 UTC" in decision.reason
    assert decision.delay_seconds == 900
    later = step(incident, seen())
    assert next_action(later, seen(), POLICY).actions == ()


def test_a_retirement_called_off_is_cancelled() -> None:
    incident = opened(Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_STOP_SCHEDULED")
    incident = merge(incident, announcement(Kind.SCHEDULED_CHANGE, closed=True), 1.0)
    assert step(incident, seen()).state is State.CANCELLED


QUIET = [
    (Kind.REBALANCE, None, State.RIDDEN_THROUGH),
    (
        Kind.SCHEDULED_CHANGE,
        "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
        State.RIDDEN_THROUGH,
    ),
    (
        Kind.SCHEDULED_CHANGE,
        "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
        State.RIDDEN_THROUGH,
    ),
    (Kind.STATE_CHANGE, None, State.CANCELLED),
]


@pytest.mark.parametrize(("kind", "event_type", "state"), QUIET)
def test_what_takes_no_node_away_ends_at_once(
    kind: Kind, event_type: str | None, state: State
) -> None:
    assert step(opened(kind, event_type=event_type), seen()).state is state


@pytest.mark.parametrize("kind", [Kind.SPOT_INTERRUPTION, Kind.CAPACITY_RESERVATION])
def test_a_two_minute_warning_is_forwarded_before_anything_else(kind: Kind) -> None:
    decision = next_action(opened(kind), seen(), POLICY)
    assert decision.state is State.DRAINING
    assert decision.actions == (ForwardDrain(), TakeLease())


def test_an_instance_the_group_retains_is_left_to_a_person() -> None:
    group = GroupView(name="g", desired=1, maximum=2, instances={OLD: "Terminating:Retained"})
    decision = next_action(opened(), seen(group=group), POLICY)
    assert decision.state is State.RETAINED
    assert any(isinstance(a, Page) for a in decision.actions)


def test_an_incident_that_is_over_is_left_alone() -> None:
    finished = replace(opened(), state=State.RELEASED, reason="done")
    assert next_action(finished, seen(), POLICY) == Decision(state=State.RELEASED, reason="done")


def test_a_heartbeat_is_due_again_half_a_timeout_after_the_last() -> None:
    incident = replace(opened(), heartbeat_at=100.0)
    policy = replace(POLICY, heartbeat_timeout_seconds=100)
    early = next_action(incident, seen(149.0, blind="x"), policy)
    due = next_action(incident, seen(150.0, blind="x"), policy)
    assert not any(isinstance(a, Heartbeat) for a in early.actions)
    assert due.actions == (Heartbeat("drain"), Heartbeat("gate"))


BLIND = [
    pytest.param(State.OPENED, State.RETAINED, id="nothing was decided yet"),
    pytest.param(State.HOLDING, State.RETAINED, id="waiting for its turn"),
    pytest.param(State.DRAINING, State.DRAINING, id="a drain goes on by itself"),
    pytest.param(State.GATING, State.GATING, id="so does a return"),
]


@pytest.mark.parametrize(("state", "then"), BLIND)
def test_an_instance_nobody_can_see_for_too_long_is_kept_and_a_person_called(
    state: State, then: State
) -> None:
    incident = replace(opened(), state=state)
    early = next_action(incident, seen(POLICY.hold_limit_seconds, blind="Silence."), POLICY)
    assert early.state is state
    assert not any(isinstance(a, Page) for a in early.actions)
    late = next_action(incident, seen(POLICY.hold_limit_seconds + 1, blind="Silence."), POLICY)
    assert late.state is then
    assert any(isinstance(a, Page) for a in late.actions)


def test_a_retirement_days_ahead_is_not_given_up_for_one_unread_moment() -> None:
    incident = opened(Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
    decision = next_action(incident, seen(86_400.0, blind="Silence."), POLICY)
    assert (decision.state, decision.actions) == (State.OPENED, ())


# --- the record


def test_a_transition_design_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="may not go opened -> released"):
        settle(opened(), Decision(state=State.RELEASED, reason="x"), 1.0)


def test_every_state_but_the_ends_leads_somewhere() -> None:
    assert set(ALLOWED) == set(State)
    assert {s for s, following in ALLOWED.items() if not following} == TERMINAL


def test_a_reason_that_changes_is_noted_once() -> None:
    stay = Decision(state=State.OPENED, reason="waiting", delay_seconds=5)
    incident = settle(settle(opened(), stay, 1.0), stay, 2.0)
    assert [(n.at, n.reason) for n in incident.notes] == [(1.0, "waiting")]
    assert len(incident.transitions) == 1


def test_a_record_survives_being_written() -> None:
    incident = settle(
        merge(opened(), announcement(Kind.SPOT_INTERRUPTION), 2.0),
        Decision(state=State.DRAINING, reason="now", actions=(ForwardDrain(),), delay_seconds=0),
        3.0,
    )
    assert from_json(to_json(incident)) == incident


def test_a_field_of_a_later_version_is_left_out() -> None:
    written = to_json(opened()).replace('{"announced_at"', '{"of_tomorrow":1,"announced_at"', 1)
    assert from_json(written) == opened()


def test_an_incident_is_unattended_once_its_tick_is_late() -> None:
    incident = replace(opened(), ticked_at=100.0, next_tick_at=1000.0)
    assert not unattended(incident, 1040.0, 45)
    assert unattended(incident, 1046.0, 45)
    assert unattended(opened(), 46.0, 45)
    assert not unattended(replace(incident, state=State.LOST), 9999.0, 45)


# --- whatever happens, in whatever order

# Mostly what a rotation that goes well shows, or no walk would ever get far.


def mostly(draw: st.DrawFn, good: T, *others: T) -> T:
    return draw(st.sampled_from((*[good] * 24, *others)))


@st.composite
def kafka_views(draw: st.DrawFn) -> ClusterView | None:
    isr = mostly(draw, (10, 20, 30), (20, 30), (10, 20))
    return mostly(
        draw,
        ClusterView(
            brokers=frozenset({10, 20, 30}),
            fenced=mostly(draw, frozenset[int](), frozenset({10}), frozenset({20})),
            voters=(VoterView(0, 0.0), VoterView(1, 0.0), VoterView(2, 0.0)),
            quorum_leader=mostly(draw, 0, None),
            partitions=(PartitionView("t", 0, 20, (10, 20, 30), isr, 2),),
        ),
        None,
    )


@st.composite
def new_nodes(draw: st.DrawFn) -> NodeView:
    return NodeView(
        name="new",
        instance_id=NEW,
        zone=mostly(draw, "z", "y"),
        pool=mostly(draw, "broker", "controller"),
        ready=mostly(draw, True, False),
        schedulable=mostly(draw, True, False),
        csi_ready=mostly(draw, True, False),
    )


@st.composite
def observations(draw: st.DrawFn, now: float, *, moved: bool) -> Observation:
    """Draw a reading; `moved` says that the termination handler has been at work."""
    state = mostly(draw, "running", None, "shutting-down", "terminated", "stopped")
    lifecycle = mostly(draw, "Terminating:Wait", None, "InService", "Terminating:Retained")
    came = mostly(draw, True, False)
    old = NodeView(
        name="old",
        instance_id=OLD,
        zone="z",
        pool="broker",
        ready=True,
        schedulable=not moved,
        csi_ready=True,
    )
    members = {OLD: lifecycle, NEW: mostly(draw, "InService", "Terminating:Wait") if came else None}
    where, elsewhere = ("new", "old") if moved else ("old", "new")
    pod = PodView(
        name="c-broker-a-10",
        node_id=10,
        role="broker",
        node_name=mostly(draw, where, elsewhere, None),
        ready=mostly(draw, True, False),
    )
    instance = InstanceView(instance_id=OLD, state=state or "", zone="z", private_dns_name="old")
    return Observation(
        now=now,
        instance=instance if state else None,
        group=GroupView(
            name="g",
            desired=mostly(draw, 1, 0),
            maximum=2,
            instances={i: s for i, s in members.items() if s is not None},
        ),
        nodes=(old, draw(new_nodes())) if came else (old,),
        pods=mostly(draw, (pod,), ()),
        attachments=mostly(draw, {} if moved else {"old": ("pvc-10",)}, {"old": ("pvc-10",)}),
        kafka=draw(kafka_views()),
        kafka_silence="Kafka is silent.",
        lease_holder=mostly(draw, OLD, None, "i-other"),
        blind=mostly(draw, "", "Nothing could be read."),
    )


announcements = st.sampled_from(
    (
        *[announcement(hook="drain", lifecycle_token="t")] * 12,
        announcement(hook="gate", lifecycle_token="u"),
        announcement(Kind.SPOT_INTERRUPTION),
        announcement(Kind.CAPACITY_RESERVATION),
        announcement(Kind.REBALANCE),
        announcement(Kind.STATE_CHANGE),
        announcement(Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"),
        announcement(Kind.SCHEDULED_CHANGE, closed=True),
    )
)
policies = st.builds(
    Policy,
    drain_route=st.sampled_from(("held", "held", "held", "direct")),
    scale_in=st.sampled_from(("restore", "release")),
    hold_limit_seconds=st.just(300.0),
    post_condition_wait_seconds=st.just(200.0),
    post_condition_hold_seconds=st.just(POLICY.post_condition_hold_seconds),
)


def check_drain(incident: Incident, observation: Observation, policy: Policy) -> None:
    """A drain starts only when nothing can suffer for it, or when EC2 leaves no choice."""
    assert policy.drain_route == "held"
    if incident.urgent or incident.node_id is None:
        return
    assert observation.lease_holder == incident.id
    assert observation.kafka is not None
    assert may_leave(incident.node_id, observation.kafka).allowed
    if incident.expects_return:
        new = observation.node_of(NEW)
        assert new is not None
        assert (new.zone, new.pool) == ("z", "broker")
        assert new.ready
        assert new.schedulable
        assert new.csi_ready
        assert observation.group is not None
        assert observation.group.instances[NEW] == "InService"
        assert incident.replacement_ready_at is not None


def check_release(incident: Incident, observation: Observation) -> None:
    """The gate of a Kafka node opens only behind a broker that is back, and free volumes."""
    if incident.node_id is None:
        return
    pod = observation.pod_named(incident.pod_name)
    assert "old" not in observation.attachments
    assert pod is None or pod.node_name != "old"
    if incident.expects_return:
        assert pod is not None
        assert pod.ready
        assert observation.kafka is not None
        assert returned(10, observation.kafka).allowed
        assert incident.broker_back_at is not None
        assert observation.now - incident.broker_back_at >= POLICY.post_condition_hold_seconds


@settings(max_examples=300)
@given(st.data(), policies, announcements)
def test_whatever_is_seen_only_allowed_steps_are_taken(
    data: st.DataObject, policy: Policy, first: Interruption
) -> None:
    incident = open_incident(first, 0.0)
    now, forwarded = 0.0, 0
    for _ in range(data.draw(st.integers(1, 25))):
        now += data.draw(st.sampled_from((1.0, 3.0, 3.0, 120.0)))
        if data.draw(st.integers(0, 9)) == 0:
            joined = merge(incident, data.draw(announcements), now)
            assert joined.state is incident.state
            assert merge(joined, first, now) == joined
            incident = joined
        observation = data.draw(observations(now, moved=forwarded > 0))
        before = incident
        incident = learn(incident, observation)
        decision = next_action(incident, observation, policy)
        assert decision.reason
        if not before.open:
            assert decision == Decision(state=before.state, reason=before.reason)
            break
        assert decision.state is before.state or decision.state in ALLOWED[before.state]
        assert (decision.delay_seconds is None) is (decision.state in TERMINAL)
        if any(isinstance(a, ForwardDrain) for a in decision.actions):
            forwarded += 1
            check_drain(incident, observation, policy)
        if decision.state is State.RELEASED:
            check_release(incident, observation)
        if decision.state is State.RETAINED:
            assert CompleteHook("gate", HookResult.CONTINUE) not in decision.actions
        incident = settle(incident, decision, now)
        assert len(set(incident.pages)) == len(incident.pages)
    assert forwarded <= 1
    assert [t.at for t in incident.transitions] == sorted(t.at for t in incident.transitions)


@settings(max_examples=400)
@given(
    st.data(),
    policies,
    announcements,
    st.sampled_from(sorted(set(State) - TERMINAL)),
    st.sampled_from((1.0, 250.0, 400.0)),
    st.sampled_from((10, None)),
)
def test_from_any_state_at_any_age_only_allowed_steps_are_taken(
    data: st.DataObject,
    policy: Policy,
    first: Interruption,
    state: State,
    now: float,
    node_id: int | None,
) -> None:
    incident = replace(
        open_incident(first, 0.0),
        state=state,
        group="g",
        zone="z",
        pool="broker",
        node_name="old",
        node_id=node_id,
        pod_name=None if node_id is None else "c-broker-a-10",
        forwarded_at=0.0 if state in {State.DRAINING, State.GATING} else None,
    )
    observation = data.draw(observations(now, moved=state is State.GATING))
    decision = next_action(incident, observation, policy)
    settle(incident, decision, now)  # raises where DESIGN knows no such transition
    assert (decision.delay_seconds is None) is (decision.state in TERMINAL)
    kept = [a.result for a in decision.actions if isinstance(a, CompleteHook)]
    if decision.state is State.RETAINED:
        assert set(kept) <= {HookResult.ABANDON}


def test_a_broker_that_is_not_back_when_its_old_instance_is_gone_is_lost() -> None:
    incident = replace(
        opened(), state=State.GATING, node_id=10, node_name="old", pod_name="c-broker-a-10"
    )
    decision = next_action(incident, seen(3600.0, instance=None), POLICY)
    assert decision.state is State.LOST
    assert [a.key for a in decision.actions if isinstance(a, Page)] == ["not_back"]
