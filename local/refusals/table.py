"""Judges a resource by the table of limits that no model states: tables/*.toml, a row each.

A row has the path of an input, its bound, how AWS refuses, where it stands written, and an example
that is refused and one that is taken, which are its test. A dotted path leads through blocks, a
star stands for every element of a list.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.refusals.conditions import EMPTY, holds, value_at
from local.refusals.fields import values
from local.refusals.limits import LIMITS, InputLimit
from local.refusals.model import words_of
from local.refusals.refusal import Refusal, Wanted

Row = Mapping[str, Any]
FOLDER = Path(__file__).with_name("tables")


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return all rows, each with what its section says of all its rows."""
    found: list[Row] = []
    for file in sorted(FOLDER.glob("*.toml")):
        for token, section in tomllib.loads(file.read_text()).items():
            of_all = {key: each for key, each in section.items() if key != "rows"}
            found += [{"type": token, **of_all, **row} for row in section["rows"]]
    return tuple(found)


def refusals(row: Row, wanted: Wanted) -> Iterator[Refusal]:
    """Yield what one row refuses of a resource."""
    judge = next(judge for kind, judge in _KINDS.items() if kind in row)
    for block in values(wanted.inputs, row.get("base", "")):
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
    fits = re.fullmatch(row["pattern"], str(value), re.DOTALL)
    return "" if fits else "Value '{value}' at '{at}' is not valid"


def _words(row: Row, value: Any) -> str:
    # The engine's numbers are floats.
    said = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    words = row["words"]
    known = words_of(*words.split(":")) if isinstance(words, str) else words
    if said in known or (row.get("fold") and said.lower() in map(str.lower, known)):
        return ""
    return f"expected {{at}} to be one of [{', '.join(sorted(known)[:30])}], got {{value}}"


def _range(row: Row, value: Any) -> str:
    least, most = row["range"]
    inside = least <= float(value) <= most
    return "" if inside else f"Value '{{value}}' at '{{at}}' must be between {least} and {most}"


def _excludes(row: Row, block: Any, _: Any) -> _Judged:
    given = [key for key in row["excludes"] if block.get(key) not in (None, "", [], {})]
    if len(given) > 1:
        yield given[1], block[given[1]], f'"{given[0]}": conflicts with {given[1]}'


def _needs(row: Row, block: Any, inputs: Mapping[str, Any]) -> _Judged:
    for key in row["needs"]:
        if value_at(key, block, inputs) in EMPTY:
            yield key, None, f"{{at}} must be specified {_circumstance(row, block, inputs)}"


def _forbids(row: Row, block: Any, inputs: Mapping[str, Any]) -> _Judged:
    for key in row["forbids"]:
        value = value_at(key, block, inputs)
        if value not in EMPTY:
            yield key, value, f"{{at}} cannot be specified {_circumstance(row, block, inputs)}"


def _circumstance(row: Row, block: Any, inputs: Mapping[str, Any]) -> str:
    where = (f"{key} is {value_at(key, block, inputs)}" for key in row.get("where", {}))
    return f"where {' and '.join(where) or 'this block is given'}".replace("^", "")


_KINDS: Mapping[str, Callable[[Row, Any, Any], _Judged]] = {
    "pattern": _of_each(_pattern),
    "words": _of_each(_words),
    "range": _of_each(_range),
    "excludes": _excludes,
    "needs": _needs,
    "forbids": _forbids,
}

for _row in rows():
    LIMITS.append(
        InputLimit(
            f"{_row.get('at') or _row.get('base') or 'inputs'}-of-{_row['type']}",
            (_row["type"] if _row["type"] == "*" else f"aws:{_row['type']}",),
            _row["source"],
            functools.partial(refusals, _row),
        )
    )
