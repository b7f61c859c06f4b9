"""Judges a resource by the table of limits that no model states: tables/*.toml, a row each.

A row has the path of an input, its bound, how AWS refuses, where it stands written, and an example
that is refused and one that is taken, which are its test. A dotted path leads through blocks, a
star stands for every element of a list, and a document in JSON is a block as any other.

The kinds of bounds. Of a value: `pattern`, `words` (a list, or a service's shape in botocore's
model), `range`, `length` in bytes, `network`, and `schema`, a JSON schema of a document or a block.
Of a list: `count`, and `distinct`, by which keys. Of the inputs of a block: `needs`, `any_of`,
`excludes`, `forbids`, and `ascending`. `base` is the path of the blocks that a row is about, and
`where` says of which of them it is.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.refusals.documents import (
    content_of,
    holds,
    is_empty,
    is_within,
    network,
    parse_yaml,
    plain_text,
    text,
    value_at,
    values,
    without_whitespace,
)
from local.refusals.json_schema import wrongs
from local.refusals.model import words_of
from local.refusals.refusal import LIMITS, InputLimit, Refusal, Wanted

Row = Mapping[str, Any]
FOLDER = Path(__file__).with_name("tables")


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return all rows: of each type and path of its own, with what its section says of all."""
    found: list[Row] = []
    for file in sorted(FOLDER.glob("*.toml")):
        for token, section in tomllib.loads(file.read_text()).items():
            of_all = {key: each for key, each in section.items() if key not in _OF_SECTIONS}
            for type_, operation in section.get("operations", {token: ""}).items():
                more = {"operation": operation} if operation else {}
                for row in section["rows"]:
                    whole = {"type": type_, **of_all, **more, **row}
                    paths = row["at"] if isinstance(row.get("at"), list) else [row.get("at")]
                    found += [{**whole, "at": at} if at else whole for at in paths]
    return tuple(found)


# Its rows, and the operation of each type where a section is about several.
_OF_SECTIONS = frozenset({"operations", "rows"})


def refusals(row: Row, wanted: Wanted) -> Iterator[Refusal]:
    """Yield what one row refuses of a resource."""
    judge = next(judge for kind, judge in _KINDS.items() if kind in row)
    for block in values(wanted.inputs, row.get("base", "")):
        block = content_of(block) if isinstance(block, str) else block  # noqa: PLW2901
        if isinstance(block, Mapping) and holds(row.get("where", {}), block, wanted.inputs):
            for at, value, said in judge(row, block, wanted.inputs):
                shown = str(value)[:200]
                message = row.get("says", said).replace("{value}", shown).replace("{at}", at)
                top = (row.get("base") or at).partition(".")[0]
                yield Refusal(row["operation"], row["code"], message, top)


# Where, the value there, and what is wrong where a row does not say it in AWS's words.
_Judged = Iterator[tuple[str, Any, str]]


def _of_each(wrong: Callable[[Row, Any], str]) -> Callable[[Row, Any, Any], _Judged]:
    def judged(row: Row, block: Any, _: Any) -> _Judged:
        for value in values(block, row["at"]):
            if said := wrong(row, value):
                yield row["at"], value, said

    return judged


def _pattern(row: Row, value: Any) -> str:
    fits = re.fullmatch(row["pattern"], plain_text(value), re.DOTALL)
    return "" if fits else "Value '{value}' at '{at}' is not valid"


def _words(row: Row, value: Any) -> str:
    said, words = plain_text(value), row["words"]
    known = words_of(*words.split(":")) if isinstance(words, str) else [*map(str, words)]
    if said in known or (row.get("fold") and said.lower() in map(str.lower, known)):
        return ""
    return f"expected {{at}} to be one of [{', '.join(sorted(known)[:30])}], got {{value}}"


def _range(row: Row, value: Any) -> str:
    least, most = row["range"]
    inside = least <= float(value) <= most
    return "" if inside else f"Value '{{value}}' at '{{at}}' must be between {least} and {most}"


def _length(row: Row, value: Any) -> str:
    size = without_whitespace(value) if row.get("unspaced") else len(text(value).encode())
    least, most = row["length"]
    return "" if least <= size <= most else f"'{{at}}' must have {least} to {most} bytes"


def _network(row: Row, value: Any) -> str:
    """Say what is wrong with a block: host bits, its version, its size, or where it lies."""
    asked = row["network"]
    found = network(value, strict=not asked.get("hosts"))
    least, most = asked.get("bits", (0, 128))
    right = (
        found is not None
        and ("hosts" in asked or str(found) == str(value))
        and least <= found.prefixlen <= most
        and found.version == asked.get("version", found.version)
        and ("within" not in asked or is_within(found, *asked["within"]))
        and not is_within(found, *asked.get("outside", ()))
    )
    return "" if right else "The CIDR '{value}' is invalid."


def _schema(row: Row, value: Any) -> str:
    told = value
    if isinstance(value, str):
        told = parse_yaml(value) if row.get("yaml") else content_of(value)
    found = next(wrongs(row["schema"], told), None)
    return f"'{{at}}' is invalid: {'.'.join(filter(None, found))}" if found else ""


def _count(row: Row, value: Any) -> str:
    least, most = row["count"]
    return "" if least <= len(value) <= most else f"'{{at}}' must have {least} to {most} items"


def _distinct(row: Row, block: Any, _: Any) -> _Judged:
    keys = [
        tuple(str(each.get(key)) for key in row["distinct"]) if row["distinct"] else str(each)
        for each in values(block, row["at"])
    ]
    for key in keys:
        if keys.count(key) > 1:
            yield row["at"], key, "Duplicate value {value} at '{at}'"
            return


def _ascending(row: Row, block: Any, _: Any) -> _Judged:
    given = [float(block[key]) for key in row["ascending"] if block.get(key) is not None]
    if given != sorted(given):
        yield row["ascending"][-1], given, f"{' <= '.join(row['ascending'])} does not hold"


def _excludes(row: Row, block: Any, _: Any) -> _Judged:
    given = [key for key in row["excludes"] if not is_empty(value_at(key, block, {}))]
    if len(given) > 1:
        yield given[1], value_at(given[1], block, {}), f'"{given[0]}": conflicts with {given[1]}'


def _any_of(row: Row, block: Any, _: Any) -> _Judged:
    if all(is_empty(value_at(key, block, {})) for key in row["any_of"]):
        yield row["any_of"][0], None, f"One of {', '.join(row['any_of'])} must be specified"


def _needs(row: Row, block: Any, inputs: Mapping[str, Any]) -> _Judged:
    for key in row["needs"]:
        if is_empty(value_at(key, block, inputs)):
            yield key, None, f"{{at}} must be specified {_circumstance(row, block, inputs)}"


def _forbids(row: Row, block: Any, inputs: Mapping[str, Any]) -> _Judged:
    for key in row["forbids"]:
        value = value_at(key, block, inputs)
        if not is_empty(value):
            yield key, value, f"{{at}} cannot be specified {_circumstance(row, block, inputs)}"


def _circumstance(row: Row, block: Any, inputs: Mapping[str, Any]) -> str:
    where = (f"{key} is {value_at(key, block, inputs)}" for key in row.get("where", {}))
    return f"where {' and '.join(where) or 'this block is given'}".replace("^", "")


_KINDS: Mapping[str, Callable[[Row, Any, Any], _Judged]] = {
    "pattern": _of_each(_pattern),
    "words": _of_each(_words),
    "range": _of_each(_range),
    "length": _of_each(_length),
    "network": _of_each(_network),
    "schema": _of_each(_schema),
    "count": _of_each(_count),
    "distinct": _distinct,
    "ascending": _ascending,
    "excludes": _excludes,
    "any_of": _any_of,
    "needs": _needs,
    "forbids": _forbids,
}

for _row in rows():
    LIMITS.append(
        InputLimit(
            (_row["type"] if _row["type"] == "*" else f"aws:{_row['type']}",),
            _row["source"],
            functools.partial(refusals, _row),
        )
    )
