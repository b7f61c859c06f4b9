"""Keeps the state of every AWS resource of a program: what it set is what it reads back.

Each resource is one file, so the stored values win over what moto drops, and a type that moto lacks
is known here alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.values import Properties, without_assets


def folder(resource_type: str) -> str:
    """Return a type's token as a name of a directory."""
    return resource_type.replace(":", "_").replace("/", "_")


class ResourceStore:
    """Files of resource states under one directory, each written at once or not at all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def _file(self, resource_type: str, resource_id: str) -> Path:
        digest = hashlib.sha256(resource_id.encode()).hexdigest()[:32]
        return self.directory / folder(resource_type) / f"{digest}.json"

    def put(self, resource_type: str, resource_id: str, state: Mapping[str, Any]) -> None:
        target = self._file(resource_type, resource_id)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".new")
        with os.fdopen(handle, "w") as file:
            json.dump({"id": resource_id, "state": without_assets(state)}, file)
        Path(name).replace(target)

    def get(self, resource_type: str, resource_id: str) -> Properties | None:
        try:
            stored = json.loads(self._file(resource_type, resource_id).read_text())
        except FileNotFoundError:
            return None
        state: Properties = stored["state"]
        return state

    def everything(self) -> Iterator[tuple[str, str, Properties]]:
        """Yield the folder of the type, the id and the state of every resource."""
        for file in sorted(self.directory.glob("*/*.json")):
            try:
                stored = json.loads(file.read_text())
            except FileNotFoundError:  # deleted meanwhile
                continue
            yield file.parent.name, stored["id"], stored["state"]

    def remove(self, resource_type: str, resource_id: str) -> None:
        self._file(resource_type, resource_id).unlink(missing_ok=True)
