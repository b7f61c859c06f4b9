"""Reads a page of partitions as it came off the wire, and makes objects of what matters alone.

At 200 brokers an answer describes 267,000 partitions, and a decision needs some 4,000 of them: the
library's object for each takes most of a reading's time. Partitions of one topic mostly have one
shape, so many replicas and so many of them in sync: then each field stands at one distance from the
next partition's, and a whole column of bytes is looked at at once. Any other partition is taken
singly, and a page that has something unforeseen is the library's.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeTopicPartitionsResponse

from core.errors import StillwaterError

# int16 error, then int32 number, leader and leader's epoch; then five arrays, and no tags.
_NUMBER, _LEADER, _ARRAYS = 2, 6, 14
_ID_BYTES = 4
_TOPIC_ID_BYTES = 16
_ARRAYS_OF_A_PARTITION = 5


class PagePartition(NamedTuple):
    """One partition, by the names that the library has for the same."""

    error_code: int
    partition_index: int
    leader_id: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] = ()


class PageTopic(NamedTuple):
    """One topic of a page: how many partitions it describes, and those that matter."""

    name: str
    error_code: int
    described: int
    highest: int
    partitions: tuple[Any, ...]


class Page(NamedTuple):
    """One answer, and where the next one begins: topic and partition; None: it was the last."""

    topics: tuple[PageTopic, ...]
    following: tuple[str, int] | None


class _Unforeseen(Exception):  # no error: the library reads such a page
    pass


def page_in(body: bytes, about: frozenset[int] | None) -> Page:
    """Return what a DescribeTopicPartitions answer says; raises StillwaterError where it is none.

    Of partitions that no broker of `about` holds, only those that are not well are in it.
    """
    try:
        return _Scan(body, about).page()
    except (_Unforeseen, IndexError, ValueError, struct.error):
        return _by_the_library(body, about)


def matters(found: Any, about: frozenset[int] | None) -> bool:
    """Say whether a decision about these brokers may need a partition; None is all of them."""
    if about is None or found.error_code or found.leader_id < 0:
        return True
    replicas = found.replica_nodes
    return len(found.isr_nodes) != len(replicas) or not about.isdisjoint(replicas)


def topic_in(found: Any, about: frozenset[int] | None) -> PageTopic:
    """Return a topic as the library has decoded it."""
    numbers = [each.partition_index for each in found.partitions]
    kept = tuple(each for each in found.partitions if matters(each, about))
    return PageTopic(found.name, found.error_code, len(numbers), max(numbers, default=-1), kept)


def _by_the_library(body: bytes, about: frozenset[int] | None) -> Page:
    try:
        answer = DescribeTopicPartitionsResponse.decode(body, version=0)
    except (IndexError, ValueError, struct.error) as error:
        raise StillwaterError(f"Kafka's page of partitions cannot be read: {error}") from error
    cursor = answer.next_cursor
    following = None if cursor is None else (cursor.topic_name, cursor.partition_index)
    return Page(tuple(topic_in(each, about) for each in answer.topics), following)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How partitions with as many replicas of each kind lie in a page, one behind the other."""

    stride: int
    columns: tuple[tuple[int, bytes], ...]  # where its arrays' lengths stand, and what they are
    row: struct.Struct
    replicas: int
    in_sync: int

    def partition(self, values: tuple[int, ...]) -> PagePartition:
        error, number, leader = values[:3]
        ids, following = values[3 : 3 + self.replicas], values[3 + self.replicas :]
        isr, eligible = following[: self.in_sync], following[self.in_sync :]
        return PagePartition(error, number, leader, ids, isr, eligible)


@lru_cache(maxsize=256)
def _shape(codes: bytes) -> _Shape:
    """Return the shape by the five arrays' lengths as they are written: one more, and 0 is none."""
    lengths = [max(code - 1, 0) for code in codes]
    at, columns = _ARRAYS, []
    for code, length in zip(codes, lengths, strict=True):
        columns.append((at, bytes([code])))
        at += 1 + _ID_BYTES * length
    columns.append((at, b"\0"))  # no tags
    replicas, in_sync, eligible, *rest = lengths
    skipped = _ID_BYTES * sum(rest) + len(rest) + 1
    row = struct.Struct(f">hii4xx{replicas}ix{in_sync}ix{eligible}i{skipped}x")
    return _Shape(at + 1, tuple(columns), row, replicas, in_sync)


class _Scan:
    """Walks through one page."""

    def __init__(self, body: bytes, about: frozenset[int] | None) -> None:
        self._body, self._about, self._at = body, about, 0

    def page(self) -> Page:
        self._at = 4  # the time that the broker throttles
        topics = tuple(self._topic() for _ in range(self._count()))
        following = None
        if self._int(">b") >= 0:
            following = self._text(), self._int(">i")
            self._untagged()
        self._untagged()
        if self._at != len(self._body):
            raise _Unforeseen
        return Page(topics, following)

    def _topic(self) -> PageTopic:
        error, name = self._int(">h"), self._text()
        self._at += _TOPIC_ID_BYTES + 1  # its id, and whether it is Kafka's own
        count = left = self._count()
        highest, kept = -1, list[PagePartition]()
        while left:
            shape = self._shape_here()
            rows = self._alike(shape, left)
            end = self._at + shape.stride * rows
            highest = max(highest, self._highest(shape, end))
            kept += self._kept(shape, end)
            self._at, left = end, left - rows
        self._at += 4  # what the user may do with it
        self._untagged()
        return PageTopic(name, error, count, highest, tuple(kept))

    def _shape_here(self) -> _Shape:
        body, at, codes = self._body, self._at + _ARRAYS, bytearray()
        for _ in range(_ARRAYS_OF_A_PARTITION):
            code = body[at]
            if code > 127:  # a longer length has a second byte
                raise _Unforeseen
            codes.append(code)
            at += 1 + _ID_BYTES * max(code - 1, 0)
        if body[at]:
            raise _Unforeseen
        return _shape(bytes(codes))

    def _alike(self, shape: _Shape, most: int) -> int:
        """Return how many partitions from here on have the shape; the first one has.

        The first that has not differs in the length of some array that stands where the shape has
        it: all before that length is as long as in the shape.
        """
        stop = self._at + shape.stride * most
        alike = most
        for offset, code in shape.columns:
            column = self._body[self._at + offset : stop : shape.stride]
            alike = min(alike, len(column) - len(column.lstrip(code)))
        return alike

    def _column(self, shape: _Shape, offset: int, end: int) -> bytes:
        return self._body[self._at + offset : end : shape.stride]

    def _highest(self, shape: _Shape, end: int) -> int:
        upper, third, last = (self._column(shape, _NUMBER + k, end) for k in (1, 2, 3))
        if upper.strip(b"\0") or self._column(shape, _NUMBER, end).strip(b"\0"):
            raise _Unforeseen  # no broker has as many partitions of one topic
        top = max(third)
        if third.count(top) == len(third):
            return top << 8 | max(last)
        return max(a << 8 | b for a, b in zip(third, last, strict=True))

    def _kept(self, shape: _Shape, end: int) -> Iterator[PagePartition]:
        for place in self._places(shape, end):
            at = self._at + shape.stride * place
            found = shape.partition(shape.row.unpack_from(self._body, at))
            if matters(found, self._about):
                yield found

    def _places(self, shape: _Shape, end: int) -> Collection[int]:
        """Return where partitions may be that matter."""
        everywhere = range((end - self._at) // shape.stride)
        if self._about is None or shape.replicas != shape.in_sync:
            return everywhere
        unwell = self._column(shape, 0, end) + self._column(shape, 1, end)
        leaders = self._column(shape, _LEADER, end)  # a leader below zero begins with another byte
        if unwell.strip(b"\0") or leaders.strip(b"\0"):
            return everywhere
        found = set[int]()
        endings = {broker & 255 for broker in self._about}
        for number in range(shape.replicas):
            last = _ARRAYS + 1 + _ID_BYTES * number + 3
            column = self._column(shape, last, end)
            for ending in endings:
                place = column.find(ending)
                while place >= 0:
                    found.add(place)
                    place = column.find(ending, place + 1)
        return sorted(found)

    def _int(self, written: str) -> int:
        (value,) = struct.unpack_from(written, self._body, self._at)
        self._at += struct.calcsize(written)
        return int(value)

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._body[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:  # the last of a number's bytes
                return value
            shift += 7

    def _count(self) -> int:
        return max(self._varint() - 1, 0)

    def _text(self) -> str:
        length = self._count()
        text = self._body[self._at : self._at + length].decode()
        self._at += length
        return text

    def _untagged(self) -> None:
        if self._varint():
            raise _Unforeseen
