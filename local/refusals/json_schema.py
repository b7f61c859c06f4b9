"""Judges a value by a JSON schema, with the words that cfn-lint adds to it.

It says what is wrong as AWS's models do. A word that it does not know rules nothing out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.refusals.model import expression

Schema = Mapping[str, Any]
Wrongs = Iterator[tuple[str, str]]
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": (list, tuple),
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": Mapping,
    "string": str,
}


def wrongs(schema: Any, value: Any, root: Schema, at: str = "") -> Wrongs:
    """Yield where a value breaks a schema, and how; `root` holds what its references name.

    >>> list(wrongs({"properties": {"a": {"maximum": 3}}}, {"a": 4}, {}))
    [('a', 'Member must have value less than or equal to 3')]
    """
    if isinstance(schema, bool):
        if not schema:
            yield at, "Member must not be given here"
        return
    if "$ref" in schema:
        yield from wrongs(referred(schema["$ref"], root), value, root, at)
    yield from ((at, said) for said in _of_value(schema, value))
    yield from _of_parts(schema, value, root, at)
    yield from _of_choices(schema, value, root, at)


def referred(reference: str, root: Schema) -> Any:
    """Return the schema that a reference such as #/definitions/Tag names."""
    return functools.reduce(lambda found, part: found[part], reference.split("/")[1:], root)


def _is_right(schema: Any, value: Any, root: Schema) -> bool:
    return next(wrongs(schema, value, root), None) is None


def _of_value(schema: Schema, value: Any) -> Iterator[str]:
    kinds = schema.get("type")
    if kinds is not None and not _is_of(value, kinds if isinstance(kinds, list) else [kinds]):
        yield f"Member must be of type {kinds}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"Member must satisfy enum value set: [{', '.join(map(str, schema['enum']))}]"
    if "const" in schema and value != schema["const"]:
        yield f"Member must be {schema['const']}"
    for measured, least, most, what in _BOUNDS:
        size = measured(value)
        if size is not None and size < schema.get(least, size):
            yield f"Member must have {what} greater than or equal to {schema[least]}"
        if size is not None and size > schema.get(most, size):
            yield f"Member must have {what} less than or equal to {schema[most]}"
    yield from _of_form(schema, value)
    if schema.get("uniqueItems") and isinstance(value, list):
        texts = [str(each) for each in value]
        if len(set(texts)) < len(texts):
            yield "Member must have unique items"


def _of_form(schema: Schema, value: Any) -> Iterator[str]:
    step, pattern = schema.get("multipleOf"), schema.get("pattern")
    if step and _number(value) is not None and value % step:
        yield f"Member must be a multiple of {step}"
    if pattern and isinstance(value, str) and not expression(pattern).search(value):
        yield f"Member must satisfy regular expression pattern: {pattern}"


def _is_of(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True
    return any(isinstance(value, _TYPES[kind]) for kind in kinds)


def _length(kind: type[str | list[Any] | dict[str, Any]]) -> Callable[[Any], int | None]:
    def measured(value: Any) -> int | None:
        return len(value) if isinstance(value, kind) else None

    return measured


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_BOUNDS: tuple[tuple[Callable[[Any], float | None], str, str, str], ...] = (
    (_number, "minimum", "maximum", "value"),
    (_length(str), "minLength", "maxLength", "length"),
    (_length(list), "minItems", "maxItems", "length"),
    (_length(dict), "minProperties", "maxProperties", "length"),
)


def _of_parts(schema: Schema, value: Any, root: Schema, at: str) -> Wrongs:
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value, 1):
            yield from wrongs(schema["items"], each, root, f"{at}.{number}".lstrip("."))
    if not isinstance(value, Mapping):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    rest = schema.get("additionalProperties", True)
    for key, each in value.items():
        inner = f"{at}.{key}".lstrip(".")
        found = [known[key]] if key in known else []
        found += [own for form, own in patterns.items() if re.search(form, str(key))]
        for own in found or [rest]:
            yield from wrongs(own, each, root, inner)
    yield from ((at, said) for said in _of_keys(schema, value))


def _of_keys(schema: Schema, value: Mapping[str, Any]) -> Iterator[str]:
    for key in schema.get("required", ()):
        if key not in value:
            yield f"Member {key} must not be null"
    for key, others in schema.get("dependentRequired", {}).items():
        if key in value and (missing := [each for each in others if each not in value]):
            yield f"{missing[0]} must be specified with {key}"
    for key, others in schema.get("dependentExcluded", {}).items():
        if key in value and (extra := [each for each in others if each in value]):
            yield f"{extra[0]} cannot be specified with {key}"
    for word, least, most in (("requiredXor", 1, 1), ("requiredOr", 1, 99)):
        keys = schema.get(word, ())
        if keys and not least <= sum(key in value for key in keys) <= most:
            yield f"Exactly one of {', '.join(keys)} must be specified"


def _of_choices(schema: Schema, value: Any, root: Schema, at: str) -> Wrongs:
    for each in schema.get("allOf", ()):
        yield from wrongs(each, value, root, at)
    for word, most in (("anyOf", 99), ("oneOf", 1)):
        choices = schema.get(word)
        if choices and not 1 <= sum(_is_right(each, value, root) for each in choices) <= most:
            yield at, "Member must be of one of the forms that it has"
    if "not" in schema and _is_right(schema["not"], value, root):
        yield at, "Member must not be of this form"
    if "if" in schema:
        word = "then" if _is_right(schema["if"], value, root) else "else"
        yield from wrongs(schema.get(word, True), value, root, at)
