"""Knows how several services spell what a resource is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Inputs = Mapping[str, Any]


def attributes(inputs: Inputs, names: Mapping[str, str]) -> dict[str, str]:
    return {
        member: str(inputs[key]).lower() if isinstance(inputs[key], bool) else str(inputs[key])
        for key, member in names.items()
        if inputs.get(key) is not None
    }
