from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from core.availability.lease import valid_leases
from core.incidents.actions import HookResult
from core.incidents.record import State
from handlers import tick
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.failing import Killed, kill
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce, drain_node, replace_machine

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_tick_delivered_twice_is_taken_once(station: Station) -> None:
    announce(station)
    body, _ = station.ticks.sent[-1]
    station.tick()
    count, version = len(station.ticks.sent), station.incident().version
    station.loop.turn(body, station.now)
    assert len(station.ticks.sent) == count
    assert station.incident().version == version


def test_a_tick_of_an_incident_that_is_over_sends_no_other(station: Station) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=State.RELEASED))
    count = len(station.ticks.sent)
    station.tick()
    assert len(station.ticks.sent) == count


def test_a_tick_of_an_unknown_incident_ends_there(station: Station) -> None:
    station.loop.turn(json.dumps({"incident_id": "i-0x", "version": 1}), station.now)
    assert station.ticks.sent == []


def test_a_stale_tick_carries_on_once_nobody_else_does(station: Station) -> None:
    announce(station)
    body, _ = station.ticks.sent[-1]
    station.ledger.put(replace(station.incident(), ticked_at=station.now))  # claimed, then died
    station.loop.turn(body, station.now + 10)
    assert station.incident().ticked_at == station.now
    station.loop.turn(body, station.now + 51)
    assert station.incident().ticked_at == station.now + 51


def test_a_failed_action_is_decided_anew(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(station)
    station.cluster.join(NEW)
    original = station.termination_handler.send
    failing = EndpointConnectionError(endpoint_url="http://sqs")

    def refuse(body: str, *, delay_seconds: float = 0.0) -> None:
        raise failing

    monkeypatch.setattr(station.termination_handler, "send", refuse)
    station.tick_until_quiet()
    assert station.incident().state is State.HOLDING
    assert station.incident().forwarded is None
    monkeypatch.setattr(station.termination_handler, "send", original)
    station.tick_until_quiet()
    assert station.incident().state is State.DRAINING
    assert len(station.forwarded) == 1


def test_a_drain_is_not_forwarded_when_its_lease_is_refused_after_all(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(station)
    station.cluster.join(NEW)
    while not station.ledger.leases():
        station.tick()
    read = station.cluster.read

    def stolen(about: object) -> object:
        station.ledger.drop_lease(OLD)
        station.ledger.take_lease("i-0other", station.now, 900)
        return read()

    lease = station.ledger.leases()
    monkeypatch.setattr(station.cluster, "read", stolen)
    monkeypatch.setattr(station.ledger, "leases", lambda: lease)  # read before it was stolen
    station.tick()
    assert station.forwarded == []
    assert station.incident().state is State.HOLDING


def test_a_lease_taken_for_an_incident_that_has_ended_meanwhile_is_given_back(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(station)
    station.cluster.join(NEW)
    take = station.ledger.take_lease

    def overtaken(holder: str, now: float, seconds: float, **said: Any) -> object:
        station.ledger.put(replace(station.incident(), state=State.RELEASED))
        return take(holder, now, seconds, **said)

    monkeypatch.setattr(station.ledger, "take_lease", overtaken)
    while station.incident().open:
        station.tick()
    assert not valid_leases(station.ledger.leases(), station.now)


def test_a_tick_of_an_incident_that_is_over_gives_its_lease_back(station: Station) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=State.RELEASED))
    station.ledger.take_lease(OLD, station.now, 900)
    station.tick()
    assert not valid_leases(station.ledger.leases(), station.now)


def test_a_warning_during_a_tick_counts(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(station)
    nodes = station.cluster.nodes

    def interrupted() -> object:
        monkeypatch.setattr(station.cluster, "nodes", nodes)
        station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
        return nodes()

    monkeypatch.setattr(station.cluster, "nodes", interrupted)
    station.tick()
    assert station.ticks.sent[-1][1] == 0
    assert station.incident().urgent
    station.tick()
    assert len(station.forwarded) == 1


def test_an_invocation_believed_dead_does_not_undo_what_its_successor_did(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain_node(station)
    station.cluster.place_pod(10, NEW)
    nodes = station.cluster.nodes

    def overtaken() -> object:
        current = station.incident()
        station.ledger.put(replace(current, state=State.RETAINED))
        return nodes()

    monkeypatch.setattr(station.cluster, "nodes", overtaken)
    count = len(station.ticks.sent)
    station.tick()
    assert station.incident().state is State.RETAINED
    assert len(station.ticks.sent) == count


def test_a_lost_drain_announcement_is_replaced_by_one_like_it(station: Station) -> None:
    station.cluster.terminate(OLD)
    station.announce(hook_event("gate"))
    station.cluster.join(NEW)
    station.tick_until_quiet()
    (forwarded,) = station.forwarded
    assert forwarded["EC2InstanceId"] == OLD
    assert forwarded["LifecycleHookName"] == "drain"
    assert forwarded["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"


def surviving(station: Station, step) -> None:  # type: ignore[no-untyped-def]
    """Run a step; a death is followed, a minute later, by the sweep and what it sends."""
    try:
        step()
    except Killed:
        station.sweep(60)


@every_case("after", [False, True])
@every_case("at", range(1, 37))
def test_dying_at_any_effect_is_survived(at: int, *, after: bool) -> None:
    station = Station()
    ledger, cluster = station.ledger, station.cluster
    calls = [(ledger, name) for name in ("put", "take_lease", "drop_lease")]
    calls += [(queue, "send") for queue in (station.ticks, station.termination_handler)]
    calls += [(cluster, name) for name in ("heartbeat", "complete_hook")]
    kill(at, calls, after=after)
    station.cluster.terminate(OLD)
    for body in (hook_event("drain"), hook_event("gate")):
        surviving(station, lambda body=body: station.announce(body))
    station.cluster.join(NEW)
    for _ in range(30):
        if station.forwarded and NEW not in {p.node_name for p in station.cluster.pods.values()}:
            station.cluster.place_pod(10, NEW)
            station.cluster.waiting_hooks.discard((OLD, "drain"))
        if station.ledger.get(OLD) is not None and not station.incident().open:
            break
        surviving(station, station.tick)
    assert station.incident().state is State.RELEASED
    assert (OLD, "gate", HookResult.CONTINUE.value) in station.cluster.completed
    assert not station.ledger.leases()
    # A crash between sending and recording is the one case that may send the same event again.
    assert len({body for body, _ in station.termination_handler.sent}) == 1


def test_batches_report_the_failed_ticks(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_machine(station)
    monkeypatch.setattr(tick, "_loop", lambda: station.loop)
    monkeypatch.setattr(tick.time, "time", lambda: station.now + 6)
    records = [
        {"messageId": f"m{n}", "body": body, "eventSource": "aws:sqs", "attributes": {}}
        for n, body in enumerate((station.ticks.sent[-1][0], "not a tick"))
    ]
    answer = tick.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert station.incident().ticked_at == station.now + 6
