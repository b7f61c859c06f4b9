"""Lists what the twin's AWS has yet to do: a booting instance runs two seconds later, and so on."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Agenda:
    """Actions with the time at which each is due; the time is passed in."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def add(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._entries, (at, next(self._order), action))

    def run_due(self, now: float) -> int:
        """Run what is due, earliest first, and return how many actions that were."""
        count = 0
        while self._entries and self._entries[0][0] <= now:
            heapq.heappop(self._entries)[2]()
            count += 1
        return count
