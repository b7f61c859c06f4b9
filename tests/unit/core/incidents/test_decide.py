"""core.incidents: what is decided for each kind of announcement, and what waits for others."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from core.events import Kind
from core.incidents.actions import (
    OF_OURS,
    Action,
    Decision,
    DropLease,
    ForwardDrain,
    Heartbeat,
    Level,
    Page,
    Reach,
    SetDesired,
    TakeLease,
    TerminateInGroup,
    is_allowed,
    settle,
    withheld_actions,
)
from core.incidents.decide import BLIND_SECONDS, ENDING_SECONDS, WAITS, next_action
from core.incidents.joining import merge
from core.incidents.learn import learn
from core.incidents.observation import GroupView, Observation, PodView
from core.incidents.record import Forwarding, Incident, Release, State
from core.incidents.replacement import GROUP_SECONDS
from core.incidents.sweep import Announce, died_again, left_out
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import (
    OLD,
    POLICY,
    announcement,
    observation,
    opened_incident,
    step,
)
from tests.unit.core.incidents.test_guards import NEW_NODE, PATIENT, POD, housed, shown
from tests.unit.policies import policy_with
from tests.unit.views import node_view


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
    (Kind.SCHEDULED_CHANGE, "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", State.RIDDEN_THROUGH),
    (Kind.SCHEDULED_CHANGE, "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED", State.RIDDEN_THROUGH),
    (Kind.STATE_CHANGE, None, State.CANCELLED),
]


@every_case(("kind", "event_type", "state"), QUIET)
def test_what_takes_no_node_ends_at_once(kind: Kind, event_type: str | None, state: State) -> None:
    assert step(opened_incident(kind, event_type=event_type), observation()).state is state


@pytest.mark.parametrize("kind", [Kind.SPOT_INTERRUPTION, Kind.CAPACITY_RESERVATION])
def test_a_two_minute_warning_is_forwarded_before_anything_else(kind: Kind) -> None:
    decision = next_action(opened_incident(kind), observation(), POLICY)
    assert decision.state is State.DRAINING
    assert decision.actions == (ForwardDrain(),)


def test_an_incident_that_is_over_is_left_alone() -> None:
    finished = replace(opened_incident(), state=State.RELEASED, reason="done")
    nothing = Decision(state=State.RELEASED, reason="done")
    assert next_action(finished, observation(), POLICY) == nothing


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
def test_who_is_unseen_for_too_long_is_kept_and_a_person_called(state: State, then: State) -> None:
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
    node = node_view("old", OLD)
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


PODS = (PodView(name=POD, node_id=10, role="broker", node_name="old", ready=False),)


def called(decision: Decision) -> dict[str, str]:
    return {a.key: a.reason for a in decision.actions if isinstance(a, Page)}


def looked_at(incident: Incident, now: float, **changes: Any) -> tuple[Incident, Decision]:
    seen = shown(now, **changes)
    known = learn(incident, seen)
    decision = next_action(known, seen, PATIENT)
    return settle(known, decision, now), decision


UNANNOUNCED = replace(housed(State.OPENED), kind=Kind.STATE_CHANGE, opened_at=0.0, hooks={})
WARNED = replace(housed(State.DRAINING), kind=Kind.SPOT_INTERRUPTION)


@pytest.mark.parametrize("ec2", ["stopping", "shutting-down"])
@pytest.mark.parametrize("incident", [UNANNOUNCED, WARNED], ids=["unannounced", "spot"])
def test_an_end_that_never_comes_calls_a_person_in_time(incident: Incident, ec2: str) -> None:
    alone: dict[str, Any] = {"state": ec2, "pods": PODS, "group": None}
    incident, first = looked_at(incident, 10.0, **alone)
    assert "ec2_ending" not in called(first)
    late = 10.0 + ENDING_SECONDS + 1
    incident, decision = looked_at(incident, late, **alone)
    text = called(decision)["ec2_ending"]
    assert f"EC2 says {ec2}." in text
    assert f"`aws ec2 stop-instances --force --instance-ids {OLD}`" in text
    _, again = looked_at(incident, late + 60, **alone)
    assert "ec2_ending" not in called(again)


def test_a_pod_past_its_grace_on_a_machine_that_runs_calls_a_person() -> None:
    draining = housed(State.DRAINING, forwarded=Forwarding(first_at=0.0, last_at=0.0))
    stopping = replace(PODS[0], stopping=True, out_since=340.0, grace_seconds=330.0)
    _, soon = looked_at(draining, 400.0, pods=(stopping,))
    assert "pod_stuck" not in called(soon)
    _, late = looked_at(draining, 470.0, pods=(stopping,))
    assert "Never delete the pod by force while its machine runs" in called(late)["pod_stuck"]


def in_service(incident: Incident, now: float) -> tuple[Incident, Decision]:
    view = shown(now, lease_holder=incident.id)
    assert view.group is not None
    stays = replace(view.group, instances={OLD: "InService", "i-new": "InService"})
    return looked_at(incident, now, lease_holder=incident.id, group=stays)


def test_a_group_that_accepts_and_does_nothing_is_asked_once_and_gives_the_lease_back() -> None:
    planned = replace(
        housed(State.HOLDING, replacement=NEW_NODE),
        kind=Kind.SICK_NODE,
        hooks={},
        group="g",
        surge_to=2,
    )
    asked, first = in_service(planned, 1.0)
    assert any(isinstance(a, TerminateInGroup) for a in first.actions)
    asked, second = in_service(asked, 60.0)
    assert not any(isinstance(a, TerminateInGroup) for a in second.actions)
    late, third = in_service(asked, GROUP_SECONDS + 2)
    assert "detach-instances" in called(third)["group_silent"]
    assert DropLease() in third.actions
    assert late.terminate_asked_at == 1.0
    released = replace(late, release=Release(by="ann", at=400.0))
    _, again = in_service(released, 401.0)
    assert any(isinstance(a, TerminateInGroup) for a in again.actions)


def test_a_wait_that_a_page_has_told_of_calls_nobody_again() -> None:
    known = replace(UNANNOUNCED, pages=("ec2_ending", "stands_still"), ending_since=0.0)
    seen: Observation = shown(9999.0, state="stopping", pods=PODS)
    assert called(next_action(known, seen, PATIENT)) == {}


def test_every_open_state_has_a_wait_and_every_wait_a_way_out() -> None:
    open_states = {State.OPENED, State.REPLACING, State.HOLDING, State.DRAINING, State.GATING}
    for state in open_states:
        assert sum(state in wait.states for wait in WAITS) >= 2
    assert all(wait.way_out and wait.pages for wait in WAITS)


def test_an_incident_that_called_nobody_does_not_mute_the_alarm_of_a_broker_left_out() -> None:
    out = replace(PODS[0], out_since=0.0)
    silent = housed(State.OPENED)
    (concern,) = left_out((out,), (silent,), silent.entered_at + 1900.0)
    assert concern.page == "left_out"
    assert list(left_out((out,), (silent,), silent.entered_at + 1700.0)) == []
    told = replace(silent, pages=("ec2_ending",))
    assert list(left_out((out,), (told,), silent.entered_at + 1900.0)) == []


def test_a_broker_that_is_back_is_not_given_up_for_looks_that_saw_nothing() -> None:
    """Each blind look starts the time again for which a broker is to stay."""
    gating = housed(State.GATING, forwarded=Forwarding(first_at=0.0, last_at=0.0))
    late = PATIENT.post_condition_wait_seconds + 10
    back = PodView(name=POD, node_id=10, role="broker", node_name="new", ready=True)
    for lost_at, ec2 in ((None, "running"), (1.0, "terminated")):
        gating = replace(gating, lost_at=lost_at)
        known, decision = looked_at(gating, late, pods=(back,), state=ec2)
        assert (decision.state, known.broker_back_at) == (State.GATING, late)
        away = replace(back, ready=False)
        _, given_up = looked_at(gating, late, pods=(away,), state=ec2)
        assert given_up.state in {State.RETAINED, State.LOST}


def test_what_was_given_up_before_ec2_confirmed_its_end_is_freed_once_it_does() -> None:
    housed_there = cast("Announce", SimpleNamespace(housed=True))
    given_up = replace(housed(State.LOST), lost_at=None, broker_back_at=None)
    assert died_again([given_up], housed_there)
    freed = replace(given_up, lost_at=5.0)
    assert not died_again([freed], housed_there)
    assert died_again([replace(freed, broker_back_at=9.0)], housed_there)


@every_case("kind", get_args(Action), ids=lambda kind: kind.__name__)
def test_below_act_only_what_is_ours_is_touched(kind: type[object]) -> None:
    action = object.__new__(kind)
    below: tuple[Level, ...] = ("watch", "gate")
    assert {is_allowed(action, level) for level in below} == {kind in OF_OURS}
    assert is_allowed(action, "act")


@pytest.mark.parametrize(("gated", "others"), [(True, "gate"), (False, "watch")])
def test_a_machine_in_no_named_group_is_left_to_others(*, gated: bool, others: str) -> None:
    acting = Reach("act", frozenset({"kafka-a"}), gated)
    assert acting.level_of("kafka-a") == "act"
    assert {acting.level_of(group) for group in ("eks-workers-0a1b", None)} == {others}
    assert Reach("watch", frozenset({"kafka-a"}), gated).level_of("kafka-a") == "watch"
    assert Reach().level_of(None) == "own"


@every_case(
    ("reach", "route"),
    [
        (Reach("watch"), "held"),
        (Reach("gate", frozenset(), gated=True), "asked"),
        (Reach("act", frozenset({"kafka-a"}), gated=True), "held"),
        (Reach("act", frozenset(), gated=True), "asked"),
        (Reach("act", frozenset()), "held"),
        (Reach(), "held"),
    ],
)
def test_nobody_is_sent_to_drain_where_the_gate_is_asked(reach: Reach, route: str) -> None:
    assert reach.policy("kafka-a", policy_with()).drain_route == route


def test_what_is_withheld_keeps_its_order() -> None:
    decided = (TakeLease(), SetDesired(2), Page("key", "reason"), Heartbeat("drain"))
    assert withheld_actions(decided, "watch") == (SetDesired(2), Heartbeat("drain"))
    assert withheld_actions(decided, "act") == ()
