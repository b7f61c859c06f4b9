"""The ledger's in-memory twin: the same promises, kept under the same test suite."""

from __future__ import annotations

import functools
from dataclasses import replace

from core.availability.lease import Lease, LeaseDecision, begin, grant, release
from core.ground.errors import Conflict
from core.incidents.record import Incident, from_json, to_json
from handlers.store.ledger import Ledger


@functools.lru_cache(maxsize=1024)
def _read(version: int, document: str) -> Incident:
    """Return what a document holds; an incident is frozen, so it is read of it once."""
    return replace(from_json(document), version=version)


class MemoryLedger(Ledger):
    def __init__(self) -> None:
        self._incidents: dict[str, tuple[int, str]] = {}
        # As the table's index has them: those that are over are not read to find the others.
        self._open: dict[str, None] = {}
        self._leases: tuple[Lease, ...] = ()
        self.events: dict[str, tuple[str, str]] = {}
        self.filed: dict[str, float | None] = {}
        self.ignored: dict[tuple[str, str], float] = {}
        self.closed: dict[str, float] = {}

    def get(self, id_: str) -> Incident | None:
        stored = self._incidents.get(id_)
        return None if stored is None else _read(*stored)

    def put(self, incident: Incident) -> Incident:
        held = self._incidents.get(incident.id, (0, ""))[0]
        if held != incident.version:
            raise Conflict(f"Incident {incident.id} was changed by another invocation.")
        self._incidents[incident.id] = (held + 1, to_json(incident))
        if incident.open:
            self._open.setdefault(incident.id)
        else:
            self._open.pop(incident.id, None)
        self.filed.pop(incident.id, None)
        written = self.get(incident.id)
        assert written is not None
        return written

    def open_incidents(self) -> tuple[Incident, ...]:
        found = (self.get(id_) for id_ in self._open)
        return tuple(i for i in found if i is not None)

    def closing(self, most: int) -> tuple[Incident, ...]:
        found = (self.get(id_) for id_ in self._incidents if id_ not in self.filed)
        return tuple(i for i in found if i is not None and not i.open)[:most]

    def file(self, incident: Incident, expires_at: float | None) -> None:
        self.put(incident)
        self.filed[incident.id] = expires_at

    def record_event(self, dedupe_key: str, body: str, outcome: str, now: float) -> None:
        self.events.setdefault(dedupe_key, (body, outcome))

    def record_ignored(self, body: str, reason: str, now: float) -> None:
        self.ignored.setdefault((body, reason), now)

    def close_event(self, event: str, said_at: float, now: float) -> None:
        self.closed[event] = max(said_at, self.closed.get(event, said_at))

    def closed_at(self, event: str) -> float | None:
        return self.closed.get(event)

    def leases(self) -> tuple[Lease, ...]:
        return self._leases

    def take_lease(
        self,
        holder: str,
        now: float,
        ttl_seconds: float,
        *,
        party: str | None = None,
        node_id: int | None = None,
        out: bool = False,
    ) -> LeaseDecision:
        decision = grant(
            self._leases, holder, now, ttl_seconds, party=party, node_id=node_id, out=out
        )
        if decision.granted:
            self._leases = decision.leases
        return decision

    def begin_drain(
        self,
        holder: str,
        now: float,
        ttl_seconds: float,
        *,
        party: str | None = None,
        node_id: int | None = None,
        forced: bool = False,
    ) -> LeaseDecision:
        decision = begin(
            self._leases, holder, now, ttl_seconds, party=party, node_id=node_id, forced=forced
        )
        if decision.granted:
            self._leases = decision.leases
        return decision

    def drop_lease(self, holder: str, *, ended: bool = False) -> None:
        self._leases = release(self._leases, holder, ended=ended)

    def forget_leases(self) -> None:
        """Somebody deletes the lease's item by hand."""
        self._leases = ()
