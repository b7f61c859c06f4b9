"""Looks again and again while somebody watches, and shares each reading between all who do.

Nobody asks AWS anything while no page is open. A source that is slow holds up no other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from cli.desk.reading import EVERY_SECONDS, DeskReading, DeskSource, LastAnswer
from cli.desk.state import page_state

# A page that gets no word for longer says that it is stale.
BEAT_SECONDS = 2.0


@dataclass
class DeskWatch:
    """One environment as its viewers see it; `ask` blocks, so it is asked in a thread."""

    reading: DeskReading
    ask: Callable[[DeskSource], LastAnswer]
    clock: Callable[[], float] = time.time
    viewers: int = 0
    _asked_at: dict[DeskSource, float] = field(default_factory=dict)
    _under_way: dict[DeskSource, asyncio.Task[None]] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _looking: asyncio.Task[None] | None = None

    async def states(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what is shown: at once, at every news and at every beat."""
        self.viewers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                yield page_state(self.reading, self.clock())
                async with self._news:
                    try:
                        await asyncio.wait_for(self._news.wait(), BEAT_SECONDS)
                    except TimeoutError:
                        continue
        finally:
            self.viewers -= 1

    async def look_now(self) -> None:
        """Read the ledger anew: somebody has just changed it."""
        self._asked_at.pop(DeskSource.LEDGER, None)
        await self._read(DeskSource.LEDGER)

    async def _look(self) -> None:
        try:
            while self.viewers:
                for source in DeskSource:
                    if self._is_due(source):
                        self._asked_at[source] = self.clock()
                        self._under_way[source] = asyncio.create_task(self._read(source))
                await asyncio.sleep(BEAT_SECONDS / 4)
        finally:
            self._looking = None

    def _is_due(self, source: DeskSource) -> bool:
        running = self._under_way.get(source)
        if running is not None and not running.done():
            return False
        asked_at = self._asked_at.get(source)
        return asked_at is None or self.clock() - asked_at >= EVERY_SECONDS[source]

    async def _read(self, source: DeskSource) -> None:
        answer = await asyncio.to_thread(self.ask, source)
        async with self._news:
            self.reading = self.reading.after(source, answer)
            self._news.notify_all()
