"""Asks every oracle about one resource, or about all of an environment; names what is unnamed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import local.refusals
from local.refusals import calls, changing, cloudformation, neighbours, schema
from local.refusals.refusal import Refusal, Wanted, limit_refusals

# Importing a module of this package enters its limits.
for module in pkgutil.iter_modules(local.refusals.__path__, f"{local.refusals.__name__}."):
    importlib.import_module(module.name)


def refusals(wanted: Wanted) -> list[Refusal]:
    """Return what AWS would refuse of one resource.

    A type that no table knows is refused as such: nobody has looked at what AWS says of it.
    """
    wanted = with_drawn_names(wanted)
    if wanted.type not in calls.TYPES:
        unknown = f"No table of local/refusals knows {wanted.type}; enter it in calls.toml."
        return [Refusal("create", "UnknownResourceType", unknown, resource=wanted.name)]
    spelled = list(schema.refusals(wanted))
    # What is of another type stops all else: nobody could judge it.
    found = [each for each in spelled if each.code == schema.MISTYPED]
    if not found:
        asked = (limit_refusals, changing.drift_refusals, calls.refusals, cloudformation.refusals)
        found = spelled + [each for oracle in asked for each in _answers(oracle, wanted)]
    return [replace(each, resource=wanted.name) for each in found]


def _answers(oracle: Callable[[Wanted], Iterator[Refusal]], wanted: Wanted) -> Iterator[Refusal]:
    """Yield what an oracle refuses; what it cannot even read is refused as AWS would."""
    try:
        yield from oracle(wanted)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        message = f"A value is of another type or form than this resource takes ({error})."
        yield Refusal("create", "ValidationError", message)


def all_refusals(everything: Iterable[Wanted]) -> list[Refusal]:
    """Return what AWS would refuse of an environment: each resource alone, then all together."""
    known = list(everything)
    alone = [refusal for each in known for refusal in refusals(each)]
    return [*alone, *neighbours.refusals(known)]


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
