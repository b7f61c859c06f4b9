"""Turns values of a program into the shapes that AWS's APIs describe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def _scalar(kind: str, value: Any) -> Any:
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind in {"integer", "long"}:
        return int(value)
    if kind in {"float", "double"}:
        return float(value)
    if kind == "string" and isinstance(value, Mapping | list):
        return json.dumps(value)
    if kind == "string":
        return value if isinstance(value, str) else str(value).lower()
    return value


def coerce(shape: Any, value: Any) -> Any:
    """Turn a Pulumi value into what an API's shape wants, by the API's own description.

    Names match without case, values take the shape's type ("true" becomes True, a document its
    text), and what the API does not know is left out: Pulumi's resources carry settings of several
    calls.
    """
    if shape.type_name == "structure" and isinstance(value, Mapping):
        members = {name.lower(): name for name in shape.members}
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = members.get(key.lower())
            if name is not None and item is not None:
                found[name] = coerce(shape.members[name], item)
        return found
    if shape.type_name == "list":
        items = value if isinstance(value, list) else [value]
        return [coerce(shape.member, item) for item in items if item is not None]
    if shape.type_name == "map" and isinstance(value, Mapping):
        return {str(k): coerce(shape.value, item) for k, item in value.items()}
    return _scalar(shape.type_name, value)
