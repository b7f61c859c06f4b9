"""Finds the values of an input within blocks and lists, and says whether a block is of a kind."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

GIVEN, ABSENT = "(given)", "(absent)"


def values(inputs: Any, path: str) -> list[Any]:
    """Return what is given under a dotted path; a star stands for every element of a list.

    A path leads through a document in JSON as through blocks.

    >>> values({"rules": [{"id": "a"}, {}]}, "rules.*.id"), values({"body": '{"a": 1}'}, "body.a")
    (['a'], [1])
    """
    found = [inputs]
    for part in path.split(".") if path else ():
        found = [document(each) if isinstance(each, str) else each for each in found]
        if part == "*":
            found = [item for each in found if isinstance(each, list | tuple) for item in each]
        else:
            found = [each.get(part) for each in found if isinstance(each, Mapping)]
    return [each for each in found if each is not None]


@functools.lru_cache(maxsize=256)
def document(written: str) -> Any:
    """Return the content of a text in JSON, which lacks Python's NaN; None: it is none."""
    try:
        return json.loads(written, parse_constant=_no_number)
    except (RecursionError, ValueError):
        return None


def _no_number(written: str) -> float:
    raise ValueError(written)


def is_empty(value: Any) -> bool:
    """Say whether an input says nothing; zero says something.

    >>> [is_empty(each) for each in (None, "", [], False, 0)]
    [True, True, True, True, False]
    """
    return value is None or value is False or (hasattr(value, "__len__") and len(value) == 0)


def holds(where: Mapping[str, Sequence[str]], block: Any, inputs: Mapping[str, Any]) -> bool:
    """Say whether each input of a block, or after ^ of the resource, is one of its words.

    A word that begins with a tilde is an expression.
    """
    return all(_is(words, value_at(key, block, inputs)) for key, words in where.items())


def value_at(key: str, block: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a key of the block, or after ^ a path from the resource."""
    found = values(inputs, key[1:]) if key.startswith("^") else values(block, key)
    return found[0] if found else None


def plain_text(value: Any) -> str:
    """Return a value as a program writes it: the engine's whole numbers are floats."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    written = str(value)
    return written.lower() if written.lower() in {"true", "false"} else written


def _is(words: Sequence[str], value: Any) -> bool:
    if is_empty(value) and value is not False:
        return ABSENT in words
    said = plain_text(value)
    return GIVEN in words or any(
        re.fullmatch(word[1:], said) if word.startswith("~") else said == plain_text(word)
        for word in words
    )
