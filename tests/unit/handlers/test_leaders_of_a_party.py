"""A party leads nothing when it leaves, and leads again once the last of it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.ground.errors import Conflict, StillwaterError
from core.incidents.actions import RestoreLeaders
from core.incidents.record import State
from core.views import ClusterView, Doubt
from handlers.incidents.act import perform
from handlers.incidents.shifts import Leadership, shift_in_force
from handlers.store.ledger import SHIFT_MESSAGE
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_budgets import (
    labels,
    lapse,
    once,
    opened,
    station_of_six,
)
from tests.unit.handlers.test_rotations import ask, start, turn
from tests.unit.handlers.walks import announce_hooks, launch

pytestmark = pytest.mark.usefixtures("quiet")

PARTY = {10, 11}


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> Station:
    return station_of_six(monkeypatch)


def leaders(cluster: FakeCluster) -> set[int | None]:
    return {p.leader for p in cluster.read().partitions}


def leaning() -> ClusterView:
    """Return a cluster in which zone a leads all, and zone b would."""
    view = healthy_kafka()
    rows = tuple(tuple(sorted(p.replicas)) for p in view.partitions)
    partitions = tuple(
        replace(p, replicas=row, leader=row[0])
        for p, row in zip(view.partitions, rows, strict=True)
    )
    return replace(view, partitions=partitions)


def test_nobody_of_a_party_is_opened_to_leave_before_others_lead_what_all_of_it_led(
    station: Station,
) -> None:
    assert leaders(station.cluster) >= PARTY
    opened(station)
    assert leaders(station.cluster).isdisjoint(PARTY)
    # The order itself was changed: an election alone would be undone within minutes.
    assert {p.replicas[0] for p in station.cluster.read().partitions}.isdisjoint(PARTY)
    moved = shift_in_force(station.records, "orders")
    assert set(moved.avoided.values()) == {frozenset(PARTY)}


def test_a_run_has_its_party_elected_itself(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its brokers have just started, and lead little by little (core.rotation.following)."""
    elected: list[bool] = []
    restore = Leadership.restore

    def noted(leadership: Leadership, cause: str, *, elect: bool) -> None:
        elected.append(elect)
        restore(leadership, cause, elect=elect)

    monkeypatch.setattr(Leadership, "restore", noted)
    opened(station)
    ids = ("i-0a", "i-1a")
    for _ in range(6):
        launch(station)
        announce_hooks(station)
        for id_ in ids:
            once(station, id_)
    for node_id, id_, new in zip(sorted(PARTY), ids, ("i-new1", "i-new2"), strict=True):
        assert station.incident(id_).state is State.DRAINING
        station.cluster.waiting_hooks.discard((id_, "drain"))
        station.cluster.place_pod(node_id, new)
    for _ in range(24):
        for id_ in ids:
            once(station, id_)
    assert {station.incident(id_).state for id_ in ids} == {State.RELEASED}
    assert elected == [False, False]


def test_what_is_given_back_without_an_election_is_preferred_and_does_not_lead_yet(
    station: Station,
) -> None:
    before = {p.name: p.replicas for p in station.cluster.read().partitions}
    opened(station)
    for incident in ("incident:i-0a", "incident:i-1a"):
        station.leadership.restore(incident, elect=False)
    assert {p.name: p.replicas for p in station.cluster.read().partitions} == before
    assert leaders(station.cluster).isdisjoint(PARTY)
    assert shift_in_force(station.records, "orders").nothing


def test_a_party_that_loses_its_lease_leads_again(station: Station) -> None:
    opened(station)
    lapse(station)
    station.ledger.take_lease("i-0b", station.now, 900, node_id=20)
    for id_ in ("i-0a", "i-1a"):
        once(station, id_)
    assert station.incident("i-0a").leaders_moved_at is None
    assert shift_in_force(station.records, "orders").nothing
    assert leaders(station.cluster) >= PARTY


def test_a_member_that_starts_keeps_nobody_from_leading_again(station: Station) -> None:
    """It answers with half a connection, and its own silence hides nothing of the others."""
    opened(station)
    station.cluster.kafka = replace(
        station.cluster.read(), doubts=(Doubt("Broker 11 did not answer.", about=11),)
    )
    station.leadership.restore("incident:i-0a")
    station.leadership.restore("incident:i-1a")
    assert shift_in_force(station.records, "orders").nothing


def test_silence_of_anybody_else_keeps_the_orders_as_they_are(station: Station) -> None:
    opened(station)
    station.cluster.kafka = replace(
        station.cluster.read(), doubts=(Doubt("Broker 20 did not answer.", about=20),)
    )
    with pytest.raises(StillwaterError, match="Broker 20 did not answer"):
        station.leadership.restore("incident:i-0a")
    assert shift_in_force(station.records, "orders").brokers == PARTY


@pytest.mark.parametrize("error", [Conflict("changed"), StillwaterError("not whole")], ids=str)
def test_leaders_that_cannot_be_given_back_at_an_incidents_end_are_asked_for_within_seconds(
    station: Station, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: Leadership, cause: str, *, elect: bool) -> None:
        raise error

    opened(station)
    monkeypatch.setattr(Leadership, "restore", refuse)
    incident = station.incident("i-0a")
    perform(incident, (RestoreLeaders(),), station.loop.effects, station.now)
    (delay,) = [delay for body, delay in station.ticks.sent if body == SHIFT_MESSAGE]
    assert 0 < delay < 15


def test_the_next_party_waits_until_the_last_one_leads_again(station: Station) -> None:
    """By the leaders of the moment the others would lead too much, and the party be cut."""
    start(station, at_once="zone")
    station.leadership.avoid("incident:i-of-yesterday", {20, 21})
    run = turn(station)
    assert not run.open_turns
    assert "(20, 21) are still to lead again" in run.reason
    station.leadership.restore("incident:i-of-yesterday")
    assert {t.node_id for t in turn(station).open_turns} == PARTY


def test_leaders_moved_for_a_zone_keep_no_party_back(station: Station) -> None:
    start(station, at_once="zone")
    station.leadership.avoid("zone:us-east-1c", {30, 31})
    assert turn(station).open_turns


def test_a_node_alone_waits_for_nobodys_leaders(station: Station) -> None:
    start(station)
    station.leadership.avoid("incident:i-of-yesterday", {20, 21})
    assert turn(station).open_turns


def test_an_incident_that_ends_without_its_own_last_turn_is_given_back_by_the_sweep(
    station: Station,
) -> None:
    opened(station)
    for incident in station.ledger.open_incidents():
        station.ledger.put(replace(incident, state=State.RETAINED))
    station.broom.sweep(station.now)
    assert SHIFT_MESSAGE in [body for body, _ in station.ticks.sent]
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert shift_in_force(station.records, "orders").nothing
    assert leaders(station.cluster) >= PARTY


def test_an_election_that_does_not_come_about_keeps_nobody_for_ever(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station.cluster, "elect", lambda _: None)
    moved = []
    reorder = station.cluster.reorder
    monkeypatch.setattr(
        station.cluster, "reorder", lambda orders: (moved.append(len(orders)), reorder(orders))
    )
    opened(station)
    assert labels(station)
    assert sum(moved) > 0
    assert leaders(station.cluster) >= PARTY  # a controlled shutdown moves those


def test_a_run_takes_fewer_where_the_others_would_lead_too_much(station: Station) -> None:
    start(station, at_once="zone")
    station.cluster.kafka = leaning()
    run = turn(station)
    assert [t.node_id for t in run.open_turns] == [10]
    assert any("would lead 6 partitions instead of 0" in note.text for note in run.notes)


def test_a_plan_says_that_a_party_is_more_than_the_others_can_stand_in_for(
    station: Station,
) -> None:
    station.cluster.kafka = leaning()
    planned = ask(station, "plan", selection={"everything": True}, at_once="zone")["plan"]
    assert isinstance(planned, dict)
    (said,) = [note for note in planned["notes"] if "stand in for" in note]
    assert said.startswith("Of 10, 11 as many go together as the others can stand in for. Without")


def test_a_party_is_not_opened_once_the_others_would_lead_too_much(station: Station) -> None:
    start(station, at_once="zone")
    turn(station)
    station.cluster.kafka = leaning()
    for _ in range(12):
        for id_ in ("i-0a", "i-1a"):
            once(station, id_)
        launch(station)
        announce_hooks(station)
        station.cluster.kafka = leaning()
    assert labels(station) == {}
    assert station.termination_handler.sent == []
    reasons = {note.reason for note in station.incident("i-0a").notes}
    assert any("would lead 6 partitions instead of 0" in reason for reason in reasons)
    assert [lease for lease in station.ledger.leases() if lease.out_at] == []
