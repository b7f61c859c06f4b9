"""Says whether a block is one that a row of the table is about: what its inputs are, or lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.refusals.fields import values

GIVEN, ABSENT = "(given)", "(absent)"
EMPTY: tuple[Any, ...] = (None, "", [], {}, False)


def holds(where: Mapping[str, Sequence[str]], block: Any, inputs: Mapping[str, Any]) -> bool:
    """Say whether each input of a block, or after ^ of the resource, is one of its words."""
    return all(_is(words, value_at(key, block, inputs)) for key, words in where.items())


def value_at(key: str, block: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a key of the block, or after ^ a path from the resource."""
    if not key.startswith("^"):
        return block.get(key)
    found = values(inputs, key[1:])
    return found[0] if found else None


def _is(words: Sequence[str], value: Any) -> bool:
    if value in (None, "", [], {}):
        return ABSENT in words
    return GIVEN in words or _plain(value) in map(_plain, words)


def _plain(value: Any) -> str:
    written = str(value)
    return written.lower() if written.lower() in {"true", "false"} else written
