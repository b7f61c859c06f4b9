"""What Karpenter does to brokers' nodes goes through incidents, also when a machine dies.

`rotate` on its machines ends a NodeClaim at a time, its successor first.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cli.incidents import breaks
from core.events import Kind
from core.incidents.evicted import WARNED_SECONDS
from core.incidents.joining import Pause
from core.incidents.observation import Condition, ScheduledEvent, StatusView
from core.incidents.record import Drainer, NodeDisruption, State
from core.rotation.run_record import Run, RunState
from handlers.adapters.aws import tick_message
from handlers.store.documents import Pauses
from tests.every_case import every_case
from tests.unit.handlers.asking import Door, lag
from tests.unit.handlers.fakes import NEW, OLD, TAG, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.karpenter_machines import (
    HOUR,
    INITIALIZED,
    KARPENTER,
    bring_node,
    claim_of,
    delete_claim,
    end,
    of_karpenter,
)
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import freeze_zone

DRIFTED = {**INITIALIZED, "DisruptionReason": Condition(holds=True, reason="Drifted")}


@pytest.fixture
def door() -> Door:
    return of_karpenter(Door())


def told(door: Door) -> list[str]:
    return [note.reason for note in door.station.incident().notes]


def test_the_sweep_opens_an_incident_with_the_reason_and_the_deadline(door: Door) -> None:
    end(door, delete_claim(expire_after_seconds=720 * HOUR, grace_seconds=2 * HOUR))
    station = door.station
    assert station.sweep()["opened"] == 1
    incident = station.tick_until_quiet().incident()
    assert (incident.kind, incident.state) == (Kind.EVICTION, State.REPLACING)
    forced_at = START - 10 + 2 * HOUR
    assert incident.drainer == Drainer(name="Karpenter")
    assert incident.disruption == NodeDisruption(reason="expiry", forced_at=forced_at)
    assert told(door)[0] == (
        "Karpenter ends NodeClaim broker-i-0a: it is older than its expireAfter. It deletes pods "
        "past their disruption budgets, so that they have stopped by 2026-11-20 11:59 UTC."
    )
    assert station.sweep()["opened"] == 0


def test_a_drift_is_followed_from_before_its_node_is_deleted(door: Door) -> None:
    end(door, claim_of(conditions=DRIFTED))
    station = door.station
    station.sweep()
    assert station.tick_until_quiet().incident().disruption == NodeDisruption(reason="drift")
    assert station.incident().reason.startswith("ip-i-0a.ec2.internal waits for a replacement")
    bring_node(door, NEW)
    assert station.tick_until_quiet().incident().reason == "Karpenter (drift)."
    assert door.ask(user=KARPENTER).allowed


def test_ec2s_own_plan_for_an_instance_makes_it_an_interruption(door: Door) -> None:
    event = ScheduledEvent(event_id="e", code="instance-stop", description="", not_before=None)
    door.station.cluster.checks[OLD] = StatusView(instance_id=OLD, events=(event,))
    end(door, delete_claim())
    door.station.sweep()
    door.station.tick_until_quiet()
    # The claim alone could not tell, and takes nothing back.
    assert door.station.incident().disruption == NodeDisruption(reason="interruption")


def test_a_node_without_a_broker_is_nobodys_incident(door: Door) -> None:
    end(door, delete_claim())
    door.station.cluster.pods.clear()
    assert door.station.sweep()["opened"] == 0


def test_claims_that_cannot_be_read_stop_no_sweep_and_let_nobody_go(door: Door) -> None:
    bring_node(door, NEW)
    door.station.cluster.node_claims = None
    assert door.station.sweep()["opened"] == 0
    answer = door.ask(user=KARPENTER)
    assert not answer.allowed
    assert "403" in answer.reason


def test_the_gate_waits_for_the_node_that_karpenter_brings(door: Door) -> None:
    end(door, delete_claim())
    nothing = door.ask(user=KARPENTER)
    assert "to take orders-broker-a-10: its drainer brings one." in nothing.reason
    bring_node(door, NEW)
    *kept, new = door.station.cluster.node_claims or ()
    door.station.cluster.node_claims = (*kept, replace(new, conditions={}))
    joining = door.ask(user=KARPENTER)
    assert not joining.allowed
    assert ": NodeClaim broker-i-0d is not initialized yet." in joining.reason
    door.station.cluster.node_claims = (*kept, new)
    assert door.ask(user=KARPENTER).allowed
    assert door.station.incident().replacement_node == node_named(NEW)


def test_a_node_that_karpenter_ends_takes_nobody(door: Door) -> None:
    bring_node(door, NEW)
    end(door, delete_claim(), delete_claim(NEW))
    assert not door.ask(user=KARPENTER).allowed
    # Karpenter deletes pods towards a deadline: the node would not take this one again.
    assert not door.ask(user=KARPENTER, delete=True).allowed


def test_two_zones_wait_for_each_other_and_both_end_with_their_broker_back(door: Door) -> None:
    end(door, delete_claim(), delete_claim("i-0b", "us-east-1b"))
    bring_node(door, NEW)
    bring_node(door, "i-0e", "us-east-1b")
    station = door.station
    assert station.sweep()["opened"] == 2
    assert door.ask(10, user=KARPENTER).allowed
    second = door.ask(20, user=KARPENTER)
    assert second.reason == f"Incident {OLD} takes a Kafka node out first. Ask again in 5 s."
    door.evicted(10, NEW)
    station.reception.wake(station.incident())
    door.tick_until(State.RIDDEN_THROUGH)
    assert "is for system:serviceaccount:kube-system:karpenter (untold) to end" in (
        station.incident().reason
    )
    assert door.ask(20, user=KARPENTER).allowed
    assert list(breaks([station.incident(id_) for id_ in (OLD, "i-0b")])) == []
    # Its node ends for minutes yet, and nobody is on it.
    assert station.sweep()["opened"] == 0


def test_an_eviction_without_a_gate_is_followed_to_its_end(door: Door) -> None:
    end(door, delete_claim())
    station = door.station
    station.sweep()
    station.tick_until_quiet()
    station.cluster.kafka = healthy_kafka(out=10)
    bring_node(door, NEW)
    door.evicted(10, NEW)
    door.tick_until(State.GATING)
    (lease,) = station.ledger.leases()
    assert (lease.holder, lease.node_id) == (OLD, 10)
    station.cluster.kafka = healthy_kafka()
    door.tick_until(State.RIDDEN_THROUGH)
    assert station.ledger.leases() == ()


def test_karpenter_does_not_give_up_and_an_incident_of_its_own_neither(door: Door) -> None:
    end(door, delete_claim())
    door.ask(user=KARPENTER)
    station = door.station
    station.now += 2 * HOUR
    assert station.tick().incident().open
    station.cluster.node_claims = (claim_of(),)
    door.tick_until(State.CANCELLED)
    assert station.incident().reason == "No drainer requests the eviction any longer."


def test_a_person_is_called_once_before_a_deadline_kafka_refuses(door: Door) -> None:
    bring_node(door, NEW)
    lag(door)
    end(door, delete_claim(grace_seconds=2 * HOUR))
    station = door.station
    station.sweep()
    station.tick(4)
    assert station.ticks.pages == []
    station.now = START + 1.6 * HOUR
    station.tick(4)
    (page,) = [json for json in station.incident().pages if json == "forced"]
    assert page == "forced"


def test_a_frozen_zone_keeps_a_broker_until_its_deadline_is_near(door: Door) -> None:
    bring_node(door, NEW)
    station = door.station
    freeze_zone(station)
    end(door, delete_claim(grace_seconds=9 * HOUR))
    assert "Nothing is drained there" in door.ask(user=KARPENTER).reason
    station.now = START + 9 * HOUR - station.policy.planned_margin_seconds
    assert door.ask(user=KARPENTER).allowed


def test_a_pod_that_karpenter_will_not_evict_is_told_of_with_the_remedy(door: Door) -> None:
    door.station.cluster.change_pod(10, undisturbed_until=float("inf"))
    end(door, delete_claim())
    station = door.station
    station.sweep()
    station.tick_until_quiet()
    assert station.incident().reason.endswith(
        ": Karpenter makes no room for orders-broker-a-10 and does not evict it while it says "
        "karpenter.sh/do-not-disrupt; take that off."
    )


def test_a_broker_whose_node_ends_under_it_calls_a_person_at_once(door: Door) -> None:
    door.station.cluster.change_pod(10, ignores_disruption=True)
    bring_node(door, NEW)
    lag(door)
    station = door.station
    for claim, pages in (claim_of(conditions=DRIFTED), ()), (delete_claim(), ("forced",)):
        end(door, claim)
        station.sweep()
        assert station.tick(4).incident().pages == pages
    (page,) = [each for each in station.ticks.pages if each["page"] == "forced"]
    assert page["reason"].startswith(
        "Karpenter ends the node under orders-broker-a-10 and does not evict it: it tolerates "
        "karpenter.sh/disrupted."
    )


def test_a_deadline_leaves_a_pod_the_time_that_it_takes_to_stop(door: Door) -> None:
    door.station.cluster.change_pod(10, grace_seconds=180.0)
    end(door, delete_claim(grace_seconds=2 * HOUR))
    station = door.station
    station.sweep()
    station.tick_until_quiet()
    # Karpenter deletes it that much before the deadline, so that it has stopped by then.
    forced_at = START - 10 + 2 * HOUR - 180
    assert station.incident().disruption == NodeDisruption(reason="untold", forced_at=forced_at)
    assert "so that they have stopped by 2026-11-20 11:59 UTC" in told(door)[0]


def test_a_deletion_with_a_deadline_is_judged_by_kafka_from_the_first(door: Door) -> None:
    door.station.cluster.change_pod(10, grace_seconds=180.0)
    end(door, delete_claim(grace_seconds=40.0))
    # Less than the pod takes to stop is left at once, and the sweep has not been here yet.
    asked = door.ask(user=KARPENTER, delete=True, grace_seconds=38)
    assert asked.reason.startswith("No other node of us-east-1a is ready to take")
    assert door.station.incident().open
    bring_node(door, NEW)
    assert door.ask(user=KARPENTER, delete=True, grace_seconds=20).allowed


@pytest.mark.parametrize(
    ("before_deadline", "given", "cut_off"),
    [
        (2 * HOUR, 0, True),
        (180 + 31, 179, True),
        (180 + 30, 179, False),
        (180, 179, False),
        (1, 1, False),
        (-60, 1, False),
    ],
    ids=["hours_ahead", "just_before", "clocks_apart", "at_its_last_moment", "late", "past"],
)
def test_less_time_than_its_own_is_given_from_the_deadlines_last_moment_on(
    door: Door, before_deadline: float, given: int, *, cut_off: bool
) -> None:
    """A person's --force beside a deadline that is hours ahead is nobody's last moment."""
    door.station.cluster.change_pod(10, grace_seconds=180.0)
    bring_node(door, NEW)
    end(door, delete_claim(deadline=START + 9 * HOUR, grace_seconds=9 * HOUR))
    door.station.now = START + 9 * HOUR - before_deadline
    answer = door.ask(user=KARPENTER, delete=True, grace_seconds=given)
    assert answer.allowed is not cut_off
    assert answer.reason.startswith("orders-broker-a-10 has 180 s to stop in") is cut_off


def test_kafka_is_asked_to_the_end_of_a_deadline_and_a_person_was_called_before(door: Door) -> None:
    """Karpenter deletes with a second to stop in; a denial holds its drain (1.14.1)."""
    door.station.cluster.change_pod(10, grace_seconds=180.0)
    bring_node(door, NEW)
    lag(door)
    end(door, delete_claim(deadline=START + 9 * HOUR, grace_seconds=9 * HOUR))
    station = door.station
    station.sweep()
    forced_at = START + 9 * HOUR - 180
    paged = []
    for ahead in (WARNED_SECONDS + 60, WARNED_SECONDS, 0, -179):
        station.now = forced_at - ahead
        assert door.ask(user=KARPENTER).allowed is False
        station.tick(3)
        paged.append("forced" in station.incident().pages)
    assert paged == [False, True, True, True]
    answer = door.ask(user=KARPENTER, delete=True, grace_seconds=1)
    assert "partition t-0 would keep" in answer.reason
    station.cluster.kafka = healthy_kafka()
    station.now += 61
    assert door.ask(user=KARPENTER, delete=True, grace_seconds=1).allowed


def dies(door: Door, *, state: str | None, node: bool, tagged: bool = True) -> None:
    cluster = door.station.cluster
    if tagged:
        for id_, instance in cluster.instances.items():
            cluster.instances[id_] = replace(instance, tags={TAG: ""})
    if state is None:
        del cluster.instances[OLD]
    else:
        cluster.instances[OLD] = replace(cluster.instances[OLD], state=state)
    if not node:
        del cluster.node_views[OLD]


@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
@pytest.mark.parametrize("node", [True, False], ids=["node", "no_node"])
@pytest.mark.parametrize("state", ["stopped", "shutting-down", "terminated", None])
def test_a_machine_that_ended_without_a_word_gets_an_incident(
    door: Door, state: str | None, *, node: bool, tagged: bool
) -> None:
    dies(door, state=state, node=node, tagged=tagged)
    station = door.station
    assert station.sweep()["opened"] == 1
    assert station.incident().kind is Kind.STATE_CHANGE
    assert station.sweep()["opened"] == 0


def test_its_broker_is_followed_home_and_keeps_everybody_else_until_then(door: Door) -> None:
    dies(door, state="terminated", node=False)
    station = door.station
    station.sweep()
    door.tick_until(State.GATING)
    incident = station.incident()
    expected = (node_named(OLD), 10, "us-east-1a")
    assert (incident.node_name, incident.node_id, incident.zone) == expected
    assert incident.lost_at is not None
    assert not door.ask(20, dry_run=True).allowed
    bring_node(door, NEW)
    door.evicted(10, NEW)
    door.tick_until(State.LOST)
    # Karpenter takes minutes to find a claim without an instance.
    station.now += 60
    assert station.sweep()["opened"] == 0


NO_LOSS: dict[str, tuple[dict[str, object], str | None]] = {
    "it starts": ({}, "pending"),
    "it runs": ({}, "running"),
    # EC2 may not show an instance in its first seconds: Karpenter tries again.
    "its node never joined": ({"conditions": {"Launched": Condition(holds=True)}}, None),
    "the system pool's": ({"pool": "system"}, "terminated"),
}


@every_case(("changes", "state"), NO_LOSS.values(), ids=NO_LOSS)
def test_a_machine_without_a_node_is_no_loss_while(
    changes: dict[str, object], state: str | None
) -> None:
    door = of_karpenter(Door())
    if changes:
        door.station.cluster.node_claims = (claim_of(**changes),)
    dies(door, state=state, node=False)
    assert door.station.sweep()["opened"] == 0


def test_a_machine_that_karpenter_has_ended_itself_is_no_loss(door: Door) -> None:
    """Its claim waits for EC2's word for minutes, and the broker is home already."""
    station = door.station
    bring_node(door, NEW)
    door.evicted(10, NEW)
    dies(door, state="terminated", node=False)
    end_without_node = claim_of(deleted=True, deleted_at=station.now - 300)
    kept = [c for c in station.cluster.node_claims or () if c.instance_id != OLD]
    station.cluster.node_claims = (*kept, end_without_node)
    assert station.sweep()["opened"] == 0


def test_a_claim_that_ends_with_its_broker_lost_is_followed_by_the_claims_word(door: Door) -> None:
    """Karpenter hears of the loss first, and deletes the claim: its Node is gone by then."""
    end(door, claim_of(deleted=True, deleted_at=door.station.now - 10))
    dies(door, state="terminated", node=False)
    station = door.station
    assert station.sweep()["opened"] == 1
    door.tick_until(State.GATING)
    assert station.incident().node_id == 10
    assert station.incident().lost_at is not None


GATED = replace(POLICY, drain_route="asked")
EVERYTHING = {"selection": {"everything": True}}
DRIFT = {**INITIALIZED, "Drifted": Condition(holds=True, reason="AMIDrift")}


@pytest.fixture
def held() -> Door:
    return of_karpenter(Door(Station(policy=GATED)))


def ask(held: Door, command: str, **said: object) -> dict[str, object]:
    station = held.station
    return station.conductor.take({"command": command, "actor": "ada", **said}, station.now)


def current(held: Door) -> Run:
    run = held.station.runs.current()
    assert run is not None
    return run


def turn(held: Door) -> Run:
    station = held.station
    station.now += 20
    station.rotations.turn(current(held).version, station.now)
    for _ in range(4):
        for incident in station.ledger.open_incidents():
            station.now += 1
            station.loop.turn(tick_message(incident.id, incident.version), station.now)
    return current(held)


def test_the_sweep_finds_nothing_new_in_a_claim_that_a_run_ends(held: Door) -> None:
    ask(held, "start", selection={"node_ids": [10]})
    turn(held)
    assert held.station.cluster.ended_claims
    held.station.sweep()
    turn(held)
    incident = held.station.incident()
    assert incident.kind is Kind.ROTATION
    assert incident.disruption == NodeDisruption(reason="rotation")


def test_what_has_drifted_is_outdated(held: Door) -> None:
    end(held, claim_of(conditions=DRIFT))
    plan = ask(held, "plan")["plan"]
    assert [(n["node_id"], n["why"]) for n in plan["nodes"]] == [(10, "drifted: AMIDrift")]


def ended(**changes: object) -> Callable[[Door], None]:
    return lambda held: end(held, claim_of(**changes))


def pod(**changes: object) -> Callable[[Door], None]:
    return lambda held: held.station.cluster.change_pod(10, **changes)


@every_case(
    ("change", "sentence"),
    [
        (ended(grace_seconds=3600.0), "has a terminationGracePeriod"),
        (ended(unreadable=("terminationGracePeriod",)), "a field that cannot be read"),
        (ended(do_not_disrupt=True), "is marked karpenter.sh/do-not-disrupt"),
        (ended(deleted=True), "already"),
        (ended(conditions={}), "is not initialized yet"),
        (
            pod(undisturbed_until=float("inf")),
            (
                "orders-broker-a-10 says karpenter.sh/do-not-disrupt: Karpenter would neither make "
                "room for it nor evict it. Take that off."
            ),
        ),
        (
            pod(ignores_disruption=True),
            (
                "orders-broker-a-10 tolerates the taint karpenter.sh/disrupted: Karpenter would "
                "end its node without an eviction. Narrow its tolerations."
            ),
        ),
    ],
    ids=["deadline", "unreadable", "kept", "ending", "young", "a kept pod", "a tolerant pod"],
)
def test_a_claim_whose_end_could_not_be_held_is_not_begun_with(
    change: Callable[[Door], None], sentence: str
) -> None:
    held = of_karpenter(Door(Station(policy=GATED)))
    change(held)
    plan = ask(held, "plan", selection={"node_ids": [10]})["plan"]
    assert sentence in " ".join(plan["nodes"][0]["objections"])
    ask(held, "start", selection={"node_ids": [10]})
    assert sentence in turn(held).reason
    assert held.station.cluster.ended_claims == []


def test_a_node_somebody_keeps_is_left_out_and_a_lapsed_mark_is_none(held: Door) -> None:
    cluster = held.station.cluster
    cluster.change_pod(10, undisturbed_until=held.station.now - 1)
    plan = ask(held, "plan", selection={"node_ids": [10]})["plan"]
    assert list(plan["nodes"][0]["objections"]) == []
    cluster.change_node(OLD, do_not_disrupt=True)
    plan = ask(held, "plan", selection={"node_ids": [10]})["plan"]
    assert "is marked karpenter.sh/do-not-disrupt" in plan["nodes"][0]["objections"][0]


def test_a_persons_drain_has_karpenter_end_nothing(held: Door) -> None:
    assert not held.ask().allowed
    assert held.station.tick_until_quiet().incident().state is State.REPLACING
    assert held.station.cluster.ended_claims == []


def test_without_a_gate_no_claim_is_ended_and_the_plan_says_why() -> None:
    held = of_karpenter(Door(Station()))
    plan = ask(held, "plan", **EVERYTHING)["plan"]
    for node in plan["nodes"]:
        assert "before its successor is there: set `eviction_gate`" in node["objections"][0]
    ask(held, "start", **EVERYTHING)
    turn(held)
    assert held.station.cluster.ended_claims == []


def test_several_at_once_are_refused(held: Door) -> None:
    (problem,) = ask(held, "start", at_once="zone", **EVERYTHING)["problems"]
    assert "nodes go one at a time" in problem


def begun(held: Door) -> Station:
    """The run has opened its incident for node 10, and nobody has looked at that yet."""
    ask(held, "start", selection={"node_ids": [10]})
    station = held.station
    while not station.ledger.open_incidents():
        station.now += 20
        station.rotations.turn(current(held).version, station.now)
    return station


def test_a_pause_keeps_a_claim_that_is_not_ended_yet(held: Door) -> None:
    station = begun(held)
    Pauses(station.records, "orders").write(Pause("ada", "an upgrade", station.now))
    turn(held)
    assert station.cluster.ended_claims == []
    Pauses(station.records, "orders").write(None)
    turn(held)
    turn(held)
    assert set(station.cluster.ended_claims) == {"broker-i-0a"}


def test_an_abort_before_a_claim_is_ended_ends_none(held: Door) -> None:
    station = begun(held)
    ask(held, "abort")
    for _ in range(3):
        station.now += 20
        station.rotations.turn(current(held).version, station.now)
    for _ in range(3):
        turn(held)
    assert current(held).state is RunState.ABORTED
    assert station.cluster.ended_claims == []


def test_a_claim_that_was_ended_is_followed_after_an_abort(held: Door) -> None:
    """Nobody takes a deletion back: what goes on is told, and waits for the same consent."""
    station = begun(held)
    turn(held)
    ask(held, "abort")
    turn(held)
    assert station.incident().state is State.CANCELLED
    assert station.sweep()["opened"] == 1
    assert station.incident(f"{OLD}.2").kind is Kind.EVICTION
    assert not held.ask(user=KARPENTER).allowed
