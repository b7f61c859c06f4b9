"""Reads tags out of text: JSON as AWS delivers it, and what other tools make of a map in csv.

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
# Pairs without braces: "a": "b", "c": "d" of Azure, "a"=>"b" of Postgres.
_ARROW = re.compile(r"\"\s*=>\s*(NULL\b)?")
# A list may call a key and its value by any of these.
_KEYS = ("Key", "key", "TagKey", "tagKey", "tag_key", "Name", "name")
_VALUES = ("Value", "value", "TagValue", "tagValue", "tag_value")
# How Athena and DuckDB print a map, {a=b, c=d}: where the first key ends, and the next pair begins.
_PRINTED_MAP, _NEXT_PAIR = (
    re.compile(r"\{[^\"'={}]+=.*\}", re.DOTALL),
    re.compile(", (?=[^,={}]+=)"),
)
# How Spark prints one: {a -> b, c -> d}.
_SPARKS, _SPARKS_ARROW = re.compile(r"\{[^\"'={}>]+ -> .*\}", re.DOTALL), " -> "
# Pairs one after the other, every piece of the text one of them; by commas a value may hold one.
_KEY = r"[^=;|,{}\[\]\"']+="
_SEPARATED = {
    by: re.compile(rf"{_KEY}[^{by}]*(({by}\s*{_KEY}[^{by}]*)+{by}?|{by})\s*") for by in (";", r"\|")
}
_BY_COMMAS, _COMMA = re.compile(rf"{_KEY}[^;|]*"), re.compile(rf",\s*(?={_KEY})")


@lru_cache(1 << 16)
def tags_in(written: str | None) -> Tags | None:
    """Return the tags that a text holds, in their order; None of a text that holds nothing."""
    text = (written or "").strip(" ")
    if text in EMPTY:
        return None
    for read in (_of_json, _of_python, _of_a_string, _without_braces, _of_pairs):
        found = read(text)
        if found is not None:
            return found
    return ((UNREAD_TAGS, text[:UNREAD_CHARACTERS]),)


def _of_json(text: str) -> Tags | None:
    try:
        return _of_value(json.loads(text, object_pairs_hook=tuple, parse_float=str, parse_int=str))
    except ValueError:
        return None


def _of_python(text: str) -> Tags | None:
    """Read what Python prints of a dictionary, or of a list of tuples."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = ast.literal_eval(_NAN.sub("None", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, dict):
        return _of_value(tuple((k, _as_json(v)) for k, v in value.items()))
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return _of_value([tuple(each.items()) for each in value])
    is_pairs = isinstance(value, list) and all(isinstance(each, (list, tuple)) for each in value)
    return _of_value([list(each) for each in value]) if is_pairs else None


def _as_json(value: Any) -> Any:
    return None if isinstance(value, bool) else value


def _of_a_string(text: str) -> Tags | None:
    """Read JSON that stands in a string of JSON."""
    if not text.startswith(('"{', '"[')):
        return None
    try:
        inner = json.loads(text)
    except ValueError:
        return None
    return _of_json(inner) if isinstance(inner, str) else None


def _without_braces(text: str) -> Tags | None:
    if not text.startswith('"'):
        return None
    braced = "{" + _ARROW.sub(lambda found: '":' + (found[1] or ""), text) + "}"
    return _of_json(braced.replace(":NULL", ":null"))


def _of_value(value: Any) -> Tags | None:
    """Return the tags of an object, of a list of keys and values, or of a list of pairs.

    An object is a tuple of pairs.
    """
    if isinstance(value, tuple):
        return _whole(value)
    if not isinstance(value, list):
        return None
    return _whole([_pair(each) for each in value])


def _pair(each: Any) -> tuple[Any, Any]:
    """Return a list's element as a pair: a key by any of its names, or the only field's."""
    if isinstance(each, tuple):
        fields = dict(each)
        if len(fields) == 1:
            return next(iter(fields.items()))
        key = next((fields[name] for name in _KEYS if fields.get(name) is not None), None)
        return key, next((fields[name] for name in _VALUES if fields.get(name) is not None), None)
    if isinstance(each, list) and each:
        return each[0], each[1] if len(each) > 1 else None
    return None, None


def _whole(pairs: Iterable[tuple[Any, Any]]) -> Tags | None:
    """Return pairs, or None where one of them has no key, or a value that is none."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            return None
        found.setdefault(key, _written(value))
    return tuple(found.items())


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return json.dumps(dict(value))
    return json.dumps(value) if isinstance(value, list) else str(value)


def _of_pairs(text: str) -> Tags | None:
    """Read a map as Athena prints it, as Spark does, or pairs that stand one after the other."""
    printed = text
    if _SPARKS.fullmatch(text):
        printed = text.replace(_SPARKS_ARROW, "=")
    else:
        for by, pattern in _SEPARATED.items():
            if pattern.fullmatch(text):
                ended = re.sub(rf"\s*{by}?\s*$", "", text)
                printed = "{" + re.sub(rf"\s*{by}\s*", ", ", ended) + "}"
                break
        else:
            if _BY_COMMAS.fullmatch(text):
                printed = "{" + _COMMA.sub(", ", text) + "}"
    if not _PRINTED_MAP.fullmatch(printed):
        return None
    pairs = [pair.partition("=") for pair in _NEXT_PAIR.split(printed[1:-1])]
    return _whole((key.strip(" "), value) for key, _, value in pairs)
