"""The last in-sync replica of a partition nobody can keep: AWS's own departure does not wait for
ever, and nothing else is overruled with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.actions import Decision, ForwardDrain, Page, TakeLease
from core.incidents.decide import next_action
from core.incidents.observation import GroupView, InstanceView, NodeView, Observation, PodView
from core.incidents.record import Incident, Replacement, State
from core.views import ClusterView, Doubt, PartitionView, VoterView
from tests.unit.core.incidents.announced_incidents import (
    NEW,
    OLD,
    POLICY,
    observation,
    opened_incident,
)

LATE = POLICY.hold_limit_seconds + 2
ALONE = PartitionView("t", 0, 10, (10, 20), (10,), 2)
KAFKA = ClusterView(
    brokers=frozenset({10, 20}),
    fenced=frozenset(),
    voters=(VoterView(1, 0.0), VoterView(2, 0.0), VoterView(3, 0.0)),
    quorum_leader=1,
    partitions=(ALONE,),
)


def held(**changes: object) -> Incident:
    """Return an incident whose replacement is Ready and that waits for Kafka."""
    said: dict[str, object] = {"node_id": 10, "node_name": "old", "pod_name": "c-10", "zone": "z"}
    said |= {"pool": "broker", "replacement": Replacement(node="new", ready_at=0.0)}
    return replace(opened_incident(), state=State.HOLDING, **{**said, **changes})  # type: ignore[arg-type]


def shown(now: float, kafka: ClusterView | None = KAFKA, **changes: object) -> Observation:
    nodes = tuple(
        NodeView(
            name=name,
            instance_id=instance_id,
            zone="z",
            pool="broker",
            ready=True,
            schedulable=name == "new",
            csi_ready=True,
        )
        for name, instance_id in (("old", OLD), ("new", NEW))
    )
    stands = {OLD: "Terminating:Wait", NEW: "InService"}
    around = {
        "group": GroupView(name="g", desired=1, maximum=2, instances=stands),
        "nodes": nodes,
        "pods": (PodView(name="c-10", node_id=10, role="broker", node_name="old", ready=True),),
        "kafka": kafka,
    }
    return observation(now, **{**around, **changes})


def decided(incident: Incident, observation: Observation) -> Decision:
    return next_action(incident, observation, POLICY)


def pages(decision: Decision) -> list[str]:
    return [action.key for action in decision.actions if isinstance(action, Page)]


def test_within_the_hold_limit_it_stays_for_as_long_as_another_replica_is_behind() -> None:
    decision = decided(held(), shown(60.0))
    assert decision.state is State.HOLDING
    assert TakeLease() not in decision.actions
    assert "it is the last in-sync replica of partition t-0" in decision.reason


def test_at_the_hold_limit_aws_has_it_and_the_page_says_what_goes_offline() -> None:
    asks = decided(held(), shown(LATE))
    assert asks.state is State.HOLDING
    assert TakeLease() in asks.actions
    assert pages(asks) == ["last_in_sync"]
    assert "the last in-sync replica of 1 partitions" in asks.reason
    incident = held(pages=("last_in_sync",))
    goes = decided(incident, shown(LATE, lease_holder=incident.id))
    assert goes.state is State.DRAINING
    assert ForwardDrain() in goes.actions
    assert pages(goes) == []


def test_near_the_date_of_aws_nobody_waits_for_the_hold_limit() -> None:
    decision = decided(held(due_at=POLICY.hold_limit_seconds), shown(60.0))
    assert TakeLease() in decision.actions


@pytest.mark.parametrize(
    "kafka",
    [
        pytest.param(None, id="Kafka is silent"),
        pytest.param(replace(KAFKA, doubts=(Doubt("A topic is hidden."),)), id="not whole"),
        pytest.param(replace(KAFKA, fenced=frozenset({20})), id="another broker is out"),
        pytest.param(
            replace(KAFKA, partitions=(ALONE, PartitionView("u", 0, 10, (10, 20), (10,), 1))),
            id="a partition that could be kept",
        ),
    ],
)
def test_nothing_else_is_overruled(kafka: ClusterView | None) -> None:
    decision = decided(held(), shown(LATE, kafka))
    assert decision.state is State.RETAINED
    assert "hold_limit" in pages(decision)


@pytest.mark.parametrize(
    ("incident", "around"),
    [
        pytest.param({"announcements": ("rotation:run-1:i-old:1",)}, {}, id="a run's own"),
        pytest.param({}, {"lease_holder": "i-other"}, id="another has the lease"),
        pytest.param({"replacement": None}, {"nodes": ()}, id="nowhere to go"),
    ],
)
def test_who_could_not_go_anyway_is_kept_as_before(
    incident: dict[str, object], around: dict[str, object]
) -> None:
    decision = decided(held(**incident), shown(LATE, **around))
    assert not any(isinstance(a, TakeLease | ForwardDrain) for a in decision.actions)


@pytest.mark.parametrize(
    ("eligible", "words"),
    [((10,), "only its volume has it"), ((10, 20), "broker 20 still holds all of it")],
)
def test_a_lost_broker_is_paged_with_what_only_it_can_bring_back(
    eligible: tuple[int, ...], words: str
) -> None:
    offline = PartitionView("t", 0, None, (10, 20), (), 2, eligible)
    kafka = replace(KAFKA, fenced=frozenset({10}), partitions=(offline,))
    dead = InstanceView(instance_id=OLD, state="terminated", zone="z", private_dns_name="old")
    incident = replace(held(), state=State.GATING, lost_at=1.0)
    decision = decided(incident, shown(120.0, kafka, instance=dead))
    (page,) = [action for action in decision.actions if isinstance(action, Page)]
    assert page.key == "lost"
    assert f"1 partitions are offline, among them t-0: {words}." in page.reason
