"""KafkaAdmin: whom it asks, what it changes, what it says when nobody answers."""

import contextlib
import gc
import logging
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from core.availability.wholeness import MOVING_LEADERS
from core.ground.errors import StillwaterError
from core.rotation.run_record import Throttle
from core.views import VoterView
from handlers.adapters import kafka
from handlers.adapters.kafka import KafkaAdmin
from tests.every_case import every_case
from tests.fake_kafka import (
    ALTER_CONFIGS,
    BROKER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    TOPIC,
    FakeKafka,
    FakePartition,
)
from tests.unit.kafka_in_memory import NOW_MS, FakeClient, answering, three_brokers


@pytest.fixture
def cluster() -> Iterator[FakeKafka]:
    found = three_brokers()
    with answering(found):
        yield found


def test_a_reading_says_who_is_out_and_who_lags(cluster: FakeKafka) -> None:
    cluster.brokers[1] = True
    cluster.voters[10] = NOW_MS - 35_640
    cluster.topics["orders"][0] = FakePartition((1, 2, 3), (2, 3), 2)
    view = KafkaAdmin(["a:1"]).read()
    assert view.doubts == ()
    assert view.brokers == {1, 2, 3}
    assert view.fenced == {1}
    assert view.quorum_leader == 11
    assert view.voters == (VoterView(10, 35.64), VoterView(11, 0.0), VoterView(12, 0.494))
    first = view.partitions[0]
    expected = (*("orders-0", 2, (1, 2, 3), (2, 3)), 2)
    assert (first.name, first.leader, first.replicas, first.isr, first.min_isr) == expected
    assert not view.stale


@pytest.mark.parametrize("broken", [False, True])
def test_a_reading_leaves_the_collector_as_it_was(
    cluster: FakeKafka, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    if broken:
        monkeypatch.setattr(kafka, "_knock", lambda _: (_ for _ in ()).throw(OSError("refused")))
    with contextlib.suppress(StillwaterError):
        KafkaAdmin(["a:1"]).read()
    assert gc.isenabled()


def test_a_connection_is_closed_after_each_reading() -> None:
    with answering(three_brokers()) as client:
        KafkaAdmin(["a:1"]).read()
        assert client.closed


@pytest.mark.parametrize("error", [0, 5, 72])  # leader not available, listener not found
def test_a_partition_without_a_leader_has_none(cluster: FakeKafka, error: int) -> None:
    cluster.topics["orders"][0] = FakePartition((1, 2, 3), (), -1, error)
    view = KafkaAdmin(["a:1"]).read()
    assert view.partitions[0].leader is None
    assert view.doubts == ()


def test_a_voter_that_never_fetched_has_no_lag(cluster: FakeKafka) -> None:
    cluster.voters[10] = -1
    assert KafkaAdmin(["a:1"]).read().voters[0] == VoterView(10, None)


@pytest.mark.parametrize("silent", [True, False])
def test_brokers_without_a_quorum_are_not_believed(cluster: FakeKafka, *, silent: bool) -> None:
    if silent:
        cluster.quorum_error = 7
    else:
        cluster.leader = -1
    view = KafkaAdmin(["a:1"]).read()
    assert view.stale
    assert view.quorum_leader is None


def test_moves_that_are_not_told_leave_nothing_to_believe(cluster: FakeKafka) -> None:
    cluster.moving_error = 41
    with pytest.raises(StillwaterError, match="NotControllerError"):
        KafkaAdmin(["a:1"]).read()


def test_topics_come_page_by_page(cluster: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = KafkaAdmin(["a:1"]).read()
    monkeypatch.setattr("handlers.adapters.kafka_reading.PAGE_PARTITIONS", 1)
    assert KafkaAdmin(["a:1"]).read() == whole
    assert sum(call == "DescribeTopicPartitions" for call, _ in cluster.asked) == 1 + 6


def test_brokers_before_3_8_answer_with_all_topics_at_once(cluster: FakeKafka) -> None:
    whole = KafkaAdmin(["a:1"]).read()
    cluster.too_old = {"DescribeTopicPartitions", "ListConfigResources"}
    assert KafkaAdmin(["a:1"]).read() == whole


def test_a_brokers_reading_keeps_its_partitions_and_those_not_well(cluster: FakeKafka) -> None:
    cluster.topics["elsewhere"] = [
        FakePartition((2, 3), (2, 3), 2),
        FakePartition((2, 3), (3,), 3),
        FakePartition((3,), (), -1),
    ]
    view = KafkaAdmin(["a:1"]).read(about={1})
    kept = {p.name for p in view.partitions if p.topic == "elsewhere"}
    assert kept == {"elsewhere-1", "elsewhere-2"}
    assert sum(1 in p.replicas for p in view.partitions) == 6
    assert view.doubts == ()
    assert [whom for call, whom in cluster.asked if call == "DescribeLogDirs"] == [1]


def test_a_broker_that_is_out_is_counted_by_all_others(cluster: FakeKafka) -> None:
    cluster.brokers[1] = True
    KafkaAdmin(["a:1"]).read(about={1})
    assert [whom for call, whom in cluster.asked if call == "DescribeLogDirs"] == [2, 3]


def test_a_frozen_broker_leaves_the_word_to_others(cluster: FakeKafka) -> None:
    cluster.silent = {1}
    with pytest.raises(StillwaterError, match="No Kafka broker could be reached"):
        KafkaAdmin(["a:1"]).read()  # the fake's bootstrap address is broker 1's
    cluster.brokers = {2: False, 1: False, 3: False}
    view = KafkaAdmin(["a:1"]).read(about={3})
    assert "Broker 1 did not answer" not in view.doubt
    assert view.doubts == ()


def test_addresses_are_tried_in_turn(cluster: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def knock(address: str) -> None:
        tried.append(address)
        if address != "c:1":
            raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(kafka, "_knock", knock)
    assert KafkaAdmin(["a:1", "b:1", "c:1", "d:1"]).read().brokers
    assert tried == ["a:1", "b:1", "c:1"]


def times_out(_address: str) -> None:
    raise TimeoutError


def test_silence_names_every_address(cluster: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_knock", times_out)
    with pytest.raises(StillwaterError) as raised:
        KafkaAdmin(["a:1", "b:1"]).read()
    assert str(raised.value) == (
        "No Kafka broker could be reached: a:1: TimeoutError; b:1: TimeoutError."
    )
    clock = iter((0.0, 1.0, 99.0, 99.0))
    monkeypatch.setattr(kafka.time, "monotonic", lambda: next(clock))
    with pytest.raises(StillwaterError, match="b:1: not tried, 15 s are over"):
        KafkaAdmin(["a:1", "b:1"]).read()


class Renewed:
    """A way in whose credentials are others at each reading, or an error."""

    def __init__(self, *passwords: str | Exception) -> None:
        self.passwords = iter(passwords or ("old", "renewed"))

    def __call__(self) -> dict[str, Any]:
        password = next(self.passwords)
        if isinstance(password, Exception):
            raise password
        return {"security_protocol": "SASL_SSL", "sasl_plain_password": password}

    def remedy(self, error: BaseException) -> str:
        return f"look at the Secret, for {type(error).__name__}"


def test_credentials_are_those_of_each_readings_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def client(**options: Any) -> FakeClient:
        given.update(options)
        return FakeClient(three_brokers())

    monkeypatch.setattr(kafka, "WireAdmin", client)
    monkeypatch.setattr(kafka, "_knock", lambda _: None)
    admin = KafkaAdmin(["a:1"], Renewed())
    for expected in ("old", "renewed"):
        admin.read()
        assert given["sasl_plain_password"] == expected


@every_case(
    ("error", "words"),
    [
        (StillwaterError("The Kubernetes API answered 403."), "answered 403"),
        (
            ssl.SSLError(ssl.SSL_ERROR_SSL, "KEY_VALUES_MISMATCH"),
            "KEY_VALUES_MISMATCH.*Secrets of the user",
        ),
    ],
)
def test_credentials_that_are_none_are_kafkas_silence(error: Exception, words: str) -> None:
    with pytest.raises(StillwaterError, match=words):
        KafkaAdmin(["a:1"], Renewed(error)).read()


def test_a_client_not_let_in_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def client(**_: Any) -> FakeClient:
        # As kafka-python does: the reason is logged, and what is raised is its bootstrap's end.
        refusal = SaslAuthenticationFailedError("no such user")
        log = logging.getLogger("kafka.net.manager")
        log.error("Connection failed: %s", refusal)
        late = KafkaTimeoutError("Unable to bootstrap")
        log.error("Bootstrap failed: %s", late)
        raise late

    monkeypatch.setattr(kafka, "WireAdmin", client)
    monkeypatch.setattr(kafka, "_knock", lambda _: None)
    with pytest.raises(StillwaterError) as caught:
        KafkaAdmin(["a:1"], Renewed()).read()
    assert "no such user" in str(caught.value)
    assert str(caught.value).endswith(": look at the Secret, for SaslAuthenticationFailedError.")
    assert logging.getLogger("kafka.net.manager").filters == []


def test_an_order_of_replicas_is_written_for_each_partition(cluster: FakeKafka) -> None:
    KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 3, 1), ("t", 1): (3, 1, 2)})
    assert cluster.reordered == [{("t", 0): [2, 3, 1], ("t", 1): [3, 1, 2]}]


def test_thousands_of_partitions_go_in_several_requests(cluster: FakeKafka) -> None:
    KafkaAdmin(["a:1"]).reorder({("t", n): (2, 1) for n in range(1200)})
    assert [len(request) for request in cluster.reordered] == [500, 500, 200]


def test_a_refused_order_names_its_partition(cluster: FakeKafka) -> None:
    cluster.order_error = 3  # It was deleted meanwhile.
    KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 1)})
    cluster.order_error = 39
    with pytest.raises(StillwaterError, match=r"replicas of t-0: InvalidReplicationAssignment"):
        KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 1)})


def test_elections_are_asked_for_by_topic(cluster: FakeKafka) -> None:
    KafkaAdmin(["a:1"]).elect({("t", 1), ("s", 0), ("t", 0)})
    assert cluster.elected == [{"s": [0], "t": [0, 1]}]


def test_an_election_that_fails_names_its_partition(cluster: FakeKafka) -> None:
    for nothing_to_do in (80, 84):  # not available, not needed
        cluster.election_error = nothing_to_do
        KafkaAdmin(["a:1"]).elect({("t", 0)})
    cluster.election_error = 41
    with pytest.raises(StillwaterError, match="no leader of t-0"):
        KafkaAdmin(["a:1"]).elect({("t", 0)})


def test_nothing_to_change_asks_nobody() -> None:
    admin = KafkaAdmin([])
    admin.reorder({})
    admin.elect(())


def test_moving_leaders_without_the_right_names_it(cluster: FakeKafka) -> None:
    cluster.cluster = frozenset({DESCRIBE, DESCRIBE_CONFIGS})
    for change in (lambda a: a.elect({("t", 0)}), lambda a: a.reorder({("t", 0): (2, 1)})):
        with pytest.raises(StillwaterError, match="Alter on the cluster"):
            change(KafkaAdmin(["a:1"]))


def test_bytes_are_those_of_the_brokers_that_tell(cluster: FakeKafka) -> None:
    cluster.silent = {3}
    assert KafkaAdmin(["a:1"]).log_bytes() == {1: 6 << 20, 2: 6 << 20}
    assert KafkaAdmin(["a:1"]).log_bytes({2}) == {2: 6 << 20}


def test_a_throttle_is_a_default_of_brokers_and_a_mark_on_topics(cluster: FakeKafka) -> None:
    throttle = Throttle(
        brokers=(1,),
        topics=("orders", "gone"),
        follower_bytes_per_s=5_000_000,
        leader_bytes_per_s=2_500_000,
    )
    admin = KafkaAdmin(["a:1"])
    admin.throttle(throttle)
    assert cluster.altered == {
        (BROKER, ""): {
            "leader.replication.throttled.rate": "2500000",
            "follower.replication.throttled.rate": "5000000",
        },
        (TOPIC, "orders"): {
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "*",
        },
    }
    admin.unthrottle(throttle.topics)
    assert not any(cluster.altered.values())


@every_case(
    ("whose", "name", "value", "said"),
    [
        ((BROKER, ""), "leader.replication.throttled.rate", "9", "broker 1"),
        ((TOPIC, "orders"), "leader.replication.throttled.replicas", "1:2", "topic orders"),
    ],
)
def test_anothers_throttle_is_seen(
    whose: tuple[int, str], name: str, value: str, said: str
) -> None:
    throttle = Throttle(
        brokers=(1,), topics=("orders",), follower_bytes_per_s=1, leader_bytes_per_s=1
    )
    admin, cluster = KafkaAdmin(["a:1"]), three_brokers()
    with answering(cluster):
        assert admin.throttled_by_others(throttle, ()) is None
        cluster.altered[whose] = {name: value}
        told = str(admin.throttled_by_others(throttle, ()))
        assert f"{said} has {name}={value} already" in told
        assert admin.throttled_by_others(throttle, ("orders",)) is None


def test_a_missing_right_for_a_throttle_is_named(cluster: FakeKafka) -> None:
    cluster.cluster = cluster.cluster - {ALTER_CONFIGS}
    assert KafkaAdmin(["a:1"], needed=MOVING_LEADERS).read().doubts == ()
    with pytest.raises(StillwaterError, match="AlterConfigs on the cluster"):
        KafkaAdmin(["a:1"]).unthrottle(())
