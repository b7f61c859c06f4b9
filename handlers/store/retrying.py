"""Tries a conditional write again, over what somebody else has written meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from core.ground.errors import Conflict

T = TypeVar("T")
# Writers meet at a document by chance; more than a few times in a row is a fault.
MOST_ATTEMPTS = 5


def over_the_newest(change: Callable[[], T]) -> T:
    """Return what a change does that reads before it writes; raises Conflict if others keep on."""
    for _ in range(MOST_ATTEMPTS - 1):
        try:
            return change()
        except Conflict:
            continue
    return change()
