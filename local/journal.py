"""The twin's journal: what its processes did, one JSON line per fact, for the demo's narrative.

Several processes write it at once. A line shorter than a page, appended with O_APPEND in one
write, is never mixed with another's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.place import Place

FILE_NAME = "events.jsonl"
# A journal's `write`, as those have it who only write.
Write = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one twin."""

    place: Place

    def write(self, source: str, event: str, **fields: object) -> None:
        """Append one fact: {"at": epoch seconds, "source", "event", ...fields}."""
        entry = {"at": time.time(), "source": source, "event": event, **fields}
        line = json.dumps(entry, default=str).encode() + b"\n"
        handle = os.open(self.place.path(FILE_NAME), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def read(place: Place) -> list[dict[str, Any]]:
    """Return every fact written so far in the order of writing, without an unfinished last line."""
    try:
        text = place.path(FILE_NAME).read_text()
    except FileNotFoundError:
        return []
    complete = text.rpartition("\n")[0]
    return [json.loads(line) for line in complete.splitlines()]
