"""Names what a program left unnamed but for a beginning, as the provider does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.refusals.refusal import Wanted

# Terraform's unique ids: a time and a counter. A name has so many characters less for a prefix.
DRAWN_CHARACTERS = 26
# Where a name's beginning stands -> where the name does.
PREFIXES: Mapping[str, str] = {
    "bucketPrefix": "bucket",
    "namePrefix": "name",
    "nodeGroupNamePrefix": "nodeGroupName",
    "statementIdPrefix": "statementId",
}


def drawn_name(prefix: object, ending: str, inputs: Mapping[str, Any]) -> str:
    """Return a name as long as the provider would make it, with the end that FIFO ones have."""
    fifo = inputs.get("fifoQueue") or inputs.get("fifoTopic")
    return f"{prefix}{ending.rjust(DRAWN_CHARACTERS, '0')}{'.fifo' if fifo else ''}"


def with_drawn_names(wanted: Wanted) -> Wanted:
    """Return a resource with a name where it has a beginning of one alone."""
    inputs: dict[str, Any] = dict(wanted.inputs)
    for prefix, name in PREFIXES.items():
        if inputs.get(prefix) and inputs.get(name) is None:
            inputs[name] = drawn_name(inputs.pop(prefix), "1", inputs)
    return replace(wanted, inputs=inputs)
