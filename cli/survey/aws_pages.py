"""Lists what AWS holds, over all pages of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def pages(client: Any, operation: str, key: str, **given: Any) -> Iterator[Any]:
    """Yield what a listing holds, over all of its pages."""
    for page in client.get_paginator(operation).paginate(**given):
        yield from page.get(key) or ()
