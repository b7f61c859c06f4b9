"""core.incidents, whatever happens and in whatever order: only allowed steps are taken.

Mostly what a rotation that goes well shows, or no walk would ever get far.
"""

import functools
from dataclasses import replace
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from core.availability.consent import check_returned, may_leave
from core.events import Interruption, Kind
from core.incidents.actions import CompleteHook, Decision, ForwardDrain, HookResult, settle
from core.incidents.decide import next_action
from core.incidents.joining import merge, open_incident
from core.incidents.learn import learn
from core.incidents.observation import (
    GroupView,
    InstanceView,
    NodeView,
    Observation,
    PodView,
    Policy,
)
from core.incidents.record import ALLOWED, TERMINAL, Forwarding, Incident, State
from core.views import ClusterView, PartitionView, VoterView
from tests.unit.core.incidents.announced_incidents import NEW, OLD, POLICY, announcement
from tests.unit.policies import policy_with
from tests.unit.views import node_view

T = TypeVar("T")
ATTACHED = (("old", ("pvc-10",)),)
SENT = Forwarding(first_at=0.0, last_at=0.0)


def mostly(draw: st.DrawFn, good: T, *others: T) -> T:
    return draw(_mostly(good, *others))


@functools.lru_cache(maxsize=None, typed=True)
def _mostly(good: T, *others: T) -> st.SearchStrategy[T]:
    """To make a strategy takes longer than to draw from it."""
    return st.sampled_from((*[good] * 24, *others))


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
    return node_view(
        "new",
        NEW,
        mostly(draw, "z", "y"),
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
    old = node_view("old", OLD, schedulable=not moved)
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
        attachments=dict(mostly(draw, () if moved else ATTACHED, ATTACHED)),
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
    policy_with,
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
        assert (new.zone, new.pool) == ("z", "broker")
        assert new.ready
        assert new.schedulable
        assert new.csi_ready
        assert observation.group.instances[NEW] == "InService"
        assert incident.replacement is not None


def check_release(incident: Incident, observation: Observation) -> None:
    """The gate of a Kafka node opens only behind a broker that is back, and free volumes."""
    if incident.node_id is None:
        return
    pod = observation.pod_named(incident.pod_name)
    assert "old" not in observation.attachments
    assert pod is None or pod.node_name != "old"
    if incident.expects_return:
        assert pod.ready
        assert observation.kafka is not None
        assert check_returned(10, observation.kafka).allowed
        assert incident.broker_back_at is not None
        assert observation.now - incident.broker_back_at >= POLICY.post_condition_hold_seconds


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
        forwarded=SENT if state in {State.DRAINING, State.GATING} else None,
    )
    observation = data.draw(observations(now, moved=state is State.GATING))
    decision = next_action(incident, observation, policy)
    settle(incident, decision, now)  # raises where DESIGN knows no such transition
    assert (decision.delay_seconds is None) is (decision.state in TERMINAL)
    kept = [a.result for a in decision.actions if isinstance(a, CompleteHook)]
    if decision.state is State.RETAINED:
        assert set(kept) <= {HookResult.ABANDON}
