"""A broker that lost its disk refills under a throttle; the next machine is ready meanwhile."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.joining import ask_release
from core.incidents.record import State
from core.rotation.run_record import (
    NodeTurn,
    Phase,
    Replication,
    Run,
    RunState,
    Throttle,
    run_from_document,
    run_to_document,
)
from handlers.store.documents import is_left_throttled
from handlers.store.ledger import STRAYS_MESSAGE
from tests.every_case import every_case
from tests.unit.handlers import healthy
from tests.unit.handlers.announced import DAY, REBOOT, health_event, hook_event
from tests.unit.handlers.failing import Killed, fail, noted
from tests.unit.handlers.fakes import OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_rotations import ask, carry, current, look, start, turn
from tests.unit.handlers.walks import announce_hooks, come_back, launch

pytestmark = pytest.mark.usefixtures("quiet")

GIB = 1024**3
MEASURED = Replication(bytes_per_s=80e6, run_id="rotation-20260101-000000", brokers=3)


def left(station: Station) -> None:
    """Begin with broker 10, whose logs hold 100 GiB."""
    station.cluster.held = {10: 100 * GIB}
    start(station)
    turn(station)  # begins
    turn(station)  # measures what it holds
    assert current(station).turn_of(10).whole_bytes == 100 * GIB
    station.runs.put(replace(current(station), replication=MEASURED))


def behind(station: Station, holds: int) -> None:
    """Have it registered again, in no ISR, with so many bytes."""
    station.cluster.held = {10: holds}
    station.cluster.kafka = replace(healthy_kafka(out=10), fenced=frozenset())


def emptied(station: Station) -> None:
    """Have broker 10 come back with one of its 100 GiB."""
    left(station)
    behind(station, 1 * GIB)


def refilled(station: Station) -> Run:
    emptied(station)
    return turn(station)


def test_who_lost_its_disk_is_throttled_to_half_of_what_was_measured_until_it_is_back(
    station: Station,
) -> None:
    run = refilled(station)
    assert station.cluster.throttled == Throttle(
        brokers=(10,),
        topics=("t",),
        follower_bytes_per_s=40_000_000,
        leader_bytes_per_s=20_000_000,  # of two that lead
    )
    assert (run.throttled, run.turn_of(10).throttled) == ((10,), True)
    assert any(
        note.text == "What broker 10 lost is copied again at 40.0 MB/s each at most, half of what "
        "replication brings in (measured in rotation-20260101-000000)."
        for note in run.notes
    )
    station.cluster.kafka = healthy_kafka()
    run = turn(station)
    assert (station.cluster.throttled, run.throttled) == (None, ())
    assert station.cluster.unthrottled == [("t",)]
    assert not is_left_throttled(station.records, "orders", None)


def on_its_volume(station: Station) -> None:
    left(station)
    behind(station, 99 * GIB)


def of_next_to_nothing(station: Station) -> None:
    station.cluster.held = {10: 1_000_000}
    start(station)
    turn(station)
    turn(station)
    behind(station, 0)


def beside_somebody_elses_reassignment(station: Station) -> None:
    emptied(station)
    station.cluster.kafka = replace(station.cluster.read(), reassigning=("t-0",))


@every_case("back", [on_its_volume, of_next_to_nothing, beside_somebody_elses_reassignment])
def test_who_comes_back_otherwise_is_not(back: Callable[[Station], None]) -> None:
    station = Station()
    back(station)
    assert (turn(station).throttled, station.cluster.throttled) == ((), None)


def test_a_throttle_never_keeps_a_broker_out_until_its_deadline(station: Station) -> None:
    refilled(station)
    station.now += current(station).options.deadline_seconds / 2
    station.cluster.held = {10: 30 * GIB}
    run = turn(station)
    assert (station.cluster.throttled, run.throttled) == (None, ())
    assert "it took too long" in str([note.text for note in run.notes])


def test_what_was_copied_under_a_throttle_is_no_measurement(station: Station) -> None:
    refilled(station)
    station.cluster.held = {10: 2 * GIB}
    turn(station)
    assert current(station).turn_of(10).copied_bytes == GIB
    station.runs.put(replace(current(station), state=RunState.ABORTED))
    assert start(station).replication == MEASURED


def test_a_run_goes_on_where_kafka_refuses_the_throttle(station: Station) -> None:
    emptied(station)
    station.cluster.throttle_refused = "grant the functions' user AlterConfigs on the cluster."
    run = turn(station)
    assert run.state is RunState.RUNNING
    assert "The refill is not throttled: grant the functions' user AlterConfigs" in str(
        [note.text for note in run.notes]
    )


def test_a_throttle_of_somebody_elses_is_neither_changed_nor_taken_off(station: Station) -> None:
    emptied(station)
    station.cluster.foreign_throttle = "topic t is marked already, which is not ours."
    run = turn(station)
    assert station.cluster.throttled is None
    assert "The refill is not throttled: topic t is marked" in str([n.text for n in run.notes])
    station.cluster.kafka = healthy_kafka()
    assert turn(station).throttled == ()
    assert station.cluster.unthrottled == []
    assert not is_left_throttled(station.records, "orders", None)


def stopped(run: Run) -> Run:
    return replace(run, state=RunState.STOPPED)


def forgotten(run: Run) -> Run:
    """As a turn leaves it that dies before it recorded what it throttled."""
    return replace(run, throttled=())


def another(run: Run) -> Run:
    return replace(run, id="rotation-20270101-000000")


@pytest.mark.parametrize("change", [stopped, forgotten, another])
def test_the_sweep_takes_off_a_throttle_that_no_run_wants(station: Station, change: object) -> None:
    refilled(station)
    station.sweep()
    assert STRAYS_MESSAGE not in [body for body, _ in station.ticks.sent]
    assert callable(change)
    station.runs.put(change(current(station)))
    station.sweep()
    assert STRAYS_MESSAGE in [body for body, _ in station.ticks.sent]
    station.cluster.throttle_refused = "No Kafka broker could be reached."
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.throttled is not None
    station.cluster.throttle_refused = ""
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.throttled is None
    assert station.cluster.unthrottled == [("t",)]


def test_a_run_that_stops_takes_its_throttle_off_itself(station: Station) -> None:
    refilled(station)
    run = current(station)
    late = replace(run.turn_of(10), since=station.now - run.options.deadline_seconds)
    station.runs.put(run.replace_turn(late))
    assert turn(station).state is RunState.STOPPED
    assert station.cluster.throttled is None


def test_without_a_measured_pace_half_of_what_is_assumed_counts(station: Station) -> None:
    left(station)
    station.runs.put(replace(current(station), replication=None))
    behind(station, 1 * GIB)
    turn(station)
    assert station.cluster.throttled.follower_bytes_per_s == 62_500_000


def test_a_record_of_a_run_keeps_what_it_throttles(station: Station) -> None:
    run = refilled(station)
    assert run_from_document(run_to_document(run), run.version) == run
    older = {k: v for k, v in run_to_document(run).items() if k != "throttled"}
    assert run_from_document(older, 1).throttled == ()


def test_nothing_is_decided_on_a_reading_without_a_quorum(station: Station) -> None:
    run = refilled(station)
    assert isinstance(run.turn_of(10), NodeTurn)
    assert run.turn_of(10).phase is Phase.LEAVING
    station.cluster.kafka = replace(station.cluster.read(), stale=True)
    turn(station)
    assert station.cluster.throttled is not None
    assert current(station).throttled == (10,)


def test_a_crash_before_kafka_leaves_a_document_of_the_topics(station: Station) -> None:
    emptied(station)
    fail(station.cluster, "throttle", Killed())
    with pytest.raises(Killed):
        turn(station)
    assert is_left_throttled(station.records, "orders", current(station))
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.unthrottled == [("t",)]


ZONE_A, ZONE_B = "us-east-1a", "us-east-1b"
AN_HOUR = 3600.0


def first_is_leaving(station: Station, **said: object) -> None:
    """Start a run, and let its first node come as far as its drain."""
    start(station, **said)
    turn(station)
    first_drains(station)


def first_drains(station: Station) -> None:
    for _ in range(20):
        if station.incident("i-0a").state is State.DRAINING:
            return
        look(station, "i-0a")
        launch(station)
        announce_hooks(station)
    raise AssertionError(station.incident("i-0a").reason)


def second_made_ready(station: Station) -> None:
    first_is_leaving(station)
    turn(station)
    look(station, "i-0b")
    launch(station)
    look(station, "i-0b")


def second_at_its_turn(station: Station) -> None:
    second_made_ready(station)
    come_back(station, OLD)


def desired(station: Station, zone: str) -> int:
    return station.cluster.groups[group_of(zone)].desired


def test_the_next_machine_is_asked_for_once_the_first_has_begun_to_leave(station: Station) -> None:
    start(station)
    turn(station)
    turn(station)
    assert [t.ahead for t in current(station).turns] == [False] * 3  # It may wait for long.
    first_drains(station)
    run = turn(station)
    assert [t.ahead for t in run.turns] == [False, True, False]
    assert run.reason == "Room for node 20 is made while node 10 comes back."
    look(station, "i-0b")
    assert desired(station, ZONE_B) == 2


def test_no_machine_is_made_ready_for_a_node_that_waits_for_a_reboot(station: Station) -> None:
    said = health_event(REBOOT, due=station.now + 20 * DAY, said_at=station.now)
    station.announce(said.replace(OLD, "i-0b"))
    look(station, "i-0b")
    first_is_leaving(station)
    assert not any(t.ahead for t in turn(station).turns)
    assert station.incident("i-0b").kind is Kind.SCHEDULED_CHANGE


def test_nothing_of_it_leaves_before_the_run_has_come_to_it(station: Station) -> None:
    second_made_ready(station)
    second = station.incident("i-0b")
    assert second.state is State.HOLDING
    assert second.reason == (
        "ip-i-new2.ec2.internal can take Kafka node 20 over, whose turn in the rotation has not "
        "come."
    )
    # Kafka would consent, and nobody has the lease: its turn alone is missing.
    station.cluster.kafka = healthy_kafka()
    station.ledger.drop_lease("i-0a")
    asked = noted(station.cluster, "read")
    look(station, "i-0b")
    assert asked == []
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"] == "InService"
    assert station.cluster.asked_to_terminate == [("i-0a", True)]


def test_at_its_turn_it_goes_with_the_machine_that_waits(station: Station) -> None:
    second_at_its_turn(station)
    while current(station).turn_of(20).phase is Phase.WAITING:
        turn(station)
    assert current(station).turn_of(10).phase is Phase.DONE
    second = look(station, "i-0b")
    assert not second.ahead
    assert second.replacement_node == "ip-i-new2.ec2.internal"
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"].startswith("Terminating")


@pytest.mark.parametrize("word", ["pause", "abort"])
def test_what_a_person_ends_gives_the_room_back(station: Station, word: str) -> None:
    second_made_ready(station)
    ask(station, word)
    turn(station)
    assert look(station, "i-0b").state is State.CANCELLED
    come_back(station, OLD)
    run = carry(station)
    assert run.state is (RunState.PAUSED if word == "pause" else RunState.ABORTED)
    assert desired(station, ZONE_B) == 1
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"] == "InService"


@pytest.mark.parametrize("state", ["Pending", "InService"])
def test_a_machine_that_has_not_joined_is_given_back_too(station: Station, state: str) -> None:
    """Of the group alone it is known: no Node tells that it idles."""
    first_is_leaving(station)
    turn(station)
    look(station, "i-0b")
    station.cluster.add_instance("i-new2", ZONE_B, lifecycle=state)
    ask(station, "abort")
    turn(station)
    look(station, "i-0b")
    station.cluster.set_lifecycle("i-new2", "InService") if state == "Pending" else None
    assert look(station, "i-0b").state is State.CANCELLED
    assert station.cluster.asked_to_terminate[-1] == ("i-new2", True)
    assert desired(station, ZONE_B) == 1


def test_a_pause_between_two_nodes_gives_the_room_back(station: Station) -> None:
    second_at_its_turn(station)
    station.cluster.kafka = replace(healthy_kafka(), reassigning=("orders-1",))
    while current(station).open_turns:
        turn(station)
    ask(station, "pause")
    assert turn(station).state is RunState.PAUSED
    assert look(station, "i-0b").state is State.CANCELLED


def test_a_run_that_stops_gives_the_room_back_and_goes_on_without(station: Station) -> None:
    second_made_ready(station)
    station.now += 2 * AN_HOUR
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert look(station, "i-0b").state is State.CANCELLED
    come_back(station, OLD)
    ask(station, "resume")
    run = carry(station)
    assert run.state is RunState.DONE
    assert station.incident("i-0b.2").state is State.RELEASED
    assert not run.turn_of(20).ahead  # It began without its machine, and is measured so.


def test_a_run_that_died_keeps_no_machine_for_ever(station: Station) -> None:
    second_made_ready(station)
    station.now += AN_HOUR + 1
    second = look(station, "i-0b")
    assert second.state is State.CANCELLED
    assert "Its run has not come to it within an hour." in second.reason
    assert station.cluster.asked_to_terminate[-1] == ("i-new2", True)


def test_without_room_it_is_replaced_at_its_turn_as_ever(station: Station) -> None:
    group = station.cluster.groups[group_of(ZONE_B)]
    station.cluster.groups[group.name] = replace(group, maximum=1)
    first_is_leaving(station)
    assert not any(t.ahead for t in turn(station).turns)
    station.cluster.groups[group.name] = group
    come_back(station, OLD)
    assert carry(station).state is RunState.DONE


def test_its_own_room_does_not_keep_it_from_its_turn(station: Station) -> None:
    """The group is at its maximum because of the very machine that waits."""
    second_made_ready(station)
    group = station.cluster.groups[group_of(ZONE_B)]
    assert (group.desired, group.maximum) == (2, 2)
    come_back(station, OLD)
    assert carry(station).state is RunState.DONE


def test_what_aws_terminates_goes_without_the_run(station: Station) -> None:
    second_at_its_turn(station)
    station.cluster.terminate("i-0b")
    for hook in ("drain", "gate"):
        station.announce(hook_event(hook, instance_id="i-0b", zone=ZONE_B))
    look(station, "i-0b")
    come_back(station, "i-0b")
    run = carry(station)
    assert run.state is RunState.DONE
    assert run.turn_of(20).phase is Phase.SKIPPED


def test_what_aws_takes_before_its_turn_goes_with_kafkas_consent(station: Station) -> None:
    """AWS's own date comes before the run does: it is not waited for."""
    second_at_its_turn(station)
    due = station.now + POLICY.planned_margin_seconds / 2
    station.announce(health_event(said_at=station.now, due=due).replace(OLD, "i-0b"))
    look(station, "i-0b")
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"].startswith("Terminating")


@pytest.mark.parametrize("turns", [0, 1], ids=["its turn has come", "made ready"])
def test_a_run_that_is_called_off_calls_off_nothing_of_awss(station: Station, turns: int) -> None:
    """AWS retires an instance of the run; the person who aborts the run knows nothing of that."""
    id_ = ("i-0a", "i-0b")[turns]
    if turns:
        second_made_ready(station)
    else:
        start(station)
        turn(station)
        look(station)
    due = station.now + 7 * 24 * AN_HOUR
    station.announce(health_event(said_at=station.now, due=due).replace(OLD, id_))
    ask(station, "abort")
    for _ in range(3):
        turn(station)
        look(station, id_)
    incident = station.incident(id_)
    assert (incident.kind, incident.called_off) == (Kind.SCHEDULED_CHANGE, False)
    assert incident.open
    assert incident.due_at == pytest.approx(due, abs=1)
    if not turns:
        assert current(station).state is RunState.ABORTED


def test_a_person_lets_it_go_before_its_turn(station: Station) -> None:
    second_at_its_turn(station)
    station.ledger.put(ask_release(station.incident("i-0b"), "ada", station.now))
    look(station, "i-0b")
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"].startswith("Terminating")


def test_a_node_whose_pod_has_gone_is_not_taken_for_empty_before_its_turn(station: Station) -> None:
    first_is_leaving(station)
    station.cluster.pods.pop(20)
    turn(station)  # Its home is not known: no machine is asked for.
    assert not current(station).turn_of(20).ahead
    assert station.cluster.groups[group_of(ZONE_B)].instances["i-0b"] == "InService"


@pytest.mark.parametrize("said", [{"in_place": True}, {}], ids=["in place", "Karpenter"])
def test_where_no_group_brings_the_machine_none_is_asked_for(said: dict[str, object]) -> None:
    route = "held" if said else "asked"
    station = Station(policy=replace(POLICY, drain_route=route))
    run = start(station)
    run = station.runs.put(replace(run, options=replace(run.options, **said)))
    turn(station)
    for _ in range(4):
        station.now += 20
        look(station, "i-0a")
        turn(station)
    assert not any(t.ahead for t in current(station).turns)


def test_of_the_next_party_every_machine_is_made_ready(six: Station) -> None:
    start(six, at_once="zone")
    turn(six)
    for _ in range(40):
        if {six.incident(i).state for i in ("i-0a", "i-1a")} == {State.DRAINING}:
            break
        for id_ in ("i-0a", "i-1a"):
            look(six, id_)
        launch(six)
        announce_hooks(six)
    run = turn(six)
    assert [t.node_id for t in run.turns if t.ahead] == [20, 21]
    for id_ in ("i-0b", "i-1b"):
        look(six, id_)
    assert desired(six, ZONE_B) == 4
    assert desired(six, ZONE_A) == 2


def test_of_brokers_that_go_apart_the_first_ones_machine_is_made_ready(
    six: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = healthy._topics()
    monkeypatch.setattr(healthy, "_topics", lambda: {**topics, "shared": (20, 21, 30)})
    six.cluster.kafka = healthy_kafka()
    start(six, at_once="zone")
    turn(six)
    for _ in range(40):
        for id_ in ("i-0a", "i-1a"):
            look(six, id_)
        launch(six)
        announce_hooks(six)
    run = turn(six)
    assert [t.node_id for t in run.open_turns] == [10, 11]
    assert [t.node_id for t in run.turns if t.ahead] == [20]
