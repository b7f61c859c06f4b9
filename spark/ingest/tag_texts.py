"""Reads tags out of text: JSON as AWS delivers it, and what Athena and Python print of a map.

Every way is tried where the one before made nothing of the text; what no way reads is kept whole,
under the name UNREAD_TAGS, and the report says so. No way guesses: a text of which a piece is no
pair is not read at all.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from spark.rules.line import EMPTY
from spark.tag_keys import UNREAD_TAGS

UNREAD_CHARACTERS = 80
Tags = tuple[tuple[str, Any], ...]

# What Python writes of a float for nothing, where no quote is around it.
_NAN = re.compile(r"(?<=[:,\[(]\s)nan(?=\s*[,}\])])")
# How Athena prints a map, {a=b, c=d}: where the first key ends, and the next pair begins.
_PRINTED_MAP = re.compile(r"\{[^\"'={}]+=.*\}", re.DOTALL)
_NEXT_PAIR = re.compile(", (?=[^,={}]+=)")


@lru_cache(1 << 16)
def tags_in(written: str | None) -> Tags | None:
    """Return the tags that a text holds, in their order; None of a text that holds nothing."""
    text = (written or "").strip(" ")
    if text in EMPTY:
        return None
    for read in (_of_json, _of_python, _of_athena):
        found = read(text)
        if found is not None:
            return found
    return ((UNREAD_TAGS, text[:UNREAD_CHARACTERS]),)


def _of_json(text: str) -> Tags | None:
    try:
        value = json.loads(text, object_pairs_hook=tuple, parse_float=str, parse_int=str)
    except ValueError:
        return None
    # An object is a tuple of pairs; a list holds objects of a key and a value, or pairs.
    if isinstance(value, list):
        return _whole(map(_pair, value))
    return _whole(value) if isinstance(value, tuple) else None


def _of_python(text: str) -> Tags | None:
    """Read what Python prints of a dictionary, or of a list of tuples or of keys with values."""
    try:
        value = ast.literal_eval(_NAN.sub("None", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, dict):
        return _whole(value.items())
    if not isinstance(value, list):
        return None
    return _whole(_pair(tuple(e.items()) if isinstance(e, dict) else e) for e in value)


def _of_athena(text: str) -> Tags | None:
    if not _PRINTED_MAP.fullmatch(text):
        return None
    pairs = (pair.partition("=") for pair in _NEXT_PAIR.split(text[1:-1]))
    return _whole((key.strip(" "), value) for key, _, value in pairs)


def _pair(each: Any) -> tuple[Any, Any]:
    """Return a list's element as a pair: an object's key and value, or both of a list."""
    if not isinstance(each, (list, tuple)) or len(each) != 2:
        return None, None
    if all(isinstance(field, tuple) for field in each):
        fields = {f"{name}".lower(): value for name, value in each}
        return fields.get("key"), fields.get("value")
    return each[0], each[1]


def _whole(pairs: Iterable[tuple[Any, Any]]) -> Tags | None:
    """Return pairs, or None where one of them has no key."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            return None
        found.setdefault(key, _written(value))
    return tuple(found.items())


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return json.dumps(dict(value))
    return json.dumps(value)
