"""Who drains a node may wait for ever: a person hears of it once Kafka has refused for long."""

from __future__ import annotations

import pytest

from core.incidents.joining import Pause
from core.incidents.record import State
from handlers.store.documents import Pauses
from tests.unit.handlers.asking import Door
from tests.unit.handlers.fakes import NEW
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.karpenter_machines import (
    KARPENTER,
    bring_node,
    delete_claim,
    end,
    of_karpenter,
)


@pytest.fixture
def door() -> Door:
    """Karpenter ends a node, and Kafka does not let its broker go."""
    door = of_karpenter(Door())
    bring_node(door, NEW)
    end(door, delete_claim())
    door.station.cluster.kafka = healthy_kafka(out=30)
    assert not door.ask(user=KARPENTER).allowed
    for _ in range(4):
        door.station.tick()
    assert door.station.incident().state is State.HOLDING
    return door


def test_a_drain_that_kafka_refuses_for_long_calls_a_person_once(door: Door) -> None:
    station = door.station
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    (page,) = [page for page in station.ticks.pages if page["page"] == "waits_long"]
    assert "broker 30 is fenced" in page["reason"]


def test_a_drain_that_a_pause_keeps_is_nobodys_news(door: Door) -> None:
    station = door.station
    pause = Pause("ann", "maintenance", station.now)
    Pauses(station.records, "orders").write(pause)
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    assert station.ticks.pages == []
