"""Asks every oracle about one resource, or about all of an environment."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import local.refusals
from local.refusals import (
    afterwards,
    calls,
    changing,
    cloudformation,
    drawn,
    limits,
    neighbours,
    schema,
)
from local.refusals.refusal import Refusal, Wanted

# Importing a module of this package enters its limits.
for module in pkgutil.iter_modules(local.refusals.__path__, f"{local.refusals.__name__}."):
    importlib.import_module(module.name)


def refusals(wanted: Wanted) -> list[Refusal]:
    """Return what AWS would refuse of one resource.

    A type that no table knows is refused as such: nobody has looked at what AWS says of it.
    """
    wanted = drawn.with_drawn_names(wanted)
    if wanted.type not in calls.TYPES:
        unknown = f"No table of local/refusals knows {wanted.type}; enter it in catalogue/."
        return [Refusal("create", "UnknownResourceType", unknown, resource=wanted.name)]
    spelled = list(schema.refusals(wanted))
    # What is of another type stops all else: nobody could judge it.
    found = [each for each in spelled if each.code == schema.MISTYPED]
    if not found:
        asked = (limits.refusals, afterwards.refusals, calls.refusals, cloudformation.refusals)
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


def change_refusals(there: Wanted, wanted: Wanted) -> list[Refusal]:
    """Return what AWS would refuse of a step from one set of inputs to another."""
    return list(changing.refusals(there, wanted))


def deletion_refusals(leaving_one: Wanted, others: Iterable[Wanted]) -> list[Refusal]:
    """Return why AWS would not delete a resource beside all others; its name here is its id."""
    return list(changing.deletion_refusals(leaving_one, others))
