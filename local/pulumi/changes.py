"""Compares two descriptions of a resource, property by property.

The engine shows each change by its path and asks which of them mean a replacement; a change it
is not told about in detail is shown as the whole resource.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from local.values import Properties

_PLAIN_KEY = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$]*$")
_ABSENT = object()


class ChangeKind(Enum):
    """How a property changed."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property that changed; `path` is in the engine's notation."""

    path: str
    kind: ChangeKind
    replaces: bool = False

    @property
    def top(self) -> str:
        """The property of the resource in which the change lies."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def _child(path: str, key: str) -> str:
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, ChangeKind]]:
    if old is _ABSENT or old is None:
        if new is not _ABSENT and new is not None:
            yield path, ChangeKind.ADD
    elif new is _ABSENT or new is None:
        yield path, ChangeKind.DELETE
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _walk(_child(path, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            left = old[index] if index < len(old) else _ABSENT
            right = new[index] if index < len(new) else _ABSENT
            yield from _walk(f"{path}[{index}]", left, right)
    elif old != new:
        yield path, ChangeKind.UPDATE


def changes(
    old: Properties, new: Properties, *, replacing: Collection[str] = ()
) -> tuple[PropertyChange, ...]:
    """Return every change between two sets of inputs; a missing property equals a null one.

    `replacing` names the properties, or paths below them, whose change replaces the resource.
    """
    found = []
    for path, kind in _walk("", old, new):
        replaces = any(path == p or path.startswith((f"{p}.", f"{p}[")) for p in replacing)
        found.append(PropertyChange(path, kind, replaces))
    return tuple(found)
