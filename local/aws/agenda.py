"""Keeps the clock of the twin's AWS: what is due when, and rounds that are done again and again."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
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


LOG = logging.getLogger(__name__)


def again_and_again(
    name: str, each: Callable[[], object], every_seconds: float, stopped: threading.Event
) -> None:
    """Do rounds until stopped; one that fails is told, and time goes on for the rest."""
    while not stopped.wait(every_seconds):
        try:
            each()
        except Exception:
            LOG.exception("a round of the %s failed", name)
