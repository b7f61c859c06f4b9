"""Stores what Slack was told of each incident, in the ledger's table: `story#<incident id>`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from core.slack.incident_thread import Thread, from_json, to_json
from handlers.store.ledger import KEPT_DAYS
from handlers.store.table import VersionedTable


class Threads(Protocol):
    """The threads, each written over the version it was read at."""

    def get(self, incident_id: str) -> Thread:
        """Return a thread as last written; one never written is new, at version 0."""

    def put(self, thread: Thread) -> Thread:
        """Write a thread; raises Conflict when somebody has written since it was read."""


class DynamoThreads:
    """Threads in DynamoDB."""

    def __init__(self, table: VersionedTable) -> None:
        self._table = table

    def get(self, incident_id: str) -> Thread:
        item = self._table.item(f"story#{incident_id}")
        if item is None:
            return Thread(incident_id=incident_id)
        return replace(from_json(item["document"]["S"]), version=int(item["version"]["N"]))

    def put(self, thread: Thread) -> Thread:
        item = {
            "pk": {"S": f"story#{thread.incident_id}"},
            "version": {"N": str(thread.version + 1)},
            "document": {"S": to_json(thread)},
            # An incident that is held for months is told again in a new thread: no harm.
            "expires_at": {"N": str(int(time.time()) + KEPT_DAYS * 86_400)},
        }
        conflict = f"The thread of {thread.incident_id} is being told by another invocation."
        self._table.write(item, thread.version, conflict)
        return replace(thread, version=thread.version + 1)
