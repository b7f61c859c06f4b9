"""Knows how several services spell what a resource is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.refusals.documents import text

Inputs = Mapping[str, Any]


def pick(inputs: Inputs, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs that are given, under their API names: {"cidrBlock": "CidrBlock"}."""
    return {member: inputs[key] for key, member in names.items() if inputs.get(key) is not None}


def attributes(inputs: Inputs, names: Mapping[str, str]) -> dict[str, str]:
    """Return inputs as a service's attributes, by the names it has for them: every value a text."""
    return {member: text(value) for member, value in pick(inputs, names).items()}
