"""A run that takes two brokers of a zone at a time, and when a run may begin with a node."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.availability.lease import party_name
from core.ground.window import DAYS, Window
from core.incidents.observation import BudgetView
from core.incidents.record import Incident, State
from core.rotation.run_record import DEFAULT_DEADLINE_SECONDS, Phase, RunState
from core.views import ClusterView, PartitionView
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_rotations import ask, current, look, outsider_lost, start, turn
from tests.unit.handlers.walks import launch

pytestmark = pytest.mark.usefixtures("quiet")

# The station's clock begins at 10:00 UTC.
NIGHT = Window(days=frozenset(DAYS), start_minute=22 * 60, duration_minutes=120)
NOON = Window(days=frozenset(DAYS), start_minute=9 * 60, duration_minutes=120)
EVERYTHING = {"selection": {"everything": True}}


def station_with(window: Window | None) -> Station:
    return Station(policy=replace(POLICY, maintenance=window))


def test_a_run_waits_for_the_window_and_says_until_when() -> None:
    station = station_with(NIGHT)
    start(station)
    run = turn(station)
    assert run.reason == "The maintenance window opens at 2026-11-20 22:00 UTC; 3 nodes wait."
    assert (run.state, run.open_turns) == (RunState.RUNNING, ())
    # SQS carries it for a quarter of an hour, and the sweep does not take it for lost meanwhile.
    assert station.ticks.sent[-1][1] == 900
    sent = len(station.ticks.sent)
    station.sweep(600)
    assert len(station.ticks.sent) == sent
    station.now += 12 * 3600
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_time_outside_the_window_counts_for_no_deadline() -> None:
    station = station_with(NIGHT)
    station.cluster.kafka = healthy_kafka(out=30)
    start(station, selection={"node_ids": [10, 20]})
    turn(station)
    station.now += 12 * 3600
    assert "broker 30 is fenced" in turn(station).reason
    station.now += DEFAULT_DEADLINE_SECONDS - 60
    assert turn(station).state is RunState.RUNNING


def test_a_window_that_closes_over_a_run_stops_no_node_and_begins_with_none() -> None:
    station = station_with(NOON)
    start(station)
    assert turn(station).turn_of(10).phase is Phase.LEAVING
    station.now += 3600 + 60
    look(station)
    assert turn(station).turn_of(10).phase is Phase.LEAVING
    assert station.incident().open
    ask(station, "abort")
    turn(station)
    look(station)
    turn(station)
    assert turn(station).state is RunState.ABORTED


def test_a_run_stops_for_a_person_where_no_window_is_as_long_as_a_move() -> None:
    station = station_with(NOON)
    start(station)
    run = current(station)
    took = replace(
        run.turn_of(10),
        phase=Phase.DONE,
        since=station.now - 10_000,
        began_at=station.now - 10_000,
        done_at=station.now,
    )
    station.runs.put(run.replace_turn(took))
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert "no maintenance window stays open as long: make" in run.reason
    ask(station, "resume", any_time=True)
    assert turn(station).turn_of(20).phase is Phase.LEAVING


def test_a_run_is_not_started_where_the_last_one_took_longer_than_any_window() -> None:
    station = station_with(NOON)
    start(station)
    run = current(station)
    long_ago = station.now - 90_000
    turns = tuple(
        replace(t, phase=Phase.DONE, since=long_ago, began_at=long_ago, done_at=long_ago + 9_000)
        for t in run.turns
    )
    station.runs.put(replace(run, state=RunState.DONE, turns=turns))
    station.now += 60
    problems = ask(station, "start", **EVERYTHING)["problems"]
    assert "Broker 10 is expected to take 2 h 30 min, and no maintenance" in str(problems)
    planned = ask(station, "plan", **EVERYTHING)["plan"]
    assert len(planned["too_long"]) == 3
    assert "problems" not in ask(station, "start", any_time=True, **EVERYTHING)


@pytest.mark.parametrize("left_seconds", [30, -3600], ids=["closing", "closed"])
def test_what_aws_takes_waits_for_no_window(left_seconds: float) -> None:
    station = station_with(NOON)
    station.now += 3600 - left_seconds
    warning = "EC2 Spot Instance Interruption Warning"
    said_at = f"{datetime.fromtimestamp(station.now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    event = json.loads(ec2_event(warning, OLD, **{"instance-action": "terminate"}))
    station.announce(json.dumps({**event, "time": said_at}))
    assert station.tick().incident().state is State.DRAINING
    terminated = station_with(NOON)
    terminated.now += 3600 - left_seconds
    terminated.cluster.terminate(OLD)
    terminated.announce(hook_event("drain"))
    assert terminated.tick_until_quiet().incident().state is State.REPLACING


@pytest.mark.parametrize("command", ["start", "resume"])
def test_a_person_may_say_that_any_time_will_do(command: str) -> None:
    station = station_with(NIGHT)
    if command == "start":
        start(station, any_time=True)
    else:
        start(station)
        ask(station, "pause")
        ask(station, "resume", any_time=True)
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_a_plan_says_when_the_window_opens() -> None:
    said = ask(station_with(NIGHT), "plan", **EVERYTHING)["plan"]
    assert any("window opens at 2026-11-20 22:00 UTC" in note for note in said["notes"])
    free = ask(station_with(NIGHT), "plan", any_time=True, **EVERYTHING)["plan"]
    assert not any("window" in note for note in free["notes"])


def replicating(station: Station, bytes_: int) -> None:
    """Show broker 10 unfenced, behind, and holding so much."""
    view = healthy_kafka()
    behind = tuple(replace(p, isr=(20, 30), leader=20) for p in view.partitions)
    station.cluster.kafka = replace(view, partitions=behind)
    station.cluster.held = {10: bytes_, 20: 0, 30: 0}


def test_a_run_measures_how_fast_a_log_comes_back_and_the_next_plan_goes_by_it() -> None:
    station = station_with(None)
    first = ask(station, "plan", **EVERYTHING)["plan"]
    assert (first["replication_bytes_per_s"], first["replication_measured_in"]) == (125e6, None)
    assert any("125.0 MB/s is assumed" in note for note in first["notes"])

    run = start(station)
    turn(station)
    for held in (100_000_000, 500_000_000, 900_000_000):
        replicating(station, held)
        turn(station)
    # 20 s between two turns: 800 MB in 40 s.
    measured = current(station).turn_of(10)
    assert (measured.copied_bytes, measured.copied_seconds) == (800_000_000, 40)
    station.cluster.kafka = healthy_kafka()
    turn(station)
    assert current(station).turn_of(10).copied_bytes == 800_000_000

    held = ask(station, "held")["held"]
    station.now += 10
    station.cluster.held = {10: 1_000_000_000, 20: 0, 30: 0}
    second = ask(station, "plan", held=held, **EVERYTHING)["plan"]
    assert second["replication_bytes_per_s"] == pytest.approx(20e6)
    assert second["replication_measured_in"] == run.id
    assert any(
        f"20.0 MB/s was measured in {run.id}, by 1 broker" in note for note in second["notes"]
    )


def test_a_run_that_measured_nothing_hands_on_what_an_earlier_one_did() -> None:
    station = station_with(None)
    first = start(station)
    turn(station)
    for held in (0, 200_000_000):
        replicating(station, held)
        turn(station)
    station.runs.put(replace(current(station), state=RunState.DONE))
    station.cluster.kafka = healthy_kafka()
    station.now += 60
    second = start(station)
    assert (second.replication.run_id, second.replication.bytes_per_s) == (first.id, 10e6)
    plan = ask(station, "plan", **EVERYTHING)["plan"]
    assert plan["replication_measured_in"] == first.id


def test_a_broker_that_is_fenced_again_before_it_was_measured_begins_anew() -> None:
    station = station_with(None)
    start(station)
    turn(station)
    replicating(station, 100)
    turn(station)
    station.cluster.kafka = healthy_kafka(out=10)
    turn(station)
    assert current(station).turn_of(10).behind_at is None


def test_a_handful_of_bytes_is_no_measurement() -> None:
    station = station_with(None)
    start(station)
    turn(station)
    for held in (0, 50_000):
        replicating(station, held)
        turn(station)
    assert current(station).turn_of(10).copied_bytes == 50_000
    station.cluster.kafka = healthy_kafka()
    plan = ask(station, "plan", **EVERYTHING)["plan"]
    assert (plan["replication_bytes_per_s"], plan["replication_measured_in"]) == (125e6, None)


def shared_partition(station: Station) -> None:
    """Put one partition on both brokers of zone a."""
    view = station.cluster.read()
    both = PartitionView("crowded", 7, 10, (10, 11, 20), (10, 11, 20), 1)
    station.cluster.kafka = replace(view, partitions=(*view.partitions, both))


def first_leaves(station: Station) -> None:
    """Have the zone's first broker take the lease for its party."""
    party = party_name(current(station).id, "us-east-1a", (10, 11))
    station.ledger.take_lease("i-0a", station.now, 900, party=party, node_id=10)


def held_back(station: Station) -> Incident:
    """Carry the second one's incident to where it waits for the other, and return it."""
    for _ in range(3):
        look(station, "i-1a")
        launch(station)
    second = station.incident("i-1a")
    assert second.state is State.HOLDING
    return second


def test_brokers_that_break_a_partition_together_go_apart_as_planned(six: Station) -> None:
    shared_partition(six)
    planned = ask(six, "plan", selection={"everything": True}, at_once="zone")["plan"]
    assert [node["batch"] for node in planned["nodes"]] == [1, 2, 3, 3, 4, 4]
    assert planned["notes"][0] == (
        "Brokers of us-east-1a leave in 2 sets. 10, 11 leave separately because of partition "
        "crowded-7 (1 in all). With its replicas in different zones they would leave together."
    )
    start(six, at_once="zone")
    assert [t.node_id for t in turn(six).open_turns] == [10]


def test_a_partition_that_is_shared_since_the_start_parts_them(six: Station) -> None:
    start(six, at_once=2)
    shared_partition(six)
    run = turn(six)
    assert [t.node_id for t in run.open_turns] == [10]
    assert any("Partition crowded-7 would not keep" in note.text for note in run.notes)


def test_the_whole_zone_goes_at_once_and_the_lease_names_it(six: Station) -> None:
    start(six, at_once="zone")
    run = turn(six)
    assert [(t.node_id, t.party) for t in run.open_turns] == [(10, (10, 11)), (11, (10, 11))]
    party = six.incident("i-0a").party
    assert party == f"{run.id}/us-east-1a/10+11"
    six.ledger.take_lease("i-0a", six.now, 900, party=party, node_id=10)
    assert [lease.nodes for lease in six.ledger.leases()] == [{10, 11}]


def test_a_lost_broker_of_another_zone_stops_the_run_and_who_waits(six: Station) -> None:
    start(six, at_once="zone")
    turn(six)
    outsider_lost(six)
    run = turn(six)
    assert run.state is RunState.STOPPED
    assert run.reason.startswith("Broker 20 is not in the ISR of partition ")
    assert "Called off, and kept: 10, 11." in run.reason
    assert six.incident("i-0a").called_off
    for id_ in ("i-0a", "i-1a"):
        assert look(six, id_).state is State.CANCELLED
    # Healed and resumed, it begins with both anew.
    six.cluster.kafka = healed(six)
    ask(six, "resume")
    for _ in range(4):
        run = turn(six)
    assert [(t.node_id, t.attempt) for t in run.open_turns] == [(10, 2), (11, 2)]
    assert {i.instance_id for i in six.ledger.open_incidents()} == {"i-0a", "i-1a"}


def healed(station: Station) -> ClusterView:
    view = station.cluster.read()
    partitions = tuple(replace(p, isr=p.replicas) for p in view.partitions)
    return replace(view, partitions=partitions, fenced=frozenset())


def test_who_shares_a_partition_by_now_waits_until_the_other_is_back(six: Station) -> None:
    start(six, at_once=2)
    turn(six)
    shared_partition(six)
    first_leaves(six)
    second = held_back(six)
    assert "Nodes 10, 11 may not leave together: partition crowded-7 would keep" in second.reason


def test_an_abort_takes_the_room_for_both_back(six: Station) -> None:
    start(six, at_once=2)
    turn(six)
    for id_ in ("i-0a", "i-1a", "i-0a", "i-1a"):
        look(six, id_)
    assert six.cluster.groups[group_of("us-east-1a")].desired == 4
    ask(six, "abort")
    turn(six)
    for id_ in ("i-0a", "i-1a"):
        look(six, id_)
    turn(six)
    run = turn(six)
    assert run.state is RunState.ABORTED, run.reason
    assert six.cluster.groups[group_of("us-east-1a")].desired == 2
    assert six.cluster.terminated == []


def test_a_handler_that_drains_by_itself_forbids_company(six: Station) -> None:
    direct = Station(policy=replace(POLICY, drain_route="direct"), cluster=six.cluster)
    answer = ask(direct, "start", selection={"everything": True}, at_once=2)
    assert "drain_route direct" in str(answer["problems"])


@pytest.mark.parametrize("asked", [0, -1, 1.5, True, "2", "all"])
def test_a_number_that_is_none_is_said_to_be_so(six: Station, asked: object) -> None:
    answer = ask(six, "plan", selection={"everything": True}, at_once=asked)
    assert "must be a whole number from 1" in str(answer["problems"])


def test_a_resume_says_how_many_go_together_from_then_on(six: Station) -> None:
    start(six)
    ask(six, "pause")
    said = ask(six, "resume", at_once=2)["said"]
    assert said == (
        "ada resumes the run, 2 brokers of a zone at a time instead of one broker at a time."
    )
    run = turn(six)
    assert run.options.at_once == 2
    assert [t.node_id for t in run.open_turns] == [10, 11]
    assert said in [note.text for note in run.notes]


def test_a_resume_keeps_how_many_go_together_unless_it_names_a_number(six: Station) -> None:
    start(six, at_once=2)
    ask(six, "pause")
    assert "or zone" in str(ask(six, "resume", at_once=0)["problems"])
    assert (current(six).state, current(six).options.at_once) == ("paused", 2)
    assert ask(six, "resume")["said"] == "ada resumes the run."
    assert current(six).options.at_once == 2


def test_nobody_joins_one_that_left_alone(six: Station) -> None:
    start(six, deadline_seconds=60)
    turn(six)
    six.now += 100
    assert turn(six).state is RunState.STOPPED
    ask(six, "resume", at_once=2)
    assert [t.node_id for t in turn(six).open_turns] == [10]


def test_a_plan_shows_who_goes_together_and_counts_what_they_share_once(six: Station) -> None:
    alone = ask(six, "plan", selection={"everything": True})["plan"]
    together = ask(six, "plan", selection={"everything": True}, at_once=2)["plan"]
    assert isinstance(alone, dict)
    assert isinstance(together, dict)
    assert [node["batch"] for node in alone["nodes"]] == [1, 2, 3, 4, 5, 6]
    assert [node["batch"] for node in together["nodes"]] == [1, 1, 2, 2, 3, 3]
    # Three minutes for a machine, a minute and a half away, ten seconds' hold. The next machine
    # boots meanwhile, and takes longer. The second of a zone stops after the first.
    assert alone["seconds"] == pytest.approx(180 + 90 + 10 + 5 * 180)
    assert together["seconds"] == pytest.approx(180 + 90 + 10 + 90 + 2 * (180 + 90))
    assert (
        "With --at-once zone it would take about 15 min 10 s instead of 19 min 40 s: 3 sets "
        "instead of 6." in alone["notes"]
    )
    assert (
        "Each next machine boots while the node before comes back; one after the other it would "
        "take about 28 min instead of 19 min 40 s." in alone["notes"]
    )
    assert not any("--at-once" in note for note in together["notes"])


def test_open_budgets_make_a_plan_count_what_they_share(six: Station) -> None:
    opening = Station(policy=replace(POLICY, stops_together=True), cluster=six.cluster)
    alone = ask(opening, "plan", selection={"everything": True})["plan"]
    together = ask(opening, "plan", selection={"everything": True}, at_once="zone")["plan"]
    assert alone["seconds"] == pytest.approx(180 + 90 + 10 + 5 * 180)
    assert together["seconds"] == pytest.approx(180 + 90 + 10 + 2 * 180)


def test_who_a_budget_would_refuse_holds_while_its_companion_is_out(six: Station) -> None:
    start(six, at_once=2)
    turn(six)
    first_leaves(six)
    name = six.cluster.pods[11].name
    six.cluster.disruption_budgets = (
        BudgetView(name="orders-kafka", pods=frozenset({name}), disruptions_allowed=0),
    )
    second = held_back(six)
    assert "orders-kafka lets no other pod go until one is Ready again" in second.reason


def test_room_that_another_has_asked_for_is_not_counted_as_ones_own(six: Station) -> None:
    start(six, at_once=2)
    turn(six)
    for id_ in ("i-0a", "i-1a"):
        incident = six.incident(id_)
        six.ledger.put(
            replace(
                incident,
                state=State.REPLACING,
                zone="us-east-1a",
                pool="broker",
                node_id=10 if id_ == "i-0a" else 11,
            )
        )
    first = six.incident("i-0a")
    # Written down, and the group not asked yet.
    six.ledger.put(replace(first, surge_to=3))
    assert look(six, "i-1a").surge_to == 4
