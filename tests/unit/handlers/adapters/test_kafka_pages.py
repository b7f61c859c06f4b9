"""A page read by its bytes says what the library reads in it, whatever its partitions' shapes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeTopicPartitionsResponse

from core.ground.errors import StillwaterError
from handlers.adapters.kafka_pages import Page, Pages, topic_in

BROKERS = st.integers(0, 600)
IDS = st.lists(BROKERS, min_size=1, max_size=4, unique=True)
# Made once: to make a strategy takes longer than to draw from it.
ELIGIBLE = st.none() | st.lists(BROKERS, max_size=2)
KNOWN, OFFLINE = st.none() | IDS, st.just([]) | IDS
ABOUT = st.none() | st.frozensets(BROKERS, max_size=3)


def page_in(body: bytes, about: frozenset[int] | None, pages: Pages | None = None) -> Page:
    return (pages or Pages()).reading().page(None, body, about)


def encoded(topics: list[Any], following: tuple[str, int] | None = None) -> bytes:
    cursor = following and DescribeTopicPartitionsResponse.Cursor(
        topic_name=following[0], partition_index=following[1]
    )
    answer = DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=cursor)
    return bytes(answer.encode(version=0))


def topic(name: str, partitions: list[Any], error: int = 0) -> tuple[Any, ...]:
    return error, name, UUID(int=7), False, partitions, -(1 << 31)


@st.composite
def partitions(draw: st.DrawFn) -> list[Any]:
    """Draw runs of partitions of one shape, and others between them."""
    rows: list[Any] = []
    first = draw(st.integers(0, 70_000))
    for _ in range(draw(st.integers(0, 4))):
        replicas = draw(IDS)
        isr = draw(st.just(replicas[::-1]) | st.lists(st.sampled_from(replicas), unique=True))
        eligible = draw(ELIGIBLE)
        for _ in range(draw(st.integers(1, 5))):
            error, leader = draw(st.sampled_from([(0, isr[0] if isr else -1), (5, -1), (0, -1)]))
            moved = [(each + len(rows)) % 600 for each in replicas]
            known, offline = draw(KNOWN), draw(OFFLINE)
            rows.append((error, first + len(rows), leader, 3, moved, isr, eligible, known, offline))
    return rows


@given(st.lists(partitions(), max_size=4), ABOUT, st.none() | st.just(("topic-1", 7)))
def test_a_page_says_what_the_library_reads_in_it(
    drawn: list[list[Any]], about: frozenset[int] | None, following: tuple[str, int] | None
) -> None:
    body = encoded([topic(f"topic-{n}" * 20, rows) for n, rows in enumerate(drawn)], following)
    pages = Pages()
    page_in(body, frozenset({601}), pages)
    page = page_in(body, about, pages)
    assert page == page_in(body, about)
    decoded = DescribeTopicPartitionsResponse.decode(body, version=0)
    expected = [topic_in(each, about) for each in decoded.topics]
    assert page.following == following
    for ours, theirs in zip(page.topics, expected, strict=True):
        assert ours[:4] == theirs[:4]
        for mine, other in zip(ours.partitions, theirs.partitions, strict=True):
            assert _told(mine) == _told(other)


def _told(found: Any) -> list[Any]:
    numbers = [found.error_code, found.partition_index, found.leader_id]
    lists = [found.replica_nodes, found.isr_nodes, found.eligible_leader_replicas or ()]
    return [*numbers, *map(list, lists)]


def test_of_many_partitions_in_sync_only_those_of_the_broker_are_kept() -> None:
    rows = [(0, n, n % 300, 3, ids, ids, [], [], []) for n in range(900) for ids in [_three(n)]]
    found = page_in(encoded([topic("orders", rows)]), frozenset({7})).topics[0]
    assert (found.described, found.highest) == (900, 899)
    held = [n for n in range(900) if 7 in _three(n)]
    assert [each.partition_index for each in found.partitions] == held


def _three(n: int) -> list[int]:
    return [n % 300, (n + 100) % 300, (n + 250) % 300]


def test_a_topic_with_an_error_has_no_partitions() -> None:
    found = page_in(encoded([topic("orders", [], error=29)]), frozenset({7})).topics[0]
    assert (found.error_code, found.described, found.highest) == (29, 0, -1)


def test_tags_that_nobody_knows_are_the_librarys_to_read() -> None:
    body = bytearray(encoded([topic("orders", [(0, 0, 1, 3, [1, 2], [1, 2], [], [], [])])]))
    body[-1:] = bytes([1, 9, 1, 0])  # one tag of one byte at the end of the answer
    found = page_in(bytes(body), frozenset({2})).topics[0]
    assert [list(each.replica_nodes) for each in found.partitions] == [[1, 2]]


@pytest.mark.parametrize("kept", [0, 5, 30, 60])
def test_a_page_that_is_cut_off_says_nothing(kept: int) -> None:
    ids = [1, 2, 3]
    body = encoded([topic("orders", [(0, n, 1, 3, ids, ids, [], [], []) for n in range(9)])])
    with pytest.raises(StillwaterError, match="page of partitions cannot be read"):
        page_in(body[:kept], frozenset({1}))


def test_a_page_that_has_changed_is_read_anew_and_one_that_has_not_asks_for_the_next() -> None:
    ids, pages = [1, 2, 3], Pages()
    well, behind = (
        encoded([topic("orders", [(0, 0, 1, 3, ids, isr, [], [], [])])], ("orders", 1))
        for isr in (ids, [1, 2])
    )
    last = encoded([topic("orders", [(0, 1, 1, 3, ids, ids, [], [], [])])])

    def read(first: bytes) -> list[int]:
        reading = pages.reading()
        found = [reading.page(None, first, frozenset({9}))]
        found.append(reading.page(("orders", 1), last, frozenset({9})))
        return [each.partition_index for page in found for each in page.topics[0].partitions]

    assert pages.ahead(None, 4) == [None]
    assert read(well) == []
    assert pages.ahead(None, 4) == [None, ("orders", 1)]
    assert read(behind) == [0]
    assert read(well) == []
