"""Records in memory: the same promises as DynamoDB's."""

from __future__ import annotations

import json
from typing import Any

from core.ground.errors import Conflict
from handlers.store.table import Record, Records


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
