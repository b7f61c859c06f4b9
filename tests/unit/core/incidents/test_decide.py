"""core.incidents: what is decided for each kind of announcement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.actions import Decision, ForwardDrain, Heartbeat, Page
from core.incidents.decide import BLIND_SECONDS, next_action
from core.incidents.joining import merge
from core.incidents.observation import GroupView, NodeView, PodView
from core.incidents.record import State
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import (
    OLD,
    POLICY,
    announcement,
    observation,
    opened_incident,
    step,
)


def test_the_retirement_of_an_instance_that_is_no_node_pages_once() -> None:
    incident = opened_incident(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", due_at=86_400.0
    )
    decision = next_action(incident, observation(), POLICY)
    assert decision.state is State.OPENED
    assert [type(a) for a in decision.actions] == [Page]
    assert "1970-01-02 00:00 UTC" in decision.reason
    assert decision.delay_seconds == 900
    later = step(incident, observation())
    assert next_action(later, observation(), POLICY).actions == ()


def test_a_retirement_called_off_is_cancelled() -> None:
    incident = opened_incident(Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_STOP_SCHEDULED")
    incident = merge(incident, announcement(Kind.SCHEDULED_CHANGE, closed=True), 1.0)
    assert step(incident, observation()).state is State.CANCELLED


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


@every_case(("kind", "event_type", "state"), QUIET)
def test_what_takes_no_node_away_ends_at_once(
    kind: Kind, event_type: str | None, state: State
) -> None:
    assert step(opened_incident(kind, event_type=event_type), observation()).state is state


@pytest.mark.parametrize("kind", [Kind.SPOT_INTERRUPTION, Kind.CAPACITY_RESERVATION])
def test_a_two_minute_warning_is_forwarded_before_anything_else(kind: Kind) -> None:
    decision = next_action(opened_incident(kind), observation(), POLICY)
    assert decision.state is State.DRAINING
    assert decision.actions == (ForwardDrain(),)


def test_an_instance_the_group_retains_is_left_to_a_person() -> None:
    group = GroupView(name="g", desired=1, maximum=2, instances={OLD: "Terminating:Retained"})
    decision = next_action(opened_incident(), observation(group=group), POLICY)
    assert decision.state is State.RETAINED
    assert any(isinstance(a, Page) for a in decision.actions)


def test_an_incident_that_is_over_is_left_alone() -> None:
    finished = replace(opened_incident(), state=State.RELEASED, reason="done")
    assert next_action(finished, observation(), POLICY) == Decision(
        state=State.RELEASED, reason="done"
    )


def test_a_heartbeat_is_due_again_half_a_timeout_after_the_last() -> None:
    incident = replace(opened_incident(), heartbeat_at=100.0)
    policy = replace(POLICY, heartbeat_timeout_seconds=100)
    early = next_action(incident, observation(149.0, blind="x"), policy)
    due = next_action(incident, observation(150.0, blind="x"), policy)
    assert not any(isinstance(a, Heartbeat) for a in early.actions)
    assert due.actions == (Heartbeat("drain"), Heartbeat("gate"))


BLIND = [
    pytest.param(State.OPENED, State.RETAINED, id="nothing was decided yet"),
    pytest.param(State.HOLDING, State.RETAINED, id="waiting for its turn"),
    pytest.param(State.DRAINING, State.DRAINING, id="a drain goes on by itself"),
    pytest.param(State.GATING, State.GATING, id="so does a return"),
]


@every_case(("state", "then"), BLIND)
def test_an_instance_nobody_can_see_for_too_long_is_kept_and_a_person_called(
    state: State, then: State
) -> None:
    incident = replace(opened_incident(), state=state, blind_since=1.0)
    early = next_action(incident, observation(POLICY.hold_limit_seconds, blind="Silence."), POLICY)
    assert early.state is state
    assert not any(isinstance(a, Page) for a in early.actions)
    late = next_action(incident, observation(BLIND_SECONDS + 2, blind="Silence."), POLICY)
    assert late.state is then
    assert any(isinstance(a, Page) for a in late.actions)


def test_a_retirement_days_ahead_is_not_given_up_for_one_unread_moment() -> None:
    incident = opened_incident(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
    )
    decision = next_action(incident, observation(86_400.0, blind="Silence."), POLICY)
    assert (decision.state, decision.actions) == (State.OPENED, ())


def test_a_termination_that_follows_a_retirement_of_days_ago_has_its_whole_time() -> None:
    days = 10 * 86_400.0
    retirement = opened_incident(
        Kind.SCHEDULED_CHANGE, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", due_at=days * 2
    )
    said = announcement(hook="drain", lifecycle_token="t", occurred_at=days)
    incident = merge(step(retirement, observation(1.0)), said, days + 1)
    assert incident.held_since == days
    # Auto Scaling may announce before its own describe call shows it.
    in_service = GroupView(name="g", desired=1, maximum=2, instances={OLD: "InService"})
    assert step(incident, observation(days + 2, group=in_service)).open
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
    incident = step(incident, observation(days + 3, **shown))
    assert step(incident, observation(days + 4, **shown)).state is State.REPLACING
    late = days + POLICY.hold_limit_seconds + 1
    assert step(incident, observation(late, **shown)).state is State.RETAINED


def test_a_broker_that_is_not_back_when_its_old_instance_is_gone_is_lost() -> None:
    incident = replace(
        opened_incident(), state=State.GATING, node_id=10, node_name="old", pod_name="c-broker-a-10"
    )
    decision = next_action(incident, observation(3600.0, instance=None), POLICY)
    assert decision.state is State.LOST
    assert [a.key for a in decision.actions if isinstance(a, Page)] == ["not_back"]
