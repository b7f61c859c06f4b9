"""Tables as text: rows of what is given, `=>` and what comes of it, and changes of a healthy whole.

A row goes on where the next line is indented; `#` begins a comment, `[...]` a section. A change is
a path and its value.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

import yaml


def changed(whole: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy in which another value stands at each path: `{"pools.1.name": "x"}`.

    A list in the place of a tuple or of a set becomes one.
    """
    whole = copy.deepcopy(whole) if isinstance(whole, dict) else whole
    for path, value in changes.items():
        whole = _at(whole, path.split("."), value)
    return whole


def _at(whole: Any, path: list[str], value: Any) -> Any:
    if not path:
        wanted = type(whole) if isinstance(whole, tuple | frozenset) else list
        return wanted(value) if isinstance(value, list) else value
    step, *below = path
    if is_dataclass(whole) and not isinstance(whole, type):
        return replace(whole, **{step: _at(getattr(whole, step), below, value)})
    if isinstance(whole, list | tuple):
        kept = [*whole]
        kept[int(step)] = _at(kept[int(step)], below, value)
        return type(whole)(kept)
    return {**(whole or {}), step: _at((whole or {}).get(step), below, value)}


def cases(table: str) -> Iterator[tuple[Any, str]]:
    """Yield of each row what is given, as YAML, and what is said of it."""
    return ((yaml.safe_load(given), said) for given, said in rows(table))


def rows(table: str) -> Iterator[tuple[str, str]]:
    """Yield the line and the ending of each row."""
    return ((line, ending) for _, line, ending in rows_of_sections(table))


def rows_of_sections(table: str) -> Iterator[tuple[str, str, str]]:
    """Yield the section, the line and the ending of each row; before any section it is empty."""
    section = ""
    for row in table.replace("\n    ", " ").splitlines():
        if row.startswith("["):
            section = row.strip("[]")
        elif row and not row.startswith("#"):
            line, ending = row.split("=>")
            yield section, line.strip(), ending.strip()
