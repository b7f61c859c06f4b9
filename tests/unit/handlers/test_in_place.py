"""A rotation in place: a machine or a zone's, new root volumes, and whoever dies."""

from dataclasses import replace
from typing import Any

import pytest

from cli.incidents import breaks
from core.ground.errors import StillwaterError
from core.incidents.joining import DrainReport, ignore, note_report
from core.incidents.record import Incident, State
from core.rotation.plan import Build, Launched
from core.rotation.run_record import Phase, Run, RunState
from handlers.adapters.aws import tick_message
from tests.unit.handlers.announced import health_event, hook_event
from tests.unit.handlers.failing import Killed, fail, kill
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_budgets import behind_budgets
from tests.unit.handlers.test_rotations import current as run_of
from tests.unit.handlers.test_rotations import look as settle
from tests.unit.handlers.test_rotations import start as start_all
from tests.unit.handlers.test_rotations import turn

pytestmark = pytest.mark.usefixtures("quiet")

IMAGE, TEMPLATE = "ami-new", {"InstanceType": '"m7g.large"'}
TRAITS = {"root device": "ebs", "architecture": "arm64"}


def launched(**wanted: Any) -> Launched:
    present = Build(
        template_id="lt-1",
        template_version="3",
        image_id="ami-old",
        instance_type="m7g.large",
        beyond_image=TEMPLATE,
        traits=TRAITS,
    )
    newer = {"template_version": "4", "image_id": IMAGE, **wanted}
    return Launched(present, replace(present, **newer))


def outdated() -> Station:
    """Return a station whose machines all have another image than their groups would launch."""
    found = Station()
    for instance_id in list(found.cluster.node_views):
        found.cluster.builds[instance_id] = launched()
        boots(found, instance_id, "boot-1")
    return found


@pytest.fixture
def station() -> Station:
    return outdated()


def boots(station: Station, instance_id: str, boot_id: str) -> None:
    station.cluster.change_node(instance_id, boot_id=boot_id)


def start(station: Station, **said: object) -> Run:
    asked = {"selection": {"node_ids": [10]}, "in_place": True, **said}
    answer = station.conductor.take({"command": "start", "actor": "ada", **asked}, station.now)
    assert "problems" not in answer, answer
    return run_of(station)


def look(station: Station, id_: str = OLD, seconds: float = 1) -> Incident:
    incident = station.incident(id_)
    station.now += seconds
    station.loop.turn(tick_message(incident.id, incident.version), station.now)
    return station.incident(id_)


def reported(station: Station, id_: str = OLD) -> None:
    """Have the termination handler say that its attempt to drain has ended."""
    incident = station.incident(id_)
    report = DrainReport(
        nth_event_id="asg-lifecycle-term-1",
        announcement_id=f"stillwater-{incident.id}",
        instance_id=incident.instance_id,
        kind="REBALANCE_RECOMMENDATION",
        node_name=incident.node_name,
    )
    station.ledger.put(note_report(incident, report, station.now))


def drain(station: Station) -> None:
    """Have the termination handler evict the broker, whose pod then finds no node."""
    cluster = station.cluster
    assert not cluster.node_views[OLD].schedulable
    cluster.change_pod(10, node_name=None, ready=False)
    cluster.kafka = healthy_kafka(out=10)


def drained(station: Station) -> None:
    """Carry a run's node to the moment when its pod has left."""
    start(station)
    turn(station)
    for _ in range(12):
        if look(station).state is State.DRAINING:
            break
    drain(station)
    reported(station)


def away(station: Station) -> Incident:
    """Carry a run's node to the moment when EC2 has been asked."""
    drained(station)
    for _ in range(4):
        if look(station).state is State.GATING and station.roots.tasks:
            break
    return station.incident()


def joins_again(station: Station) -> None:
    station.roots.go(station.incident().id, "succeeded")
    boots(station, OLD, "boot-2")


def comes_back(station: Station) -> Incident:
    """Let the pod start on its own node, and the broker catch up."""
    assert station.cluster.node_views[OLD].schedulable
    station.cluster.place_pod(10, OLD)
    station.cluster.kafka = healthy_kafka()
    for _ in range(6):
        if not look(station, seconds=5).open:
            break
    return station.incident()


def test_a_machine_stays_and_gets_the_new_root_volume(station: Station) -> None:
    incident = away(station)
    assert station.roots.asked == [(OLD, IMAGE, True), (OLD, IMAGE, False)]
    assert incident.leaders_moved_at is not None
    assert incident.leaders_moved_at < incident.forwarded.first_at
    assert incident.in_place.asked_at == station.now
    look(station)
    assert not station.cluster.node_views[OLD].schedulable
    joins_again(station)
    look(station)
    station.cluster.place_pod(10, OLD, ready=False)
    assert "is not Ready yet" in look(station).reason
    station.cluster.place_pod(10, OLD)
    assert "is registered and still fenced" in look(station).reason
    ended = comes_back(station)
    assert ended.state is State.RIDDEN_THROUGH
    assert f"with root volume {IMAGE}" in ended.reason
    for _ in range(4):
        run = turn(station)
        if run.state is RunState.DONE:
            break
    assert run.turn_of(10).phase is Phase.DONE, run.reason
    # Nobody launched, nobody terminated, and the lease is free again.
    assert (station.cluster.desired_calls, station.cluster.terminated) == ([], [])
    assert station.ledger.leases() == ()
    assert station.ticks.pages == []
    assert breaks([ended]) == []
    (unseen,) = breaks([replace(ended, broker_back_at=None)])
    assert unseen.rule == "gate"


@pytest.mark.parametrize(
    "unsure",
    [
        pytest.param({"times": 2}, id="sent-twice"),
        pytest.param({"reported_at": None}, id="no-word-of-its-handler"),
    ],
)
def test_nobody_goes_while_its_drain_may_come(station: Station, unsure: dict[str, Any]) -> None:
    away(station)
    joins_again(station)
    look(station)
    incident = station.incident()
    assert incident.forwarded is not None
    station.ledger.put(replace(incident, forwarded=replace(incident.forwarded, **unsure)))
    ended = comes_back(station)
    assert ended.state is State.RIDDEN_THROUGH
    assert "may receive its drain again" in ended.reason
    (lease,) = station.ledger.leases()
    assert lease.holder == ended.id
    station.announce(hook_event("drain", instance_id="i-0b", zone="us-east-1b"))
    station.cluster.set_lifecycle("i-0b", "Terminating:Wait")
    station.cluster.join("i-0e", "us-east-1b")
    for _ in range(6):
        other = look(station, "i-0b")
    assert other.forwarded is None
    assert "may still be given its drain, until" in other.reason
    station.now += station.policy.drain_life_seconds
    for _ in range(6):
        other = look(station, "i-0b")
    assert other.forwarded is not None


def test_a_drain_that_an_invocation_sent_and_died_over_is_counted(station: Station) -> None:
    start(station)
    turn(station)
    sent = len(station.termination_handler.sent)
    while len(station.termination_handler.sent) == sent:
        before = station.incident()
        look(station)
    # Its record was never written; the lease says that the drain was begun.
    station.ledger.put(replace(before, version=station.incident().version))
    assert look(station).forwarded.times == 2


def test_a_node_is_not_let_back_before_its_machine_has_booted(station: Station) -> None:
    away(station)
    station.roots.go(OLD, "succeeded")
    assert "not joined again" in look(station).reason
    assert not station.cluster.node_views[OLD].schedulable
    boots(station, OLD, "boot-2")
    look(station)
    assert station.cluster.node_views[OLD].schedulable


def test_what_the_trial_refuses_is_an_ordinary_replacement(station: Station) -> None:
    station.roots.refuses_trial = "UnauthorizedOperation: You are not authorized."
    start(station)
    turn(station)
    for _ in range(8):
        incident = look(station)
    assert incident.state is State.REPLACING
    assert incident.surge_to == 2
    said = [each.reason for each in incident.transitions]
    assert "No other node of us-east-1a can take orders-broker-a-10 yet." in said
    assert not any("None" in reason for reason in said)
    assert [trial for _, _, trial in station.roots.asked] == [True]
    assert station.cluster.node_views[OLD].schedulable


def test_a_failed_task_brings_the_broker_back_and_a_new_instance(station: Station) -> None:
    away(station)
    station.roots.go(OLD, "failed")
    # EC2 boots the machine all the same, and its Node may not show that yet.
    assert "may still boot" in look(station).reason
    assert not station.cluster.node_views[OLD].schedulable
    boots(station, OLD, "boot-2")
    look(station)
    look(station)
    ended = comes_back(station)
    assert ended.state is State.RIDDEN_THROUGH
    assert "root volume it had" in ended.reason
    run = turn(station)
    assert run.turn_of(10).phase is Phase.WAITING
    assert "its root volume was not replaced" in run.reason
    run = turn(station)
    assert run.turn_of(10).phase is Phase.LEAVING
    assert look(station, f"{OLD}.2").in_place is None
    assert station.incident(f"{OLD}.2").state is State.REPLACING


def test_a_machine_that_never_booted_is_waited_for_no_longer(station: Station) -> None:
    away(station)
    station.roots.go(OLD, "failed")
    look(station)
    look(station, seconds=200)
    look(station)
    assert station.cluster.node_views[OLD].schedulable


def test_a_function_that_dies_over_the_request_asks_for_no_second_task(station: Station) -> None:
    kill(2, [(station.roots, "replace")], after=True)  # The first only tries.
    with pytest.raises(Killed):
        away(station)
    station.now += 60  # The sweep finds the late tick.
    assert look(station).in_place.task_id == "replacevol-0"
    look(station)
    assert [trial for _, _, trial in station.roots.asked] == [True, False]


SAID = {
    "abort": lambda s: (s.conductor.take({"command": "abort"}, s.now), turn(s)),
    "ignore": lambda s: s.ledger.put(ignore(s.incident(), "ada", "known", s.now)),
    "freeze": lambda s: s.freezes.freeze("use1-az4", "us-east-1a", s.now, s.now + 9e4, "ada", ""),
}


@pytest.mark.parametrize("word", SAID)
def test_a_drain_that_a_dead_function_began_is_followed_whatever_is_said(
    station: Station, word: str
) -> None:
    kill(1, [(station.termination_handler, "send")], after=True)
    with pytest.raises(Killed):
        drained(station)
    SAID[word](station)
    drain(station)
    seen = [look(station, seconds=seconds).state for seconds in (60, 1)]
    assert seen == [State.DRAINING, State.GATING]
    assert len(station.termination_handler.sent) == (1 if word == "freeze" else 2)


def test_a_machine_that_booted_before_its_request_is_known_to_have(station: Station) -> None:
    kill(2, [(station.roots, "replace")], after=True)  # The first only tries.
    with pytest.raises(Killed):
        away(station)
    joins_again(station)
    station.now += 60
    look(station)
    look(station)
    assert comes_back(station).state is State.RIDDEN_THROUGH


def test_another_broker_lost_before_the_request_brings_this_one_back(station: Station) -> None:
    drained(station)
    view = healthy_kafka(out=10)
    station.cluster.kafka = replace(
        view,
        fenced=frozenset({10, 20}),
        partitions=tuple(replace(p, isr=(30,), leader=30) for p in view.partitions),
    )
    for _ in range(4):
        incident = look(station)
    assert [trial for _, _, trial in station.roots.asked] == [True]
    assert station.cluster.node_views[OLD].schedulable
    assert incident.in_place is not None
    assert "Broker 20 is not in the ISR" in (incident.in_place.refusal or "")


def test_a_machine_that_is_late_is_paged_and_holds_everybody_else_back(station: Station) -> None:
    away(station)
    station.roots.go(OLD, "succeeded")
    incident = look(station, seconds=700)
    assert [page["page"] for page in station.ticks.pages] == ["machine_late"]
    assert incident.state is State.GATING
    assert [lease.holder for lease in station.ledger.leases()] == [OLD]
    look(station, seconds=60)
    assert len(station.ticks.pages) == 1


def test_a_root_volume_that_was_detached_calls_a_person(station: Station) -> None:
    away(station)
    station.roots.go(OLD, "failed-detached")
    incident = look(station)
    assert [page["page"] for page in station.ticks.pages] == ["root_detached"]
    assert incident.state is State.GATING
    assert not station.cluster.node_views[OLD].schedulable


def test_an_abort_after_the_drain_lets_the_machine_finish(station: Station) -> None:
    away(station)
    station.conductor.take({"command": "abort", "actor": "ada"}, station.now)
    turn(station)
    assert not station.incident().called_off
    joins_again(station)
    look(station)
    assert comes_back(station).state is State.RIDDEN_THROUGH


def test_a_group_that_takes_the_booting_machine_is_a_departure(station: Station) -> None:
    away(station)
    cluster = station.cluster
    cluster.terminate(OLD)
    for hook in ("drain", "gate"):
        station.announce(hook_event(hook))
    assert "EC2 replaces" not in look(station).reason
    assert not cluster.node_views[OLD].schedulable
    cluster.join(NEW)
    cluster.place_pod(10, NEW)
    cluster.kafka = healthy_kafka()
    for _ in range(8):
        if not look(station, seconds=5).open:
            break
    assert station.incident().state is State.RELEASED
    assert [trial for _, _, trial in station.roots.asked] == [True, False]


def test_nobody_else_goes_while_a_machine_boots(station: Station) -> None:
    away(station)
    station.announce(hook_event("drain", instance_id="i-0b", zone="us-east-1b"))
    station.cluster.set_lifecycle("i-0b", "Terminating:Wait")
    station.cluster.join("i-0e", "us-east-1b")
    for _ in range(6):
        other = look(station, "i-0b")
    assert other.state is State.HOLDING
    assert other.forwarded is None
    assert OLD in other.reason


@pytest.mark.parametrize(
    "quorum", [pytest.param(None, id="silent"), pytest.param("away", id="no-quorum")]
)
def test_without_a_whole_reading_ec2_is_not_asked(station: Station, quorum: str | None) -> None:
    drained(station)
    view = replace(healthy_kafka(out=10), stale=True)
    station.cluster.kafka = None if quorum is None else view
    look(station, seconds=2)
    assert "Nothing is replaced without a whole reading" in look(station).reason
    look(station, seconds=130)
    look(station)
    assert [trial for _, _, trial in station.roots.asked] == [True]
    assert station.cluster.node_views[OLD].schedulable


@pytest.mark.parametrize("pod", [None, 20], ids=["nobody runs there yet", "another broker does"])
def test_a_machine_that_was_uncordoned_is_not_booted(station: Station, pod: int | None) -> None:
    """A party's other pod may start on it, and would be cut off by the boot."""
    drained(station)
    cluster = station.cluster
    cluster.change_node(OLD, schedulable=True)
    if pod is not None:
        cluster.place_pod(pod, OLD)
    for _ in range(4):
        look(station)
    assert station.roots.tasks == {}
    place = station.incident().in_place
    assert place is not None
    assert "uncordoned" in (place.refusal or "")
    if pod is None:
        assert comes_back(station).state is State.RIDDEN_THROUGH


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        pytest.param(
            {"beyond_image": {**TEMPLATE, "UserData": '"x"'}}, "more than the image", id="user-data"
        ),
        pytest.param({"beyond_image": None}, "cannot be read", id="no-version"),
        pytest.param({"traits": {**TRAITS, "architecture": "x86_64"}}, "architecture", id="x86"),
        pytest.param(
            {"traits": {**TRAITS, "root device": "instance-store"}}, "not an EBS volume", id="store"
        ),
        pytest.param({"traits": None}, "EC2 tells nothing", id="no-image"),
        pytest.param({"instance_type": "m8g.large"}, "instance type", id="type"),
        pytest.param({"template_id": "lt-2"}, "another launch template", id="template"),
        pytest.param({"image_id": None}, "is not known", id="unknown-image"),
    ],
)
def test_what_a_new_root_volume_would_not_make_right_is_replaced(
    station: Station, wanted: dict[str, Any], why: str
) -> None:
    station.cluster.builds[OLD] = launched(**wanted)
    found = start(station).turn_of(10)
    assert found.image_id is None
    assert why in found.by_replacement


def test_a_managed_group_is_left_to_eks(station: Station) -> None:
    station.cluster.builds[OLD] = replace(launched(), managed=True)
    assert "EKS manages" in start(station).turn_of(10).by_replacement


def test_a_plan_says_who_stays_and_why_others_do_not(station: Station) -> None:
    station.cluster.builds[OLD] = launched(traits=None)
    said = {"command": "plan", "in_place": True, "selection": {"everything": True}}
    plan = station.conductor.take(said, station.now)["plan"]
    notes = " ".join(plan["notes"])
    assert "In place: 20, 30." in notes
    assert "By a new instance: 10. EC2 tells nothing" in notes
    seconds = {node["node_id"]: node["seconds"] for node in plan["nodes"]}
    assert seconds[20] < seconds[10]


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"schedulable": False}, "A person has cordoned"),
        ({"ready": False}, "is not Ready, so a boot may not bring it back"),
    ],
    ids=["cordoned", "not Ready"],
)
def test_a_node_that_is_unfit_makes_it_a_replacement(
    station: Station, node: dict[str, Any], why: str
) -> None:
    station.cluster.change_node(OLD, **node)
    start(station)
    turn(station)
    for _ in range(4):
        incident = look(station)
    assert incident.state is State.REPLACING
    assert incident.in_place is not None
    assert why in (incident.in_place.refusal or "")
    assert station.cluster.node_views[OLD].schedulable is node.get("schedulable", True)


def test_its_own_cordon_under_which_nothing_was_sent_makes_it_none(station: Station) -> None:
    fail(station.ledger, "begin_drain", StillwaterError("DynamoDB is away."), times=1)
    drained(station)
    assert station.incident().in_place.refusal is None


def test_a_machine_that_aws_takes_is_replaced_and_not_booted_once_more(station: Station) -> None:
    start(station)
    turn(station)
    station.announce(health_event())
    incident = [look(station) for _ in range(4)][-1]
    assert incident.in_place.refusal.startswith("AWS takes instance i-0a at ")
    assert incident.surge_to == 2


PARTY = ("i-0a", "i-1a")


@pytest.fixture
def six(six: Station) -> Station:
    found = behind_budgets(six)
    for instance_id in list(found.cluster.node_views):
        found.cluster.builds[instance_id] = launched()
        boots(found, instance_id, "boot-1")
    return found


def leave_together(station: Station) -> None:
    """Carry both of a zone to where their pods have left, and EC2 has not been asked."""
    start_all(station, in_place=True, at_once="zone")
    turn(station)
    for _ in range(12):
        for id_ in PARTY:
            settle(station, id_)
    for id_, node_id in zip(PARTY, (10, 11), strict=True):
        assert station.incident(id_).state is State.DRAINING
        station.cluster.change_pod(node_id, node_name=None, ready=False, may_leave=None)
        station.cluster.attached.pop(node_named(id_))
        reported(station, id_)
    station.cluster.kafka = healthy_kafka(out=(10, 11))


def asked_of_ec2(station: Station) -> set[str]:
    return {id_ for id_, _, trial in station.roots.asked if not trial}


def test_a_lost_broker_of_another_zone_brings_back_who_waits_to_boot(six: Station) -> None:
    leave_together(six)
    six.cluster.change_pod(30, ready=False)
    six.cluster.kafka = healthy_kafka(out=(10, 11, 30))
    for id_ in PARTY:
        settle(six, id_)
        assert six.cluster.node_views[id_].schedulable
        assert six.incident(id_).state is State.GATING
    assert asked_of_ec2(six) == set()


def test_a_companion_that_is_away_brings_nobody_back(six: Station) -> None:
    leave_together(six)
    for id_ in PARTY:
        settle(six, id_)
    assert asked_of_ec2(six) == {six.incident(id_).id for id_ in PARTY}
    assert not any(six.cluster.node_views[id_].schedulable for id_ in PARTY)


def test_one_that_stays_and_one_that_goes_are_no_party(six: Station) -> None:
    six.cluster.builds["i-1a"] = launched(traits=None)
    said = {"in_place": True, "at_once": "zone", "selection": {"everything": True}}
    planned = six.conductor.take({"command": "plan", **said}, six.now)["plan"]
    batch_of = {node["node_id"]: node["batch"] for node in planned["nodes"]}
    assert batch_of[10] != batch_of[11]
    assert batch_of[20] == batch_of[21]
