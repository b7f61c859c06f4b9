"""Makes a ClusterSpec of what a user wrote, or a sentence per problem.

A misspelt key is answered with the nearest one of its section, and a pattern with what it asks for.
What keys mean is the text below each field: pydantic could read it itself, and would at each
import, a seventh of the time that `stillwater check` takes, for words that only `make docs` prints.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from core.cluster.spec import ClusterSpec, Inconsistent
from core.ground.errors import InvalidInput


def meanings(section: type[BaseModel]) -> Mapping[str, str]:
    """Return the text below each field of a section, and of those that it is made from."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found.update(_own(base))
    return {name: found[name] for name in section.model_fields if name in found}


def _own(section: type[BaseModel]) -> Iterator[tuple[str, str]]:
    defined: Any = ast.parse(inspect.getsource(section)).body[0]
    for field, below in pairwise(defined.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield field.target.id, inspect.cleandoc(str(below.value.value))


def schema() -> dict[str, Any]:
    """Return the schema of a ClusterSpec with what each key means."""
    found = ClusterSpec.model_json_schema()
    for section in set(_sections(ClusterSpec)):
        described = found if section is ClusterSpec else found["$defs"][section.__name__]
        for key, meaning in meanings(section).items():
            described["properties"][key]["description"] = meaning
    return found


def json_schema() -> str:
    """Return that schema as it is checked in under docs/reference/."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


def _sections(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield root
    for field in root.model_fields.values():
        for inside in _models(field.annotation):
            yield from _sections(inside)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inside in get_args(annotation):
        yield from _models(inside)


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
            continue  # _section_type has gone into the list
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            if field is None:
                return None
            found = field.annotation
        found = _section_type(found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _section_type(annotation: Any) -> Any:
    """Return the section inside an Optional, a list, or an Annotated; else the annotation."""
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation
    inner = [each for each in typing.get_args(annotation) if each not in (type(None), ...)]
    if origin in (typing.Annotated, typing.Union, types.UnionType, tuple, list):
        return _section_type(inner[0])
    return annotation


def _paths(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield f"{prefix}{name}"
        inside = _section_type(field.annotation)
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            yield from _paths(inside, f"{prefix}{name}.")


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# Pattern -> what it asks for.
WORDS: Mapping[str, str] = _TABLE["patterns"]


def asked_for(pattern: str) -> str:
    """Return what a pattern asks for, as a clause."""
    words = WORDS.get(pattern)
    return f"it must match {pattern}" if words is None else f"it must be {words}"


SCALAR = "is_no_scalar"
_PLAIN_WORDS: Mapping[str, str] = _TABLE["errors"]
# The kinds that a setting of Kafka's may have; pydantic names each that a value is not.
_SCALARS = frozenset({"str", "int", "bool"})
# The longest value that a sentence repeats whole.
LONGEST_SHOWN = 120
# No setting takes a longer word, the longest URL and what stands beside it included.
_LONG_WORD = re.compile(r"\S{450,}(?<![,.;:])")
M = TypeVar("M", bound=BaseModel)
Place = Sequence[object]
# Says where a problem stands in what the user wrote, "FILE:LINE:COLUMN: "; by the place of the
# setting and by what is said of it.
Locate = Callable[[Place, str], str]


def _sentences(error: Mapping[str, Any], root: type[BaseModel]) -> Iterator[str]:
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, Inconsistent):
        for problem in raised.problems:
            yield f"{problem}."
        return
    where = ".".join(str(part) for part in error["loc"]) or root.__name__
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch":
        message = asked_for(error["ctx"]["pattern"])
    elif error["type"] in _PLAIN_WORDS:
        message = _PLAIN_WORDS[error["type"]].format(**error.get("ctx", {}))
    if error["type"] == "extra_forbidden" and (meant := suggestion(error["loc"], root)) is not None:
        message = f"there is no such setting; did you mean {meant}?"
        yield f"{where}: {message}"
        return
    shown = error.get("input")
    if isinstance(shown, dict | list | tuple | BaseModel) or error["type"] == "missing":
        yield f"{where}: {message}."
    else:
        yield f"{where} is {_value_text(shown)}: {message}."


def _value_text(value: object) -> str:
    """Return a value as a user wrote it, or its beginning."""
    written = repr(str(value) if isinstance(value, date) else value)
    if len(written) <= LONGEST_SHOWN:
        return written
    return f"{written[:LONGEST_SHOWN]}... ({len(written)} characters)"


def shortened(sentence: str) -> str:
    """Return a sentence that repeats no word beyond its beginning that no setting takes.

    >>> shortened(f"{'x' * 9000} is no name.")[115:]
    'xxxxx... (9000 characters) is no name.'
    """
    return _LONG_WORD.sub(
        lambda word: f"{word[0][:LONGEST_SHOWN]}... ({len(word[0])} characters)", sentence
    )


def _needed_errors(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors a reader needs: a list is not also too short for its one bad item."""
    errors = [dict(e) for e in error.errors()]
    places: list[tuple[object, ...]] = [e["loc"] for e in error.errors()]

    def has_deeper(place: tuple[object, ...]) -> bool:
        return any(len(p) > len(place) and p[: len(place)] == place for p in places)

    return _merge_union_errors(
        [
            e
            for e, place in zip(errors, places, strict=True)
            if e["type"] != "too_short" or not has_deeper(place)
        ]
    )


def _merge_union_errors(errors: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors, one of a value that is none of the kinds a setting may have."""
    kept: dict[tuple[object, ...], dict[str, Any]] = {}
    for error in errors:
        *place, kind = error["loc"] or ("",)
        if kind in _SCALARS and place and "config" in place:
            kept[tuple(place)] = {**error, "loc": tuple(place), "type": SCALAR}
        else:
            kept[(*error["loc"], len(kept))] = error
    return list(kept.values())


def parse(raw: object, locate: Locate = lambda _place, _sentence: "") -> ClusterSpec:
    """Validate a ClusterSpec as read from JSON, YAML or stack config.

    Raises InvalidInput with one sentence per problem, each behind what `locate` says of it.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(["A ClusterSpec must be a mapping of settings to values."])
    return validate(ClusterSpec, raw, locate)


def validate(
    root: type[M], raw: Mapping[str, object], locate: Locate = lambda _place, _sentence: ""
) -> M:
    """Return what a mapping describes; raise InvalidInput with one sentence per problem."""
    try:
        return root.model_validate(raw)
    except ValidationError as error:
        raise InvalidInput(
            locate(each["loc"], sentence) + shortened(sentence)
            for each in _needed_errors(error)
            for sentence in _sentences(each, root)
        ) from None
