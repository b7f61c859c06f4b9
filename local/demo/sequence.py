"""Counts, one by one, whether acknowledged records are there, once, and in order.

Every record carries its number, which only grows, and the moment it was sent. Pure: partitions and
values in, counts out; the load feeds it what a live consumer sees, and the whole topic at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

NANOSECONDS = 1_000_000_000


def value(number: int, sent_at: float, padding: bytes) -> bytes:
    """Return a record's value: its number, the epoch nanoseconds it was sent at, and padding."""
    return b"%d %d " % (number, sent_at * NANOSECONDS) + padding


def read(text: bytes) -> tuple[int, float]:
    """Return a record's number and the epoch seconds it was sent at."""
    number, sent_ns, _ = text.split(b" ", 2)
    return int(number), int(sent_ns) / NANOSECONDS


@dataclass
class ReadRecords:
    """The record numbers that were read, and what was wrong with their sequence.

    A number that comes again is a duplicate; one that comes after a larger one of its partition,
    and was not there before, is out of order.
    """

    numbers: set[int] = field(default_factory=set)
    duplicates: int = 0
    out_of_order: int = 0
    _last: dict[int, int] = field(default_factory=dict)

    def take(self, partition: int, number: int) -> None:
        """Count one record, in the order it was read."""
        if number in self.numbers:
            self.duplicates += 1
            return
        self.numbers.add(number)
        last = self._last.get(partition, -1)
        if number < last:
            self.out_of_order += 1
        else:
            self._last[partition] = number

    def lacks(self, acknowledged: Collection[int]) -> set[int]:
        """Return the acknowledged numbers that were not read."""
        return set(acknowledged) - self.numbers
