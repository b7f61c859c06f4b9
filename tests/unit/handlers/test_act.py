"""act: a drain is started by whoever carries the incident now, and by nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.availability.lease import valid_leases
from core.ground.errors import Conflict
from core.incidents.actions import ForwardDrain, TakeLease, TerminateInGroup
from core.incidents.record import Release, State
from handlers.adapters.aws import tick_message
from handlers.incidents.act import LONGEST_BEFORE_ONCE_SECONDS, LONGEST_TURN_SECONDS, perform
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import Station
from tests.unit.operator_at_work import FINISHED


@pytest.fixture
def station() -> Station:
    made = Station()
    made.cluster.terminate(OLD)
    made.announce(hook_event("drain"))
    return made


def test_a_drain_is_forwarded_by_the_invocation_that_carries_the_incident(
    station: Station,
) -> None:
    perform(station.incident(), (TakeLease(), ForwardDrain()), station.loop.effects, station.now)
    assert len(station.forwarded) == 1


def test_a_drain_rests_on_a_reading_of_this_minute(station: Station) -> None:
    """The lease still stands; what was read of Kafka before the sleep does not."""
    incident, effects = station.incident(), station.loop.effects
    perform(incident, (TakeLease(),), effects, station.now)
    read_at, station.now = station.now, station.now + LONGEST_TURN_SECONDS + 1
    with pytest.raises(Conflict, match="was read 61 s ago"):
        perform(incident, (ForwardDrain(),), effects, read_at)
    assert station.forwarded == []
    assert [lease.out_at for lease in station.ledger.leases()] == [None]


def test_a_roll_that_begins_after_the_decision_stops_its_drain(station: Station) -> None:
    """Strimzi's operator is read once more directly before a drain is sent."""
    cluster, effects = station.cluster, station.loop.effects
    going = replace(station.incident(), node_id=10, pod_name=cluster.pods[10].name)
    cluster.kafka_conditions = replace(FINISHED, generation_observed=False)
    with pytest.raises(Conflict, match="has not finished with the present description"):
        perform(going, (TakeLease(), ForwardDrain()), effects, station.now)
    cluster.kafka_conditions, cluster.pods[20] = FINISHED, replace(cluster.pods[20], stopping=True)
    with pytest.raises(Conflict, match="no incident of ours asked for that"):
        perform(going, (TakeLease(), ForwardDrain()), effects, station.now)
    assert station.forwarded == []
    assert [lease.out_at for lease in station.ledger.leases()] == [None]


@pytest.mark.parametrize("after", [ForwardDrain(), TerminateInGroup(decrement=False)])
def test_a_lease_that_is_refused_ends_the_turn_before_anything_that_needs_it(
    station: Station, after: ForwardDrain | TerminateInGroup
) -> None:
    station.ledger.take_lease("i-other", station.now, 900.0, node_id=20)
    station.cluster.set_lifecycle(OLD, "InService")
    with pytest.raises(Conflict, match="holds the lease"):
        perform(station.incident(), (TakeLease(), after), station.loop.effects, station.now)
    assert (station.forwarded, station.cluster.terminated) == ([], [])


@pytest.mark.parametrize("lasted", [LONGEST_BEFORE_ONCE_SECONDS + 1, 46.0, 57.0])
def test_a_turn_that_wakes_late_asks_for_nothing_that_cannot_be_repeated(
    station: Station, lasted: float
) -> None:
    """The sweep has given the incident to another by then, who asked for the same."""
    station.cluster.set_lifecycle(OLD, "InService")
    read_at, station.now = station.now, station.now + lasted
    once = TerminateInGroup(decrement=True)
    with pytest.raises(Conflict, match="must not be asked twice"):
        perform(station.incident(), (TakeLease(), once), station.loop.effects, read_at)
    assert station.cluster.asked_to_terminate == []


def test_an_invocation_that_was_overtaken_forwards_nothing(station: Station) -> None:
    overtaken = station.incident()
    station.ledger.put(replace(overtaken, ticked_at=station.now))
    with pytest.raises(Conflict, match="was changed by another invocation"):
        perform(overtaken, (ForwardDrain(),), station.loop.effects, station.now)
    assert station.forwarded == []


def test_an_invocation_that_was_overtaken_terminates_nothing(station: Station) -> None:
    overtaken = station.incident()
    station.cluster.set_lifecycle(OLD, "InService")
    station.ledger.put(replace(overtaken, ticked_at=station.now))
    with pytest.raises(Conflict):
        perform(overtaken, (TerminateInGroup(decrement=True),), station.loop.effects, station.now)
    assert station.cluster.terminated == []


@pytest.mark.parametrize(("by", "left"), [(None, []), ("ada", [OLD])])
def test_a_lease_renewed_for_an_incident_that_has_seen_its_drain_end_is_given_back(
    station: Station, by: str | None, left: list[str]
) -> None:
    asked = None if by is None else Release(by=by, at=station.now)
    over = station.ledger.put(replace(station.incident(), state=State.RELEASED, release=asked))
    station.ledger.take_lease(over.id, station.now, 900.0, node_id=10, out=True)
    station.loop.turn(tick_message(over.id, over.version - 1), station.now)
    held = valid_leases(station.ledger.leases(), station.now)
    assert [each.holder for each in held] == left
