"""Hooks that refuse, readings that are blind: never taken for done, never left unseen."""

import json
from dataclasses import replace
from itertools import permutations

import pytest
from botocore.exceptions import EndpointConnectionError

from core.events import Interruption, parse
from core.ground.errors import Conflict, StillwaterError
from core.incidents.actions import CompleteHook, HookResult
from core.incidents.decide import BLIND_SECONDS
from core.incidents.joining import merge, open_incident
from core.incidents.record import State
from core.views import Doubt
from handlers.incidents.act import perform
from handlers.incidents.shifts import Leadership
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.in_memory import MemoryRecords
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.walks import announce, drain_node, replace_machine


def back(station: Station) -> Station:
    """The broker is whole again on its new node, and the gate about to open."""
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
    return station


def ticks(station: Station, most: int = 8) -> None:
    for _ in range(most):
        if not station.incident().open:
            return
        station.tick()


def said_at(body: str, time: str) -> str:
    return json.dumps({**json.loads(body), "time": time})


def test_a_hook_that_refuses_the_token_is_completed_without_it(station: Station) -> None:
    replace_machine(station)
    station.cluster.hook_tokens = {(OLD, "drain"): "of another action", (OLD, "gate"): "same"}
    ticks(back(station))
    assert station.incident().state is State.RELEASED
    assert station.cluster.waiting_hooks == set()


def test_the_group_shows_who_is_released(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    drain_node(station)
    monkeypatch.setattr(station.cluster, "complete_hook", lambda *_: False)
    back(station)
    assert station.tick(20).incident().state is State.GATING
    assert "its hooks are completed again" in station.incident().reason
    assert station.ledger.leases(), "nobody else goes before the group shows it"
    assert station.incident().pages == ()
    station.now += 301
    assert station.tick().incident().pages == ("hook_refuses",)
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    assert station.tick().incident().state is State.RETAINED
    assert "retained" in station.incident().pages


def test_an_instance_that_is_in_service_after_all_is_not_called_released(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain_node(station)
    monkeypatch.setattr(station.cluster, "complete_hook", lambda *_: False)
    station.cluster.set_lifecycle(OLD, "InService")
    back(station)
    station.now += 301
    ticks(station)
    assert station.incident().state is State.RIDDEN_THROUGH
    assert station.incident().pages == ("not_leaving",)


def test_the_token_announced_last_counts_in_whatever_order_they_arrive() -> None:
    bodies = (
        said_at(hook_event("drain", token="first"), "2026-11-20T09:00:00Z"),
        said_at(hook_event("drain", token="second"), "2026-11-20T09:30:00Z"),
        said_at(hook_event("drain", token="third"), "2026-11-20T09:59:00Z"),
    )
    for order in permutations(bodies):
        found = [i for body in order for i in parse(body) if isinstance(i, Interruption)]
        incident = open_incident(found[0], START)
        for later in found[1:]:
            incident = merge(incident, later, START)
        assert incident.hooks == {"drain": "third"}
        assert incident.drain_event == bodies[2]


def test_the_sweep_pages_and_reopens_what_was_let_go_and_still_stands(station: Station) -> None:
    ticks(back(drain_node(station)))
    assert station.incident().state is State.RELEASED
    for lifecycle in ("Terminating:Wait", "Terminating:Retained"):
        station.cluster.set_lifecycle(OLD, lifecycle)
    station.broom.sweep(station.now + 60)
    assert station.ticks.pages == []
    station.broom.sweep(station.now + 301)
    station.broom.sweep(station.now + 302)
    assert [sent["page"] for sent in station.ticks.pages] == ["let_go_and_stands"]
    assert station.incident(f"{OLD}.2").open


def test_completing_an_incident_carried_on_completes_nothing(station: Station) -> None:
    """A function that sleeps wakes when the next round stands in the same hooks."""
    announce(station)
    asleep = station.incident()
    station.ledger.put(replace(asleep, ticked_at=station.now))
    with pytest.raises(Conflict):
        perform(
            asleep, (CompleteHook("gate", HookResult.CONTINUE),), station.loop.effects, station.now
        )
    assert station.cluster.completed == []


def test_a_failing_effect_pages_once(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(station)

    def refuse(*_: object) -> bool:
        raise EndpointConnectionError(endpoint_url="http://autoscaling")

    monkeypatch.setattr(station.cluster, "complete_hook", refuse)
    station.now += station.policy.hold_limit_seconds + 1
    assert station.tick(5).incident().open
    assert [sent["page"] for sent in station.ticks.pages] == ["hold_limit"]
    monkeypatch.undo()
    assert station.tick().incident().state is State.RETAINED
    assert station.incident().pages.count("hold_limit") == 1


HIDDEN = Doubt(
    "Kafka hides topic payments (TopicAuthorizationFailed); grant the functions' user Describe on "
    "every topic.",
    refused=True,
)


def test_nothing_is_drained_on_a_reading_that_hides_a_topic(station: Station) -> None:
    station.cluster.kafka = replace(healthy_kafka(), doubts=(HIDDEN,))
    replace_machine(station)
    incident = station.tick(5).incident()
    assert incident.state is State.HOLDING
    assert station.forwarded == []
    assert "grant the functions' user Describe on every topic" in incident.reason
    assert incident.pages == ("kafka_rights",)


def test_a_reading_that_may_mend_itself_calls_nobody(station: Station) -> None:
    doubt = Doubt("Topic t is known to one broker and not to another.")
    station.cluster.kafka = replace(healthy_kafka(), doubts=(doubt,))
    replace_machine(station)
    assert station.tick(5).incident().state is State.HOLDING
    assert station.incident().pages == ()
    station.cluster.kafka = healthy_kafka()
    assert station.tick_until_quiet().incident().state is State.DRAINING


def test_a_doubt_that_lasts_calls_once_and_one_that_ends_is_gone(station: Station) -> None:
    doubt = Doubt("Topic t is known to one broker and not to another.")
    station.cluster.kafka = replace(healthy_kafka(), doubts=(doubt,))
    replace_machine(station)
    station.tick()
    begun = station.incident().doubted_since
    assert begun is not None
    while station.now <= begun + BLIND_SECONDS:
        assert station.incident().pages == ()
        station.now += 120
        station.tick()
    assert station.tick().incident().pages == ("doubt",)
    assert station.incident().state is State.HOLDING
    station.cluster.kafka = healthy_kafka()
    assert station.tick().incident().doubted_since is None


def test_a_kafka_that_answers_nothing_calls_a_person_once_it_has_lasted(station: Station) -> None:
    station.cluster.kafka = None
    replace_machine(station)
    station.tick()
    begun = station.incident().doubted_since
    assert begun is not None
    while station.now <= begun + BLIND_SECONDS:
        assert station.incident().pages == ()
        station.now += 120
        station.tick()
    assert station.tick().incident().pages == ("kafka_silent",)
    assert station.incident().state is State.HOLDING
    station.cluster.kafka = healthy_kafka()
    assert station.tick().incident().doubted_since is None


def test_leaders_stay_where_a_reading_hides_a_partition(station: Station) -> None:
    station.cluster.kafka = replace(healthy_kafka(), doubts=(HIDDEN,))
    leadership = Leadership(station.cluster, MemoryRecords(), "orders")
    with pytest.raises(StillwaterError, match="hides topic payments"):
        leadership.avoid("test", [10])
    assert station.cluster.reordered == []


def test_a_partition_that_is_moving_keeps_its_movers_order(station: Station) -> None:
    whole = healthy_kafka()
    led = [p for p in whole.partitions if p.leader == 10]
    station.cluster.kafka = replace(whole, reassigning=(led[0].name,))
    station.leadership.avoid("test", [10])
    (orders,) = station.cluster.reordered
    assert orders.keys() == {(p.topic, p.partition) for p in led[1:]}
