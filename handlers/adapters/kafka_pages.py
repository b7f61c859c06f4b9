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

from core.ground.errors import StillwaterError

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


Cursor = tuple[str, int] | None  # where a page begins: topic and partition


class Page(NamedTuple):
    """One answer, and where the next one begins; None: it was the last."""

    topics: tuple[PageTopic, ...]
    following: Cursor


class _Unforeseen(Exception):  # no error: the library reads such a page
    pass


class Pages:
    """What was read of pages before, so that one that has not changed is not read again.

    Kafka is asked for every page each time, and all its bytes are compared. Where pages began is
    remembered too: the next ones are asked for before the last has said where they begin.
    """

    def __init__(self) -> None:
        self._known: dict[Cursor, tuple[bytes, _Prepared]] = {}

    def ahead(self, cursor: Cursor, most: int) -> list[Cursor]:
        """Return where this page and those after it began the last time."""
        found = [cursor]
        while len(found) < most and (known := self._known.get(found[-1])) is not None:
            following = known[1].following
            if following is None:
                break
            found.append(following)
        return found

    def reading(self) -> PagesOfAReading:
        return PagesOfAReading(self)

    def page(self, cursor: Cursor, body: bytes) -> _Prepared | None:
        known = self._known.get(cursor)
        return known[1] if known is not None and known[0] == body else None

    def replace(self, pages: dict[Cursor, tuple[bytes, _Prepared]]) -> None:
        self._known = pages


class PagesOfAReading:
    """The pages of one reading; those it has taken are what the next one knows."""

    def __init__(self, before: Pages) -> None:
        self._before, self._taken = before, dict[Cursor, tuple[bytes, _Prepared]]()

    def page(self, cursor: Cursor, body: bytes, about: frozenset[int] | None) -> Page:
        """Return what an answer says; raises StillwaterError where it is none.

        Of partitions that no broker of `about` holds, only those that are not well are in it.
        """
        found = self._before.page(cursor, body)
        try:
            prepared = found or _Scan(body).prepare()
            page = prepared.page(body, about)
        except (_Unforeseen, IndexError, ValueError, struct.error):
            return _library_page(body, about)
        self._taken[cursor] = body, prepared
        if page.following is None:
            self._before.replace(self._taken)
        return page


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


def _library_page(body: bytes, about: frozenset[int] | None) -> Page:
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


@dataclass(frozen=True, slots=True)
class _Run:
    """Partitions of one shape, one behind the other; `well`: all in sync and led."""

    at: int
    end: int
    shape: _Shape
    well: bool

    def matching_rows(self, body: bytes, about: frozenset[int] | None) -> Iterator[PagePartition]:
        for place in self._places(body, about):
            at = self.at + self.shape.stride * place
            found = self.shape.partition(self.shape.row.unpack_from(body, at))
            if matters(found, about):
                yield found

    def _places(self, body: bytes, about: frozenset[int] | None) -> Collection[int]:
        """Return where partitions may be that matter."""
        shape = self.shape
        if about is None or not self.well:
            return range((self.end - self.at) // shape.stride)
        found = set[int]()
        endings = {broker & 255 for broker in about}
        for number in range(shape.replicas):
            last = self.at + _ARRAYS + 1 + _ID_BYTES * number + 3
            column = body[last : self.end : shape.stride]
            for ending in endings:
                place = column.find(ending)
                while place >= 0:
                    found.add(place)
                    place = column.find(ending, place + 1)
        return sorted(found)


class _Topic(NamedTuple):
    name: str
    error_code: int
    described: int
    highest: int
    runs: tuple[_Run, ...]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is in a page, whoever it is read for."""

    topics: tuple[_Topic, ...]
    following: Cursor

    def page(self, body: bytes, about: frozenset[int] | None) -> Page:
        topics = (
            PageTopic(
                *each[:4], tuple(row for run in each.runs for row in run.matching_rows(body, about))
            )
            for each in self.topics
        )
        return Page(tuple(topics), self.following)


class _Scan:
    """Walks through one page."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def prepare(self) -> _Prepared:
        self._at = 4  # the time that the broker throttles
        topics = tuple(self._topic() for _ in range(self._count()))
        following = None
        if self._int(">b") >= 0:
            following = self._text(), self._int(">i")
            self._skip_no_tags()
        self._skip_no_tags()
        if self._at != len(self._body):
            raise _Unforeseen
        return _Prepared(topics, following)

    def _topic(self) -> _Topic:
        error, name = self._int(">h"), self._text()
        self._at += _TOPIC_ID_BYTES + 1  # its id, and whether it is Kafka's own
        count = left = self._count()
        highest, runs = -1, list[_Run]()
        while left:
            shape = self._shape_here()
            rows = self._alike(shape, left)
            end = self._at + shape.stride * rows
            highest = max(highest, self._highest(shape, end))
            runs.append(_Run(self._at, end, shape, self._well(shape, end)))
            self._at, left = end, left - rows
        self._at += 4  # what the user may do with it
        self._skip_no_tags()
        return _Topic(name, error, count, highest, tuple(runs))

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

    def _well(self, shape: _Shape, end: int) -> bool:
        """Say whether all are in sync and led: a leader below zero begins with another byte."""
        zeros = (self._column(shape, at, end) for at in (0, 1, _LEADER))
        return shape.replicas == shape.in_sync and not any(each.strip(b"\0") for each in zeros)

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

    def _skip_no_tags(self) -> None:
        if self._varint():
            raise _Unforeseen
