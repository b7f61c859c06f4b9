"""Lists what AWS holds, over all pages, and of as many names as a call takes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# A filter takes no more values.
FILTER_VALUES = 200


def pages(client: Any, operation: str, key: str, **given: Any) -> Iterator[Any]:
    """Yield what a listing holds, over all of its pages."""
    for page in client.get_paginator(operation).paginate(**given):
        yield from page.get(key) or ()


def portions(names: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield names in order, each once, at most so many at a time."""
    every = sorted(set(names))
    for start in range(0, len(every), most):
        yield every[start : start + most]


def named(
    client: Any,
    operation: str,
    key: str,
    chosen: str,
    names: Iterable[str],
    beside: Iterable[Mapping[str, object]] = (),
    **given: Any,
) -> Iterator[Any]:
    """Yield what EC2 has of some names by a filter, `chosen`, which passes over what is gone."""
    for portion in portions(names, FILTER_VALUES):
        filters = [{"Name": chosen, "Values": portion}, *beside]
        yield from pages(client, operation, key, Filters=filters, **given)
