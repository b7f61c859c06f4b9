"""Somebody has edited a document of the ledger's, or a newer release gave it another shape.

Nothing that reads it ends with a traceback: what cannot be read is silence, so hooks beat on, the
sweep does all the rest, and nobody is drained because of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core.ground.errors import StillwaterError
from tests.every_case import every_case
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce

pytestmark = pytest.mark.usefixtures("quiet")
FIELDS = ("incidents", "pause", "turns", "options", "avoided", "original")
SHAPES: Mapping[str, Any] = {
    "list": [],
    "list of one": [{"zone": 3}],
    "text": "edited by hand",
    "number": 7,
    "nothing it knows": {"edited": True},
    "nulls": dict.fromkeys(
        ("incidents", "pause", "turns", "options", "avoided", "original", "topics")
    ),
    "numbers": dict.fromkeys(FIELDS, 7),
}
KEYS = (
    *("freezes#orders", "pause#orders", "rotation#orders", "leaders#orders"),
    *("protected#orders", "throttle#orders", "told", "cursor#sweep"),
    *("lasting#orders#not_given_back", "lasting#orders#sweep_blind"),
)


def edited() -> Iterator[tuple[str, str, Any]]:
    for key in KEYS:
        yield from ((key, name, shape) for name, shape in SHAPES.items())


@every_case("key, name, shape", edited, ids=lambda each: each if isinstance(each, str) else "")
def test_a_document_of_another_shape_ends_nobodys_turn(key: str, name: str, shape: Any) -> None:
    station = announce(Station())
    station.records._kept[key] = (1, json.dumps(shape))
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    before, refused = len(station.cluster.beats), 0
    for _ in range(4):
        station.now += station.policy.heartbeat_timeout_seconds / 2
        try:
            station.broom.sweep(station.now)
        except StillwaterError:
            refused += 1  # Its alarm rings, and everything else was done.
        station.reception.wake(station.incident())
        station.loop.turn(station.ticks.sent[-1][0], station.now)
    incident = station.incident()
    assert refused in {0, 4}
    assert not incident.open or len(station.cluster.beats) > before
    if key == "pause#orders" and name not in {"list", "nulls"}:
        assert station.forwarded == []
    assert incident.instance_id == OLD
