"""A reading over real protocol bytes: what is hidden, refused or lagging makes it blind."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaTimeoutError
from kafka.protocol.admin import DescribeTopicPartitionsResponse

from core.availability.consent import check_returned, may_leave
from core.availability.wholeness import MOVING_LEADERS
from core.ground.errors import StillwaterError
from core.health.kafka import broker_verdict, partitions_verdict
from core.health.verdict import Health
from core.views import ClusterView
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_pages import Page, Pages, topic_in
from tests.every_case import every_case
from tests.fake_kafka import ALL, ALTER, DESCRIBE, DESCRIBE_CONFIGS, FakeKafka, FakePartition
from tests.unit.kafka_in_memory import NOW_MS, answering, three_brokers


def reading(cluster: FakeKafka, about: set[int] | None = None) -> ClusterView:
    with answering(cluster):
        return KafkaAdmin(["a:1"], needed=MOVING_LEADERS).read(about)


def answers(**otherwise: Any) -> Callable[[FakeKafka], None]:
    """Let Kafka's brokers answer so."""
    return lambda cluster: vars(cluster).update(otherwise)


HIDDEN = "grant the functions' user Describe on every topic"
PAYMENTS = {"payments"}
BEFORE_4_1, BEFORE_3_8 = {"ListConfigResources"}, {"ListConfigResources", "DescribeTopicPartitions"}
VOTERS = {"controller.quorum.voters": "10@a:1,11@b:1,12@c:1,13@d:1"}
CASES: dict[str, tuple[Callable[[FakeKafka], Any], str]] = {
    "Describe on topics": (lambda c: c.hidden.update(c.topics), HIDDEN),
    "one topic hidden": (answers(hidden=PAYMENTS), HIDDEN),
    "hidden, brokers before 4.1": (answers(hidden=PAYMENTS, too_old=BEFORE_4_1), HIDDEN),
    "hidden, brokers before 3.8": (answers(hidden=PAYMENTS, too_old=BEFORE_3_8), HIDDEN),
    "Describe on the cluster": (answers(cluster=ALL - {DESCRIBE}), "user Describe on the cluster"),
    "Alter on the cluster": (answers(cluster=ALL - {ALTER}), "user Alter on the cluster"),
    "brokers' settings": (answers(cluster=ALL - {DESCRIBE_CONFIGS}),
        "user DescribeConfigs on the cluster"),
    "a topic's settings": (answers(without_configs=PAYMENTS), "DescribeConfigs on topic payments"),
    "no minimum": (answers(minimums={"payments": ""}), "min.insync.replicas of topic payments"),
    "a directory failed": (answers(failed={2: "/var/lib/kafka/data-1/kafka-log2"}),
        "data-1/kafka-log2 (KafkaStorage)"),
    "a frozen broker": (answers(silent={3}), "Broker 3 did not answer DescribeLogDirs"),
    "old metadata": (answers(unaware={1: PAYMENTS}), "UnknownTopicOrPartition"),
    "an old list": (answers(unaware={2: PAYMENTS}), "the metadata of one of them lags"),
    "metadata lag": (lambda c: c.observers.update({1: NOW_MS - 8_000, 2: NOW_MS - 9_000}),
        "metadata is 9 s behind the quorum's"),
    "unknown metadata": (answers(observers={}), "does not know how far"),
    "a log less than the ISR says": (answers(lost_logs={(2, "orders", 0)}), "has no log of it"),
    "a log more than described": (answers(strays={(2, "gone", 0)}), "topic gone with an error"),
    "an error": (lambda c: setattr(c.topics["orders"][1], "error", 56),
        "orders-1 with an error (KafkaStorage)"),
    "a voter less": (lambda c: c.settings.update(VOTERS),
        "Controller 13 has a vote by configuration"),
}  # fmt: skip


def test_a_whole_reading_lets_go_brings_back_and_is_healthy() -> None:
    for about in (None, {2}):
        view = reading(three_brokers(), about)
        assert view.doubts == ()
        assert may_leave(2, view).allowed
        assert check_returned(2, view).allowed
        assert partitions_verdict(view).healthy
        assert broker_verdict(2, view).healthy


@every_case(("change", "said"), CASES.values(), ids=CASES)
def test_a_reading_in_part_is_no_good_news(change: Callable[[FakeKafka], None], said: str) -> None:
    cluster = three_brokers()
    change(cluster)
    view = reading(cluster)
    assert any(said in doubt.sentence for doubt in view.doubts), view.doubts
    for broker_id in cluster.brokers:
        assert not may_leave(broker_id, view).allowed
        assert not check_returned(broker_id, view).allowed
        assert broker_verdict(broker_id, view).health is not Health.HEALTHY
    assert partitions_verdict(view).health is Health.UNKNOWN


@every_case(("change", "said"), [c for c in CASES.values() if "user " in c[1]])
def test_a_missing_right_is_said_first(change: Callable[[FakeKafka], None], said: str) -> None:
    cluster = three_brokers()
    change(cluster)
    view = reading(cluster)
    assert view.withheld
    assert said in may_leave(1, view).reason


def test_a_lasting_refusal_is_told_from_what_the_next_reading_may_mend() -> None:
    cluster = three_brokers()
    cluster.unaware[2] = PAYMENTS
    assert not reading(cluster).withheld


def test_a_broker_that_is_cut_off_leaves_the_word_to_one_that_is_not() -> None:
    cluster = three_brokers()
    cluster.observers[1] = NOW_MS - 9_000
    assert reading(cluster).doubts == ()
    assert {whom for call, whom in cluster.asked if call == "DescribeTopicPartitions"} == {2}


@pytest.mark.parametrize("cut_off", [1, 2])
def test_a_broker_that_reaches_no_controller_is_no_quorum_that_is_lost(cut_off: int) -> None:
    cluster = three_brokers()
    with answering(cluster) as client:
        ask = client.ask

        def without_controllers(request: object, broker: int | None = None) -> object:
            if broker == cut_off and type(request).__name__.startswith("DescribeQuorum"):
                raise KafkaTimeoutError("no controller answers")
            return ask(request, broker)

        client.ask = without_controllers
        view = KafkaAdmin(["a:1"]).read()
    assert not view.stale
    assert view.doubts == ()
    assert may_leave(cut_off, view).allowed


def test_an_empty_cluster_is_believed_only_where_brokers_hold_nothing() -> None:
    cluster = three_brokers()
    cluster.topics = {}
    assert reading(cluster).doubts == ()
    cluster.strays.add((1, "orders", 0))
    assert "Broker 1 holds 1 partitions and Kafka described 0" in " ".join(
        doubt.sentence for doubt in reading(cluster).doubts
    )


def test_a_topic_made_between_two_calls_is_asked_for_by_name() -> None:
    cluster = three_brokers()
    cluster.unaware[1] = {"payments"}
    with answering(cluster) as client:
        ask = client.ask

        def heard_of_meanwhile(request: object, broker: int | None = None) -> object:
            if type(request).__name__.startswith("Metadata"):
                cluster.unaware.clear()
            return ask(request, broker)

        client.ask = heard_of_meanwhile
        view = KafkaAdmin(["a:1"]).read()
    assert view.doubts == ()
    assert {p.topic for p in view.partitions} == {"orders", "payments"}


def test_bad_news_is_told_though_the_reading_is_not_whole() -> None:
    cluster = three_brokers()
    cluster.topics["orders"][0] = FakePartition((1, 2, 3), (), -1)
    cluster.hidden = PAYMENTS
    verdict = partitions_verdict(reading(cluster))
    assert verdict.health is Health.UNHEALTHY
    assert "orders-0" in verdict.reason


def test_a_reading_about_a_controller_is_whole_without_any_brokers_directories() -> None:
    view = reading(three_brokers(), {12})
    assert view.doubts == ()
    assert 12 in {voter.node_id for voter in view.voters}


def test_a_reading_about_a_broker_that_is_gone_counts_and_keeps_everything() -> None:
    whole, found = reading(three_brokers()), reading(three_brokers(), {9})
    assert found.doubts == ()
    assert found.partitions == whole.partitions


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
