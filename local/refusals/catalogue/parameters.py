"""Knows how several services spell what a resource is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.refusals.documents import text

Inputs = Mapping[str, Any]


def attributes(inputs: Inputs, names: Mapping[str, str]) -> dict[str, str]:
    """Return inputs as a service's attributes, by the names it has for them: every value a text."""
    given = {member: inputs[key] for key, member in names.items() if inputs.get(key) is not None}
    return {member: text(value) for member, value in given.items()}
