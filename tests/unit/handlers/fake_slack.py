"""A channel in memory that posts and edits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from core.ground.errors import Conflict
from core.slack import Message, Thread
from handlers.adapters.slack import Posted


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
            raise Conflict(f"The thread of {thread.incident_id} is being told by another.")
        written = replace(thread, version=thread.version + 1)
        self._threads[thread.incident_id] = written
        return written
