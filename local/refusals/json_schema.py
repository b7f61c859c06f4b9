"""Judges a value by a JSON schema, with the words that cfn-lint adds to it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import (  # type: ignore[import-untyped] # ships no types
    Draft201909Validator,
    ValidationError,
    validators,
)

from local.refusals.model import expression

Schema = Mapping[str, Any]
Wrongs = Iterator[ValidationError]


def wrongs(schema: Schema, value: Any) -> Iterator[tuple[str, str]]:
    """Yield where a value breaks a schema, and how.

    >>> list(wrongs({"properties": {"a": {"maximum": 3}}}, {"a": 4}))
    [('a', '4 is greater than the maximum of 3')]
    """
    for error in _VALIDATOR(schema).iter_errors(value):
        places = (part + 1 if isinstance(part, int) else part for part in error.absolute_path)
        yield ".".join(map(str, places)), error.message


def referred(reference: str, root: Schema) -> Any:
    """Return the schema that a reference such as #/definitions/Tag names."""
    return functools.reduce(lambda found, part: found[part], reference.split("/")[1:], root)


def _pattern(_: Any, pattern: str, value: Any, __: Schema) -> Wrongs:
    # As AWS writes it, for Java.
    if isinstance(value, str) and not expression(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _dependent_excluded(_: Any, excluded: Schema, value: Any, __: Schema) -> Wrongs:
    for key, others in excluded.items():
        if key in value and (extra := [each for each in others if each in value]):
            yield ValidationError(f"{extra[0]} cannot be specified with {key}")


def _one_of_keys(_: Any, keys: list[str], value: Any, __: Schema) -> Wrongs:
    if sum(key in value for key in keys) != 1:
        yield ValidationError(f"Exactly one of {', '.join(keys)} must be specified")


def _some_of_keys(_: Any, keys: list[str], value: Any, __: Schema) -> Wrongs:
    if not any(key in value for key in keys):
        yield ValidationError(f"One of {', '.join(keys)} must be specified")


_VALIDATOR = validators.extend(
    Draft201909Validator,
    {
        "pattern": _pattern,
        "dependentExcluded": _dependent_excluded,
        "requiredXor": _one_of_keys,
        "requiredOr": _some_of_keys,
    },
    type_checker=Draft201909Validator.TYPE_CHECKER.redefine_many(
        {
            "array": lambda _, value: isinstance(value, list | tuple),
            "object": lambda _, value: isinstance(value, Mapping),
        }
    ),
)
