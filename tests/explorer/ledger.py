"""The ledger and its single documents in an explored world, kept as objects.

JSON was a quarter of a turn's time. The conditions are DynamoDB's, held by the suite that every
ledger passes (tests/unit/handlers/test_ledger.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from core.availability.lease import Lease
from core.ground.errors import Conflict
from core.incidents.record import Incident
from handlers.store.table import Record, Records
from tests.explorer import releases, rules
from tests.explorer.world import World
from tests.unit.handlers.in_memory import MemoryLedger


class ObjectLedger(MemoryLedger):
    """The ledger of whatever world `current` returns."""

    def __init__(self, current: Callable[[], World]) -> None:
        self._current = current

    @property
    def _leases(self) -> tuple[Lease, ...]:
        return self._current().leases

    @_leases.setter
    def _leases(self, leases: tuple[Lease, ...]) -> None:
        self._current().leases = leases
        rules.leased(self._current())

    def get(self, id_: str) -> Incident | None:
        world = self._current()
        held = world.incidents.get(id_)
        return held if held is None or not world.older else releases.as_read(world, held)

    def put(self, incident: Incident) -> Incident:
        written = self._replace(incident)
        self._current().filed -= {incident.id}
        return written

    def file(self, incident: Incident, expires_at: float | None) -> None:
        del expires_at
        self._replace(incident)
        self._current().filed |= {incident.id}

    def _replace(self, incident: Incident) -> Incident:
        world = self._current()
        held = world.incidents.get(incident.id)
        if (0 if held is None else held.version) != incident.version:
            raise Conflict(f"Incident {incident.id} was changed by another invocation.")
        written = replace(incident, version=incident.version + 1)
        world.incidents[incident.id] = (
            releases.as_written(world, written, held) if world.older else written
        )
        return written

    def open_incidents(self) -> tuple[Incident, ...]:
        world = self._current()
        found = (i for i in world.incidents.values() if i.open)
        return tuple(releases.as_read(world, i) for i in found) if world.older else tuple(found)

    def closing(self, most: int) -> tuple[Incident, ...]:
        world = self._current()
        found = (i for i in world.incidents.values() if not i.open and i.id not in world.filed)
        return tuple(found)[:most]

    def record_event(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        """Evidence, which nothing reads again."""

    def record_ignored(self, body: str, reason: str, now: float) -> None:
        """Evidence, which nothing reads again."""

    def close_event(self, event: str, said_at: float, now: float) -> None:
        del now
        closed = self._current().closed
        closed[event] = max(said_at, closed.get(event, said_at))

    def closed_at(self, event: str) -> float | None:
        return self._current().closed.get(event)


class ObjectRecords(Records):
    """Documents of whatever world `current` returns."""

    def __init__(self, current: Callable[[], World]) -> None:
        self._current = current

    def read(self, key: str) -> Record:
        version, document = self._current().records.get(key, (0, None))
        return Record(document, version)

    def write(self, key: str, document: Any, version: int) -> None:
        records = self._current().records
        if records.get(key, (0, None))[0] != version:
            raise Conflict(f"{key} was changed by another invocation.")
        records[key] = (version + 1, copy.deepcopy(document))
