"""Finds what a misspelt key was meant to be: the nearest one of its section, or its right place."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from core.cluster.spec import ClusterSpec

# Of a word that is not there; what is less alike is another word.
ALIKE = 0.6


def suggestion(place: Sequence[object], root: type[BaseModel] = ClusterSpec) -> str | None:
    """Return what the key at a place should be called, or where it belongs; None: nobody knows."""
    key = str(place[-1])
    section = section_of(place[:-1], root)
    if section is None:
        return None
    names = list(section.model_fields)
    # Another language's spelling of the same words.
    plain = {_plain(name): name for name in names}
    if _plain(key) in plain:
        return plain[_plain(key)]
    close = difflib.get_close_matches(key, names, n=1, cutoff=ALIKE)
    if close:
        return close[0]
    elsewhere = [path for path in _paths(root) if path.rpartition(".")[2] == key]
    return elsewhere[0] if len(elsewhere) == 1 else None


def section_of(
    place: Sequence[object], root: type[BaseModel] = ClusterSpec
) -> type[BaseModel] | None:
    """Return the section at a place of a description; None where there is none."""
    found: Any = root
    for part in place:
        if isinstance(part, int):
            continue  # _within has gone into the list
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            if field is None:
                return None
            found = field.annotation
        found = _within(found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _within(annotation: Any) -> Any:
    """Return the section inside an Optional, a list, or an Annotated; else the annotation."""
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation
    inner = [each for each in typing.get_args(annotation) if each not in (type(None), ...)]
    if origin in (typing.Annotated, typing.Union, types.UnionType, tuple, list):
        return _within(inner[0])
    return annotation


def _paths(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield f"{prefix}{name}"
        inside = _within(field.annotation)
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            yield from _paths(inside, f"{prefix}{name}.")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
