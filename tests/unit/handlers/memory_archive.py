"""The archive in memory: a bucket that keeps what was last stored under a key."""

from __future__ import annotations

from handlers.incidents.broom import Archive


class MemoryArchive(Archive):
    def __init__(self) -> None:
        self.objects: dict[str, str] = {}

    def store(self, key: str, line: str) -> None:
        self.objects[key] = line
