"""Counts attempts: one is a record that is produced to a broker and read back in time.

Pure but for its own memory; times come from one monotonic clock. An attempt counts from when it was
due, whether or not a client came to send it: what is stuck before Kafka has failed, too.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from core.settings.probe import ATTEMPTS, FAILED, SECONDS

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PRODUCE, CONSUME = "produce", "consume"


@dataclass
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass
class _Attempt:
    due_at: float
    acked: bool = False


class Attempts:
    """The attempts under way and what became of the others, by broker."""

    def __init__(self, brokers: Iterable[int], limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._brokers = tuple(brokers)
        self._open: dict[tuple[int, int], _Attempt] = {}
        self._begun: Counter[int] = Counter()
        self._failed: Counter[tuple[int, str]] = Counter()
        self._seconds = {(b, what): _Histogram() for b in self._brokers for what in STEPS}
        # Clients call from threads of their own.
        self._lock = threading.Lock()

    def begin(self, broker: int, number: int, now: float) -> None:
        """Note that an attempt is due now."""
        with self._lock:
            self._begun[broker] += 1
            self._open[broker, number] = _Attempt(now)

    def note_acked(self, broker: int, number: int, now: float) -> None:
        """Note that the brokers have acknowledged an attempt's record."""
        with self._lock:
            found = self._open.get((broker, number))
            if found is not None and not found.acked:
                found.acked = True
                self._seconds[broker, PRODUCE].add(now - found.due_at)

    def read(self, broker: int, number: int, now: float) -> None:
        """Note that an attempt's record was read; in time, the attempt has succeeded."""
        with self._lock:
            found = self._open.get((broker, number))
            if found is None or now - found.due_at > self._limit:
                return
            self._seconds[broker, CONSUME].add(now - found.due_at)
            # Read before its acknowledgement came: it is in the log all the same.
            del self._open[broker, number]

    def expire(self, now: float) -> None:
        """Count what was not read back in time as failed, by the step it never took."""
        with self._lock:
            late = [key for key, each in self._open.items() if now - each.due_at > self._limit]
            for key in late:
                step = CONSUME if self._open.pop(key).acked else PRODUCE
                self._failed[key[0], step] += 1

    def page(self) -> str:
        """Return all of it as Prometheus reads it (text format 0.0.4)."""
        with self._lock:
            return "\n".join([*self._counters(), *self._histograms(), ""])

    def _counters(self) -> Iterator[str]:
        yield f"# TYPE {ATTEMPTS} counter"
        yield from (f'{ATTEMPTS}{{broker="{b}"}} {self._begun[b]}' for b in self._brokers)
        yield f"# TYPE {FAILED} counter"
        for broker in self._brokers:
            for step in STEPS:
                count = self._failed[broker, step]
                yield f'{FAILED}{{broker="{broker}",step="{step}"}} {count}'

    def _histograms(self) -> Iterator[str]:
        yield f"# TYPE {SECONDS} histogram"
        for (broker, step), each in self._seconds.items():
            labels, below = f'broker="{broker}",step="{step}"', 0
            for bound, count in zip((*BUCKETS, "+Inf"), each.counts, strict=True):
                below += count
                yield f'{SECONDS}_bucket{{{labels},le="{bound}"}} {below}'
            yield f"{SECONDS}_sum{{{labels}}} {each.total:.6f}"
            yield f"{SECONDS}_count{{{labels}}} {below}"


STEPS = (PRODUCE, CONSUME)


def replica_placement(racks: Mapping[int, str | None], factor: int) -> dict[int, list[int]]:
    """Return each broker's replicas for the partition it leads: itself, then other racks first.

    >>> placed({10: "a", 20: "b", 30: "a"}, 2)
    {10: [10, 20], 20: [20, 30], 30: [30, 20]}
    """
    ids = sorted(racks)
    found = {}
    for place, broker in enumerate(ids):
        others = [*ids[place + 1 :], *ids[:place]]
        others.sort(key=lambda other: racks[other] == racks[broker])
        found[broker] = [broker, *others][:factor]
    return found
