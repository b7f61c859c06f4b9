"""Copies slotted records, frozen ones too, as `dataclasses.replace` does, in little of its time.

An incident has sixty fields and is written several times a turn: replacing them one by one through
keyword arguments was a third of a search, and is a sixth of a history with its ledger.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

# Whose modules copy records so, meanwhile.
_OURS = ("core.", "handlers.", "tests.explorer.", "tests.unit.handlers.")

Setter = Callable[[Any, Any], None]


@contextmanager
def swiftly() -> Iterator[None]:
    """Let all that is imported of ours copy its records so."""
    copying = [
        module
        for name, module in sys.modules.items()
        if name.startswith(_OURS) and getattr(module, "replace", None) is dataclasses.replace
    ]
    for module in copying:
        module.replace = swift_replace  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in copying:
            module.replace = dataclasses.replace  # type: ignore[attr-defined]


def swift_replace(record: Any, /, **changes: Any) -> Any:
    """Return a copy of a record, with these fields changed."""
    found = _of_slots(type(record))  # type: ignore[arg-type]
    if found is None:
        return dataclasses.replace(record, **changes)
    copied, setters = found
    twin = copied(record)
    for name, value in changes.items():
        if name not in setters:
            raise TypeError(f"{type(record).__name__} has no field {name}")
        setters[name](twin, value)
    return twin


@lru_cache(maxsize=256)
def _of_slots(kind: type) -> tuple[Callable[[Any], Any], dict[str, Setter]] | None:
    """Return what copies a record and what writes its fields; None: it is no plain slotted one."""
    if not hasattr(kind, "__slots__") or hasattr(kind, "__post_init__"):
        return None
    return copier(kind), setters_of(kind)


def setters_of(kind: type) -> dict[str, Setter]:
    """Return what writes each field of a slotted record, past its freeze."""
    return {name: getattr(kind, name).__set__ for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def copier(kind: type, containers: Collection[str] = ()) -> Callable[[Any], Any]:
    """Return a function that copies a slotted record; its fields are written out, one by one.

    Those of `containers` are copied themselves: what is put into one is not in the other.
    """
    setters = setters_of(kind)
    lines = [
        f"    set_{name}(twin, record.{name}{'.copy()' if name in containers else ''})"
        for name in setters
    ]
    source = ["def copied(record):", "    twin = new(kind)", *lines, "    return twin"]
    known: dict[str, Any] = {f"set_{name}": setter for name, setter in setters.items()}
    known |= {"new": object.__new__, "kind": kind}
    exec("\n".join(source), known)  # noqa: S102 - as dataclasses makes its own
    found: Callable[[Any], Any] = known["copied"]
    return found
