"""Lists what AWS holds, over all pages of an answer, by names or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handlers.adapters.calls import portions

# A filter takes no more values.
FILTER_VALUES = 200


def pages(client: Any, operation: str, key: str, **given: Any) -> Iterator[Any]:
    """Yield what a listing holds, over all of its pages."""
    for page in client.get_paginator(operation).paginate(**given):
        yield from page.get(key) or ()


def of_names(
    client: Any,
    operation: str,
    key: str,
    chosen: str,
    names: Iterable[str],
    beside: Iterable[Mapping[str, object]] = (),
    **given: Any,
) -> Iterator[Any]:
    """Yield what EC2 has of some names by a filter, `chosen`, which passes over what is gone."""
    for portion in portions(sorted(set(names)), FILTER_VALUES):
        filters = [{"Name": chosen, "Values": portion}, *beside]
        yield from pages(client, operation, key, Filters=filters, **given)
