"""core.incidents: guards that hold while something is half done; drains that are still standing."""

from dataclasses import replace
from typing import Any

import pytest

from core.availability.consent import Freeze
from core.availability.operator import Condition, KafkaConditions
from core.events import Kind
from core.ground.fields import Unknown
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    CompleteHook,
    DropLease,
    ForwardDrain,
    HookResult,
    Page,
    TakeLease,
)
from core.incidents.consenting import not_ended
from core.incidents.decide import next_action
from core.incidents.learn import learn
from core.incidents.observation import GroupView, InstanceView, Observation, PodView, StandingDrain
from core.incidents.record import Drainer, Forwarding, Incident, Replacement, State
from core.incidents.replacement import still_missing
from core.views import PartitionView
from tests.every_case import every_case
from tests.unit.core.incidents.announced_incidents import OLD, POLICY, observation, opened_incident
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.operator_at_work import FINISHED, operator_view
from tests.unit.policies import policy_with
from tests.unit.views import kafka_view, node_view

NEW_NODE = Replacement(node="new", ready_at=0.0)
POD = "orders-broker-a-10"
LONG = POLICY.hold_limit_seconds + 60
PATIENT = replace(POLICY, hold_limit_seconds=14_400.0)


def housed(state: State, **changes: object) -> Incident:
    """An incident whose instance runs broker 10."""
    known = {"node_id": 10, "node_name": "old", "pod_name": POD, "zone": "z", "pool": "broker"}
    return replace(opened_incident(), state=state, **known, **changes)


def shown(now: float = 1.0, *, state: str = "running", **changes: object) -> Observation:
    """Broker 10 on its old node, a replacement beside it, and Kafka whole."""
    node = node_view("old", OLD)
    usual: dict[str, object] = {
        "instance": InstanceView(
            instance_id=OLD, state=state, zone="z", private_dns_name="old", group="g"
        ),
        "group": GroupView(
            name="g",
            desired=1,
            maximum=2,
            instances={OLD: "Terminating:Wait", "i-new": "InService"},
            zones=("z",),
        ),
        "nodes": (node, replace(node, name="new", instance_id="i-new")),
        "pods": (PodView(name=POD, node_id=10, role="broker", node_name="old", ready=True),),
        "kafka": healthy_kafka(),
    }
    return observation(now, **{**usual, **changes})


@pytest.mark.parametrize("state", [State.DRAINING, State.GATING])
def test_a_broker_that_is_out_keeps_the_lease_while_nothing_can_be_read(state: State) -> None:
    decision = next_action(housed(state), observation(blind="Silence."), POLICY)
    assert TakeLease(out=True) in decision.actions


def test_a_drain_is_sent_with_the_lease_in_hand_and_in_that_order() -> None:
    incident = housed(State.HOLDING, replacement=NEW_NODE, drain_event="{}")
    decision = next_action(incident, shown(lease_holder=incident.id), POLICY)
    assert decision.state is State.DRAINING, decision.reason
    wanted = [a for a in decision.actions if isinstance(a, TakeLease | ForwardDrain)]
    assert wanted == [TakeLease(), ForwardDrain()]


def test_an_instance_of_a_frozen_zone_outlasts_the_hold_limit_but_not_awss() -> None:
    frozen = (Freeze(zone_id="use1-az1", zone="z", since=0.0, until=None, source="autoshift"),)
    incident = housed(State.HOLDING, replacement=NEW_NODE)
    assert next_action(incident, shown(LONG, freezes=frozen), POLICY).state is State.HOLDING
    assert next_action(incident, shown(LONG), POLICY).state is State.RETAINED
    last = POLICY.hook_limit_seconds
    assert next_action(incident, shown(last, freezes=frozen), POLICY).state is State.RETAINED


@pytest.mark.parametrize("state", [State.OPENED, State.HOLDING, State.DRAINING, State.GATING])
def test_what_the_group_retains_is_abandoned_and_told(state: State) -> None:
    retained = GroupView(name="g", desired=1, maximum=2, instances={OLD: "Terminating:Retained"})
    decision = next_action(housed(state), shown(group=retained), POLICY)
    assert decision.state is State.RETAINED
    assert [a.key for a in decision.actions if isinstance(a, Page)] == ["retained"]
    results = {a.result for a in decision.actions if isinstance(a, CompleteHook)}
    assert results == {HookResult.ABANDON}


def test_a_pod_on_the_old_node_keeps_the_gate_though_nothing_is_attached() -> None:
    incident = housed(State.GATING, expects_return=False)
    assert still_missing(incident, shown(), POLICY) == f"Pod {POD} is still on old."


def test_a_pod_that_has_no_node_for_a_moment_has_not_left_its_own() -> None:
    away = shown(pods=())
    assert next_action(housed(State.HOLDING), away, POLICY).state is State.HOLDING
    gone = replace(away, nodes=away.nodes[1:])
    assert next_action(housed(State.HOLDING), gone, POLICY).state is State.DRAINING


def test_a_pod_that_left_a_node_which_stands_was_drained_by_whoever_ended_the_machine() -> None:
    left = replace(shown(pods=(), state="stopped"), watched=True)
    incident = replace(housed(State.HOLDING), hooks={})
    assert next_action(incident, left, POLICY).state is State.DRAINING
    assert next_action(replace(incident, node_id=None), left, POLICY).state is State.HOLDING
    died = replace(left, nodes=left.nodes[1:])
    assert next_action(incident, died, POLICY).state is State.GATING


EVICTED = replace(housed(State.HOLDING), kind=Kind.EVICTION, hooks={})


def test_an_eviction_that_a_dead_gate_let_through_is_followed() -> None:
    decision = next_action(EVICTED, shown(own_drain_at=0.5), POLICY)
    assert (decision.state, decision.forwarded_at) == (State.DRAINING, 0.5)


def test_an_eviction_whose_pod_stays_is_over_once_its_broker_is_whole_there() -> None:
    asked = replace(EVICTED, state=State.DRAINING, forwarded=Forwarding(first_at=0.5, last_at=0.5))
    fenced = {"kafka": healthy_kafka(out=10)}
    for view in (shown(2.0), shown(120.0, **fenced)):
        assert next_action(asked, view, POLICY).state is State.DRAINING
    over = next_action(asked, shown(120.0), POLICY)
    assert (over.state, DropLease(ended=True) in over.actions) == (State.RIDDEN_THROUGH, True)


def test_whoever_has_asked_lately_waits_for_a_turn_and_who_is_silent_for_none() -> None:
    asked = replace(EVICTED, drainer=Drainer(name="kubectl", asked_at=1.0))
    turns = (next_action(asked, shown(at, lease_holder="i-b"), POLICY) for at in (2.0, 99.0))
    assert [each.turn_due_at is not None for each in turns] == [True, False]


def test_a_volume_on_a_node_keeps_it_whatever_ec2_calls_its_machine() -> None:
    idle = replace(housed(State.DRAINING), node_id=None, node_name="other")
    held = {"pods": (), "attachments": {"other": ("vol-1",)}}
    decision = next_action(idle, shown(**held), POLICY)
    assert (decision.state, "the gate stays closed" in decision.reason) == (State.DRAINING, True)
    assert next_action(idle, shown(LONG, **held), POLICY).state is State.RETAINED
    ends = (shown(at, state="stopped", **held) for at in (1.0, LONG))
    found = [next_action(replace(idle, state=State.OPENED), end, POLICY).state for end in ends]
    assert found == [State.OPENED, State.LOST]


def test_a_machine_that_ended_unseen_is_over_once_no_volume_is_attached_there() -> None:
    unseen = replace(opened_incident(), kind=Kind.STATE_CHANGE, hooks={})
    ended = {"state": "terminated", "group": None, "nodes": (), "pods": ()}
    held = next_action(unseen, shown(LONG, attachments={"old": ("vol-1",)}, **ended), POLICY)
    pages = [action.key for action in held.actions if isinstance(action, Page)]
    assert (held.state, pages) == (State.OPENED, ["volume_on_idle_node"])
    assert next_action(unseen, shown(LONG, **ended), POLICY).state is State.LOST


@pytest.mark.parametrize("state", [State.DRAINING, State.GATING])
def test_who_stood_on_a_node_is_not_learnt_anew_once_its_drain_was_sent(state: State) -> None:
    """Another broker that starts on the old node is not the one whose return is waited for."""
    incident = housed(state, forwarded=Forwarding(first_at=0.5, last_at=0.5))
    stranger = PodView(
        name="orders-broker-a-11", node_id=11, role="broker", node_name="old", ready=True
    )
    learnt = learn(incident, shown(pods=(stranger,)))
    assert (learnt.node_id, learnt.pod_name) == (10, POD)


@pytest.mark.parametrize(
    ("ec2", "then", "pages"),
    [
        ("running", State.DRAINING, []),
        # It may run on for minutes, and its broker with it.
        ("stopping", State.DRAINING, []),
        ("shutting-down", State.GATING, ["ended_early"]),
        ("stopped", State.GATING, ["ended_early"]),
        ("terminated", State.GATING, ["ended_early"]),
    ],
)
def test_a_drain_is_cut_short_by_an_end_alone(ec2: str, then: State, pages: list[str]) -> None:
    decision = next_action(housed(State.DRAINING), shown(state=ec2), POLICY)
    assert decision.state is then
    assert [a.key for a in decision.actions if isinstance(a, Page)] == pages


OTHER = PodView(name="orders-broker-b-20", node_id=20, role="broker", node_name="b", ready=True)


def working(now: float = 1.0, *, other: PodView = OTHER, **changes: Any) -> Observation:
    """Return what is shown with another broker's pod, and Strimzi's operator at work."""
    view = shown(now, lease_holder=OLD)
    pods = (*view.pods, other)
    return replace(view, pods=pods, operator=operator_view(pods, **changes))


def leaver() -> Incident:
    """Return an incident at its turn, in its group's hooks since 0."""
    incident = housed(State.HOLDING, replacement=NEW_NODE, drain_event="{}", opened_at=0.0)
    return replace(incident, hooks={"drain": None, "gate": None}, group="g")


def test_a_node_waits_while_strimzi_is_to_restart_another_pod() -> None:
    """Between two pods of a roll everything is whole, and the next one goes unannounced."""
    decision = next_action(leaver(), working(wanted={OTHER.name: "new"}), POLICY)
    assert decision.state is State.HOLDING
    assert f"is to restart pod {OTHER.name}: its description has changed" in decision.reason


def test_a_refusal_of_kafkas_names_the_roll_that_it_comes_from() -> None:
    """A partition alone would not tell a person why its broker is away."""
    rolling = working(wanted={OTHER.name: "new"})
    lagging = tuple(replace(p, isr=(10,)) for p in rolling.kafka.partitions)
    view = replace(rolling, kafka=replace(rolling.kafka, partitions=lagging))
    decision = next_action(leaver(), view, POLICY)
    assert decision.state is State.HOLDING
    assert decision.reason.startswith("Node 10 may not leave: partition t-0 ")
    assert decision.reason.endswith(f"pod {OTHER.name}: its description has changed.")


def test_a_node_waits_for_a_pod_that_somebody_else_deletes() -> None:
    going = replace(OTHER, ready=False, stopping=True)
    assert next_action(leaver(), working(other=going), POLICY).state is State.HOLDING
    ours = replace(working(other=going), taken_out=frozenset({OTHER.name}))
    assert next_action(leaver(), ours, POLICY).state is State.DRAINING


def test_a_node_whose_own_pod_is_to_be_rolled_may_go() -> None:
    """Its next pod has the new description: one restart instead of two."""
    decision = next_action(leaver(), working(wanted={POD: "new"}), POLICY)
    assert decision.state is State.DRAINING


def test_a_node_waits_where_strimzis_operator_cannot_be_read() -> None:
    unread = Unknown("The Kubernetes API answered 403.")
    view = replace(working(), operator=unread)
    decision = next_action(leaver(), view, POLICY)
    assert (decision.state, "answered 403" in decision.reason) == (State.HOLDING, True)
    known = learn(leaver(), view)
    late = next_action(known, replace(view, now=1000.0), PATIENT)
    assert [a.key for a in late.actions if isinstance(a, Page)] == ["operator_stalled"]


def test_a_roll_that_goes_on_is_waited_for_until_aws_takes_the_instance() -> None:
    rolling = working(LONG, kafka=replace(FINISHED, generation_observed=False))
    soon = replace(leaver(), due_at=LONG + 60, scheduled_said_at=0.0)
    soon = replace(soon, event_type="AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
    decision = next_action(soon, rolling, PATIENT)
    assert decision.state is State.DRAINING
    assert "does not wait any longer: Strimzi's operator has not finished" in decision.reason
    assert next_action(leaver(), rolling, PATIENT).state is State.HOLDING
    assert next_action(leaver(), rolling, POLICY).state is State.RETAINED


STALLED = (
    replace(FINISHED, not_ready=Condition("FatalProblem", "Pod p does not start", 1.0)),
    replace(FINISHED, generation_observed=False, paused=True, paused_since=1.0),
)


@pytest.mark.parametrize("kafka", STALLED, ids=["failed", "paused"])
def test_an_operator_that_gets_nowhere_calls_and_keeps_plans(kafka: KafkaConditions) -> None:
    """The pod that it waits for may wait for the very node that waits for it."""
    soon, later = working(500.0, kafka=kafka), working(700.0, kafka=kafka)
    assert next_action(leaver(), soon, PATIENT).state is State.HOLDING
    going = next_action(leaver(), later, PATIENT)
    assert (going.state, "does not wait any longer" in going.reason) == (State.DRAINING, True)
    planned = replace(leaver(), kind=Kind.ROTATION, announcements=(f"{Kind.ROTATION}:r1",))
    kept = next_action(planned, later, PATIENT)
    assert kept.state is State.HOLDING
    assert [a.key for a in kept.actions if isinstance(a, Page)] == ["operator_stalled"]


LONG_DRAINS = policy_with(drain_life_seconds=1000.0)
WHOLE = kafka_view({10, 20}, PartitionView("t", 0, 20, (10, 20), (10, 20), 1))
BACK = PodView(name="c-broker-a-10", node_id=10, role="broker", node_name="new", ready=True)
NODE = node_view("old", "i-old", schedulable=False)
RETAINED = StandingDrain(
    holder="i-old",
    instance_id="i-old",
    node_id=10,
    forwarded_at=0.0,
    state="retained",
    instance_state="running",
)
WAITING = replace(WHOLE, partitions=(PartitionView("t", 0, 20, (10, 20), (20,), 1),))
LATER = Observation(now=1000.0, instance=None, nodes=(NODE,), pods=(BACK,), kafka=WHOLE)
GONE = replace(RETAINED, instance_state="terminated")
FORGOTTEN = replace(WHOLE, brokers=frozenset({20}), partitions=())

STANDING = {
    "its incident is open": (replace(RETAINED, open=True), LATER, "takes a Kafka node out first"),
    "its message may still be delivered": (RETAINED, replace(LATER, now=999.0), "given its drain"),
    "the instance has ended and its node still stands": (GONE, replace(LATER, now=999.0),
        "given its drain"),
    "nobody asked Kafka": (RETAINED, replace(LATER, kafka=None, kafka_silence="Silent."),
        "Silent."),
    "a partition lacks the broker": (RETAINED, replace(LATER, kafka=WAITING), "not yet in the ISR"),
    "the quorum does not answer": (RETAINED, replace(LATER, kafka=replace(WHOLE, stale=True)),
        "have no quorum"),
    "the pod is not Ready": (RETAINED, replace(LATER, pods=(replace(BACK, ready=False),)),
        "is not Ready"),
    "the pod is gone and Kafka expects the broker": (RETAINED,
        replace(LATER, pods=(replace(BACK, name="c-broker-b-20", node_id=20),)), "there is none"),
    "its pod stands and Kafka does not know the broker": (RETAINED, replace(LATER, kafka=FORGOTTEN),
        "has not registered"),
    "a stale reading does not know the broker": (RETAINED,
        replace(LATER, pods=(), kafka=replace(FORGOTTEN, stale=True)), "there is none"),
}  # fmt: skip
ENDED = {
    "the message is dropped and the broker whole": (RETAINED, LATER),
    "the instance is gone with its node": (GONE, replace(LATER, now=1.0, nodes=())),
    "nobody forwarded anything and the broker is whole": (replace(RETAINED, forwarded_at=None),
        replace(LATER, now=1.0)),
    "the broker was let go for good": (replace(RETAINED, expects_return=False),
        replace(LATER, kafka=None, pods=())),
    "the cluster knows the broker no longer": (RETAINED, replace(LATER, pods=(), kafka=FORGOTTEN)),
    "no Kafka ran there": (replace(RETAINED, node_id=None), replace(LATER, kafka=None)),
}  # fmt: skip


@every_case(("drain", "seen", "why"), STANDING.values(), ids=STANDING)
def test_a_drain_stands_while(drain: StandingDrain, seen: Observation, why: str) -> None:
    reason = not_ended(drain, seen, LONG_DRAINS)
    assert reason is not None
    assert why in reason


def test_a_drain_of_one_that_is_over_calls_a_person_once_it_stands_too_long() -> None:
    for drain, called in ((RETAINED, ["drain_standing"]), (replace(RETAINED, open=True), [])):
        late = shown(LATE_REPLACEMENT_SECONDS + 1, drains=(drain,))
        decision = next_action(leaver(), late, PATIENT)
        assert decision.state is State.HOLDING
        assert [a.key for a in decision.actions if isinstance(a, Page)] == called


@every_case(("drain", "seen"), ENDED.values(), ids=ENDED)
def test_a_drain_has_ended_once(drain: StandingDrain, seen: Observation) -> None:
    assert not_ended(drain, seen, LONG_DRAINS) is None
