"""Reads what a description's keys mean: the text below each field, for reference and schema.

Pydantic can read it itself, and would each time a section is imported: a seventh of the time that
`stillwater check` takes, for words that only `make docs` prints.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from core.cluster.spec import ClusterSpec


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
