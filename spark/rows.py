"""Rows of small tables as plain values, and how they are grouped and added up.

What a bill comes to is a few thousand rows once it is added up.
"""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from core.cost.pricing import total

NOTHING = Decimal(0)
# A row of a table, its columns as attributes.
Found = Any

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def row_type(names: Any) -> Any:
    """Return the named tuple of rows with these columns, or with a schema's."""
    return _named(tuple(getattr(names, "names", names)))


@cache
def _named(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)  # noqa: PYI024 - its names are a table's


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return rows by a key, in the order in which each key was first seen."""
    groups: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def summed(rows: Iterable[Found], name: str) -> Decimal:
    """Return the exact sum of a column; nothing is nought."""
    return total(value for row in rows if (value := getattr(row, name)) is not None)


def largest(values: Iterable[T | None]) -> T | None:
    """Return the largest of what is known, or None."""
    return max((value for value in values if value is not None), default=None)  # type: ignore[type-var] # of one column
