"""Which keys of a configuration the JSON schema of an EKS add-on does not admit.

Only what EKS refuses a configuration for in practice: keys that are not there where
additionalProperties is false, and values of another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def refused_keys(
    schema: Mapping[str, Any], value: object, root: Mapping[str, Any] | None = None, at: str = ""
) -> Iterator[str]:
    """Yield the dotted name of each key that the schema refuses."""
    root = schema if root is None else root
    schema = _resolved_schema(schema, root)
    kinds = schema.get("type")
    allowed = [kinds] if isinstance(kinds, str) else list(kinds or ())
    if allowed and not any(_is(value, kind) for kind in allowed):
        yield at or "(all of it)"
        return
    if not isinstance(value, Mapping):
        return
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for key, inner in value.items():
        name = f"{at}.{key}" if at else str(key)
        if key in properties:
            yield from refused_keys(properties[key], inner, root, name)
        elif others is False:
            yield name
        elif isinstance(others, Mapping):
            yield from refused_keys(others, inner, root, name)


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES.get(kind, (object,)))


def _resolved_schema(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    seen: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        found: Any = root
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        schema = found
    return schema
