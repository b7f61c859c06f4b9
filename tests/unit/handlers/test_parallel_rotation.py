"""A run that takes two brokers of a zone at a time: never more, never across zones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.availability.lease import party_name
from core.ground.window import DAYS, Window
from core.incidents.observation import BudgetView
from core.incidents.record import Incident, State
from core.rotation.run_record import RunState
from core.views import ClusterView, PartitionView
from tests.unit.handlers.fakes import group_of, six_brokers
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_rotations import ask, current, look, outsider_lost, start, turn
from tests.unit.handlers.walks import launch

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> Station:
    for node_id, zone in ((11, "us-east-1a"), (21, "us-east-1b"), (31, "us-east-1c")):
        monkeypatch.setitem(ZONES, node_id, zone)
    return Station(cluster=six_brokers())


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


def test_brokers_that_break_a_partition_together_go_apart_and_the_plan_says_why(
    station: Station,
) -> None:
    shared_partition(station)
    planned = ask(station, "plan", selection={"everything": True}, at_once="zone")["plan"]
    assert [node["batch"] for node in planned["nodes"]] == [1, 2, 3, 3, 4, 4]
    assert planned["notes"][0] == (
        "Brokers of us-east-1a go in 2 parties. 10, 11 go apart for partition crowded-7 (1 in "
        "all): with its replicas in different zones they would go together."
    )
    start(station, at_once="zone")
    assert [t.node_id for t in turn(station).open_turns] == [10]


def test_a_partition_that_is_shared_since_the_start_parts_them(station: Station) -> None:
    start(station, at_once=2)
    shared_partition(station)
    run = turn(station)
    assert [t.node_id for t in run.open_turns] == [10]
    assert any("Partition crowded-7 would not keep" in note.text for note in run.notes)


def test_the_whole_zone_goes_at_once_and_the_lease_names_it(station: Station) -> None:
    start(station, at_once="zone")
    run = turn(station)
    assert [(t.node_id, t.party) for t in run.open_turns] == [(10, (10, 11)), (11, (10, 11))]
    party = station.incident("i-0a").party
    assert party == f"{run.id}/us-east-1a/10+11"
    station.ledger.take_lease("i-0a", station.now, 900, party=party, node_id=10)
    assert [lease.nodes for lease in station.ledger.leases()] == [{10, 11}]


def test_a_broker_of_another_zone_that_is_lost_stops_the_run_and_calls_off_who_has_not_left(
    station: Station,
) -> None:
    start(station, at_once="zone")
    turn(station)
    outsider_lost(station)
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert run.reason.startswith("Broker 20 is not in the ISR of partition ")
    assert "Called off, and kept: 10, 11." in run.reason
    assert station.incident("i-0a").called_off
    for id_ in ("i-0a", "i-1a"):
        look(station, id_)
        assert station.incident(id_).state is State.CANCELLED
    # Healed and resumed, it begins with both anew.
    station.cluster.kafka = healed(station)
    ask(station, "resume")
    for _ in range(4):
        run = turn(station)
    assert [(t.node_id, t.attempt) for t in run.open_turns] == [(10, 2), (11, 2)]
    assert {i.instance_id for i in station.ledger.open_incidents()} == {"i-0a", "i-1a"}


def healed(station: Station) -> ClusterView:
    view = station.cluster.read()
    partitions = tuple(replace(p, isr=p.replicas) for p in view.partitions)
    return replace(view, partitions=partitions, fenced=frozenset())


def test_one_that_shares_a_partition_by_now_waits_with_its_hooks_until_the_other_is_back(
    station: Station,
) -> None:
    start(station, at_once=2)
    turn(station)
    shared_partition(station)
    first_leaves(station)
    second = held_back(station)
    assert "Nodes 10, 11 may not leave together: partition crowded-7 would keep" in second.reason


def test_the_deadline_of_each_counts_for_itself(station: Station) -> None:
    start(station, at_once=2, deadline_seconds=60)
    turn(station)
    station.now += 100
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert "Node 10 is not back" in run.reason


def test_an_abort_takes_the_room_for_both_back(station: Station) -> None:
    start(station, at_once=2)
    turn(station)
    for id_ in ("i-0a", "i-1a", "i-0a", "i-1a"):
        look(station, id_)
    assert station.cluster.groups[group_of("us-east-1a")].desired == 4
    ask(station, "abort")
    turn(station)
    for id_ in ("i-0a", "i-1a"):
        look(station, id_)
    turn(station)
    run = turn(station)
    assert run.state is RunState.ABORTED, run.reason
    assert station.cluster.groups[group_of("us-east-1a")].desired == 2
    assert station.cluster.terminated == []


def test_a_handler_that_drains_by_itself_forbids_company(station: Station) -> None:
    direct = Station(policy=replace(POLICY, drain_route="direct"), cluster=station.cluster)
    answer = ask(direct, "start", selection={"everything": True}, at_once=2)
    assert "drain_route direct" in str(answer["problems"])


@pytest.mark.parametrize("asked", [0, -1, 1.5, True, "2", "all"])
def test_a_number_that_is_none_is_said_to_be_so(station: Station, asked: object) -> None:
    answer = ask(station, "plan", selection={"everything": True}, at_once=asked)
    assert "must be a whole number from 1" in str(answer["problems"])


def test_a_resume_says_how_many_go_together_from_then_on(station: Station) -> None:
    start(station)
    ask(station, "pause")
    said = ask(station, "resume", at_once=2)["said"]
    assert said == (
        "ada resumes the run, 2 brokers of a zone at a time instead of one broker at a time."
    )
    run = turn(station)
    assert run.options.at_once == 2
    assert [t.node_id for t in run.open_turns] == [10, 11]
    assert said in [note.text for note in run.notes]


def test_a_resume_that_names_no_number_keeps_the_one_it_has(station: Station) -> None:
    start(station, at_once=2)
    ask(station, "pause")
    assert ask(station, "resume")["said"] == "ada resumes the run."
    assert current(station).options.at_once == 2


def test_a_resume_is_refused_as_a_start_is(station: Station) -> None:
    start(station)
    ask(station, "pause")
    assert "or zone" in str(ask(station, "resume", at_once=0)["problems"])
    assert (current(station).state, current(station).options.at_once) == ("paused", 1)


def test_nobody_joins_one_that_left_alone(station: Station) -> None:
    start(station, deadline_seconds=60)
    turn(station)
    station.now += 100
    assert turn(station).state is RunState.STOPPED
    ask(station, "resume", at_once=2)
    assert [t.node_id for t in turn(station).open_turns] == [10]


def test_a_plan_shows_who_goes_together_and_counts_what_they_share_once(station: Station) -> None:
    alone = ask(station, "plan", selection={"everything": True})["plan"]
    together = ask(station, "plan", selection={"everything": True}, at_once=2)["plan"]
    assert isinstance(alone, dict)
    assert isinstance(together, dict)
    assert [node["batch"] for node in alone["nodes"]] == [1, 2, 3, 4, 5, 6]
    assert [node["batch"] for node in together["nodes"]] == [1, 1, 2, 2, 3, 3]
    # Three minutes for a machine, a minute and a half away, ten seconds' hold. The next machine
    # boots meanwhile, and takes longer. The second of a zone stops after the first.
    assert alone["seconds"] == pytest.approx(180 + 90 + 10 + 5 * 180)
    assert together["seconds"] == pytest.approx(180 + 90 + 10 + 90 + 2 * (180 + 90))
    assert (
        "With --at-once zone it would take about 15 min 10 s instead of 19 min 40 s: 3 parties "
        "instead of 6." in alone["notes"]
    )
    assert (
        "Each next machine boots while the node before comes back; one after the other it would "
        "take about 28 min instead of 19 min 40 s." in alone["notes"]
    )
    assert not any("--at-once" in note for note in together["notes"])


def test_where_the_budgets_open_a_plan_counts_what_they_share_and_no_second_stop(
    station: Station,
) -> None:
    opening = Station(policy=replace(POLICY, stops_together=True), cluster=station.cluster)
    alone = ask(opening, "plan", selection={"everything": True})["plan"]
    together = ask(opening, "plan", selection={"everything": True}, at_once="zone")["plan"]
    assert alone["seconds"] == pytest.approx(180 + 90 + 10 + 5 * 180)
    assert together["seconds"] == pytest.approx(180 + 90 + 10 + 2 * 180)


def test_one_whose_eviction_a_budget_would_refuse_holds_while_its_companion_is_out(
    station: Station,
) -> None:
    start(station, at_once=2)
    turn(station)
    first_leaves(station)
    name = station.cluster.pods[11].name
    station.cluster.disruption_budgets = (
        BudgetView(name="orders-kafka", pods=frozenset({name}), disruptions_allowed=0),
    )
    second = held_back(station)
    assert "orders-kafka lets no other pod go until one is Ready again" in second.reason


def test_room_that_another_has_asked_for_is_not_counted_as_ones_own(station: Station) -> None:
    start(station, at_once=2)
    turn(station)
    for id_ in ("i-0a", "i-1a"):
        incident = station.incident(id_)
        station.ledger.put(
            replace(
                incident,
                state=State.REPLACING,
                zone="us-east-1a",
                pool="broker",
                node_id=10 if id_ == "i-0a" else 11,
            )
        )
    first = station.incident("i-0a")
    # Written down, and the group not asked yet.
    station.ledger.put(replace(first, surge_to=3))
    look(station, "i-1a")
    assert station.incident("i-1a").surge_to == 4


def test_who_would_not_be_back_in_time_together_goes_alone(station: Station) -> None:
    window = Window(days=frozenset(DAYS), start_minute=9 * 60, duration_minutes=120)
    hours = Station(policy=replace(POLICY, maintenance=window), cluster=station.cluster)
    start(hours, at_once=2)
    # Five minutes are left: enough for the 4 min 40 s of one, not for a minute and a half more.
    hours.now += 3600 - 320
    run = turn(hours)
    assert [t.node_id for t in run.open_turns] == [10]
    assert any(
        note.text.startswith("Broker 11 does not go together with them. Broker 11 is expected")
        for note in run.notes
    )
