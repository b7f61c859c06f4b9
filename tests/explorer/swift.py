"""Copies frozen records as `dataclasses.replace` does, in a fraction of its time.

An incident has sixty fields and is written several times a turn: replacing them one by one through
keyword arguments was a third of a search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any


def swift_replace(record: Any, /, **changes: Any) -> Any:
    """Return a copy of a record, with these fields changed."""
    setters = _setters(type(record))  # type: ignore[arg-type]
    if setters is None:
        return dataclasses.replace(record, **changes)
    twin = object.__new__(type(record))
    for name, write in setters:
        write(twin, changes.pop(name) if name in changes else getattr(record, name))
    if changes:
        raise TypeError(f"{type(record).__name__} has no field {', '.join(changes)}")
    return twin


@lru_cache(maxsize=256)
def _setters(kind: type) -> tuple[tuple[str, Callable[[Any, Any], None]], ...] | None:
    """Return every field with what writes it past the freeze; None: it is no plain slotted one."""
    if not hasattr(kind, "__slots__") or hasattr(kind, "__post_init__"):
        return None
    return tuple((f.name, getattr(kind, f.name).__set__) for f in dataclasses.fields(kind))
