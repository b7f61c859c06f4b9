"""The handlers' ports in memory: the ledger, records, archive, queue, channel and root volumes."""

import functools
import json
from dataclasses import dataclass, field, replace
from typing import Any

from core.availability.lease import Lease, LeaseDecision, begin, grant, release
from core.ground.errors import Conflict
from core.incidents.observation import RootTask
from core.incidents.record import Incident, from_json, to_json
from core.slack import Message, Thread
from handlers.adapters.aws import Queue
from handlers.adapters.slack import Posted
from handlers.adapters.templates import RootVolumes
from handlers.incidents.broom import Archive
from handlers.store.ledger import Ledger
from handlers.store.table import Record, Records


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

    def take_lease(self, holder: str, now: float, ttl_seconds: float, **of: Any) -> LeaseDecision:
        return self._kept(grant(self._leases, holder, now, ttl_seconds, **of))

    def begin_drain(self, holder: str, now: float, ttl_seconds: float, **of: Any) -> LeaseDecision:
        return self._kept(begin(self._leases, holder, now, ttl_seconds, **of))

    def _kept(self, decision: LeaseDecision) -> LeaseDecision:
        if decision.granted:
            self._leases = decision.leases
        return decision

    def drop_lease(self, holder: str, *, ended: bool = False) -> None:
        self._leases = release(self._leases, holder, ended=ended)

    def forget_leases(self) -> None:
        """Somebody deletes the lease's item by hand."""
        self._leases = ()


class MemoryRecords(Records):
    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, str]] = {}
        self.writes = 0

    def read(self, key: str) -> Record:
        version, document = self._kept.get(key, (0, "null"))
        return Record(json.loads(document), version)

    def write(self, key: str, document: Any, version: int) -> None:
        if self._kept.get(key, (0, ""))[0] != version:
            raise Conflict(f"{key} was changed by another invocation.")
        self._kept[key] = (version + 1, json.dumps(document))
        self.writes += 1


class MemoryArchive(Archive):
    def __init__(self) -> None:
        self.objects: dict[str, str] = {}

    def store(self, key: str, line: str) -> None:
        self.objects[key] = line


class FakeQueue(Queue):
    """Messages in the order they were sent, each with its delay; pages lie beside them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []
        self.pages: list[dict[str, str]] = []

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        if body.startswith('{"page":'):
            self.pages.append(json.loads(body))
        else:
            self.sent.append((body, delay_seconds))


@dataclass
class FakeChannel:
    """Messages in the order they were posted: (key, thread, message)."""

    messages: list[tuple[str, str | None, Message]] = field(default_factory=list)
    edits: int = 0

    def post(self, key: str, message: Message, thread: Posted | None) -> Posted:
        self.messages.append((key, thread.ts if thread else None, message))
        return Posted("C0HARBOUR", f"{len(self.messages)}.000")

    def edit(self, where: Posted, key: str, message: Message) -> None:
        position = int(float(where.ts)) - 1
        self.messages[position] = (*self.messages[position][:2], message)
        self.edits += 1

    def find(self, key: str, since: float, thread: Posted | None) -> Posted | None:
        for number, (known, _, _) in enumerate(self.messages, start=1):
            if known == key:
                return Posted("C0HARBOUR", f"{number}.000")
        return None

    @property
    def keys(self) -> list[str]:
        return [key for key, _, _ in self.messages]


class MemoryThreads:
    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}

    def get(self, incident_id: str) -> Thread:
        return self._threads.get(incident_id, Thread(incident_id=incident_id))

    def put(self, thread: Thread) -> Thread:
        if self.get(thread.incident_id).version != thread.version:
            raise Conflict(f"The thread of {thread.incident_id} is being written by another.")
        written = replace(thread, version=thread.version + 1)
        self._threads[thread.incident_id] = written
        return written


@dataclass
class FakeRoots(RootVolumes):
    """EC2, as far as root volumes go."""

    tasks: dict[str, RootTask] = field(default_factory=dict)  # by incident
    asked: list[tuple[str, str, bool]] = field(default_factory=list)
    refuses_trial: str = ""  # its words
    refuses: str = ""

    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        return self.tasks.get(incident_id)

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        self.asked.append((incident_id, image_id, trial))
        if trial:
            return self.refuses_trial or None
        if self.refuses:
            return self.refuses
        self.tasks.setdefault(incident_id, RootTask(f"replacevol-{len(self.tasks)}", "pending"))
        return None

    def go(self, incident_id: str, state: str) -> None:
        self.tasks[incident_id] = RootTask(self.tasks[incident_id].id, state)
