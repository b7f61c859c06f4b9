"""Readings of the admin API, in the shapes a real 4.2 cluster answered with (node 1 killed)."""

from __future__ import annotations

import copy
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnknownTopicOrPartitionError,
)

from core.errors import StillwaterError
from core.views import PartitionView, VoterView
from handlers.adapters import kafka
from handlers.adapters.kafka import KafkaAdmin

BROKERS = [
    {"broker_id": 1, "host": "127.0.0.1", "port": 9092, "rack": None, "is_fenced": True},
    {"broker_id": 2, "host": "127.0.0.2", "port": 9092, "rack": None, "is_fenced": False},
    {"broker_id": 3, "host": "127.0.0.3", "port": 9092, "rack": None, "is_fenced": False},
]
TOPICS = [
    {
        "error_code": 0,
        "name": "t",
        "is_internal": False,
        "partitions": [
            {
                "error_code": 0,
                "partition_index": 0,
                "leader_id": 2,
                "leader_epoch": 1,
                "replica_nodes": [1, 2, 3],
                "isr_nodes": [2, 3],
                "offline_replicas": [1],
            }
        ],
    }
]
QUORUM = {
    "topics": [
        {
            "topic_name": "__cluster_metadata",
            "partitions": [
                {
                    "partition_index": 0,
                    "leader_id": 3,
                    "leader_epoch": 4,
                    "high_watermark": 261,
                    "current_voters": [
                        {"replica_id": 1, "last_caught_up_timestamp": 1795213430081},
                        {"replica_id": 2, "last_caught_up_timestamp": 1795213465227},
                        {"replica_id": 3, "last_caught_up_timestamp": 1795213465721},
                    ],
                    "observers": [],
                    "error": None,
                }
            ],
        }
    ],
    "nodes": [],
}


class FakeAdmin:
    def __init__(self) -> None:
        self.brokers = copy.deepcopy(BROKERS)
        self.topics: list[dict[str, Any]] = copy.deepcopy(TOPICS)
        self.quorum: dict[str, Any] | Exception = copy.deepcopy(QUORUM)
        self.configs = {"topic": {"t": {"min.insync.replicas": {"value": "2"}}}}
        self.closed = False
        self.moving: list[TopicPartition] = []
        self.reassigned: list[dict[Any, Any]] = []
        self.elections: list[dict[str, list[int]]] = []
        self.refusal: type[Exception] | None = None
        self.election_error = 0

    def describe_cluster(self) -> dict[str, Any]:
        return {"cluster_id": "x", "controller_id": 3, "brokers": self.brokers}

    def describe_topics(self) -> list[dict[str, Any]]:
        return self.topics

    def describe_metadata_quorum(self) -> dict[str, Any]:
        if isinstance(self.quorum, Exception):
            raise self.quorum
        return self.quorum

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        assert config_filter == "all"
        return self.configs

    def list_partition_reassignments(self) -> dict[Any, Any]:
        return {partition: {} for partition in self.moving}

    def alter_partition_reassignments(self, asked: Any) -> dict[Any, Any]:
        self.reassigned.append({(p.topic, p.partition): order for p, order in asked.items()})
        return dict.fromkeys(asked, self.refusal)

    def elect_leaders(self, kind: int, asked: Any, *, raise_errors: bool) -> Any:
        assert (kind, raise_errors) == (0, False)
        self.elections.append(asked)
        return SimpleNamespace(
            replica_election_results=[
                SimpleNamespace(
                    topic=topic,
                    partition_result=[
                        SimpleNamespace(partition_id=n, error_code=self.election_error)
                        for n in numbers
                    ],
                )
                for topic, numbers in asked.items()
            ]
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin()
    monkeypatch.setattr(kafka, "KafkaAdminClient", lambda **_: fake)
    monkeypatch.setattr(kafka, "_knock", lambda _: None)
    return fake


def test_a_reading_says_who_is_out_and_who_lags(admin: FakeAdmin) -> None:
    view = KafkaAdmin(["a:1"]).read()
    assert view.brokers == {1, 2, 3}
    assert view.fenced == {1}
    assert view.quorum_leader == 3
    assert view.voters == (VoterView(1, 35.64), VoterView(2, 0.494), VoterView(3, 0.0))
    assert view.partitions == (PartitionView("t", 0, 2, (1, 2, 3), (2, 3), 2),)
    assert not view.stale
    assert admin.closed


def test_a_partition_without_a_leader_has_none(admin: FakeAdmin) -> None:
    admin.topics[0]["partitions"][0]["leader_id"] = -1
    assert KafkaAdmin(["a:1"]).read().partitions[0].leader is None


def test_a_voter_that_never_fetched_has_no_lag(admin: FakeAdmin) -> None:
    assert isinstance(admin.quorum, dict)
    voters = admin.quorum["topics"][0]["partitions"][0]["current_voters"]
    voters[0]["last_caught_up_timestamp"] = -1
    assert KafkaAdmin(["a:1"]).read().voters[0] == VoterView(1, None)


@pytest.mark.parametrize("silent", [True, False])
def test_brokers_that_answer_without_a_quorum_are_not_believed(
    admin: FakeAdmin, silent: bool
) -> None:
    if silent:
        admin.quorum = RequestTimedOutError("no quorum")
    else:
        assert isinstance(admin.quorum, dict)
        admin.quorum["topics"][0]["partitions"][0]["leader_id"] = -1
    view = KafkaAdmin(["a:1"]).read()
    assert view.stale
    assert view.quorum_leader is None


def test_a_topic_that_hides_its_minimum_is_refused(admin: FakeAdmin) -> None:
    admin.configs = {"topic": {"t": {}}}
    with pytest.raises(StillwaterError, match=r"did not say min\.insync\.replicas of topic t"):
        KafkaAdmin(["a:1"]).read()


def test_addresses_are_tried_one_by_one(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def knock(address: str) -> None:
        tried.append(address)
        if address != "c:1":
            raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(kafka, "_knock", knock)
    assert KafkaAdmin(["a:1", "b:1", "c:1", "d:1"]).read().brokers
    assert tried == ["a:1", "b:1", "c:1"]


def test_silence_names_every_address(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    def knock(address: str) -> None:
        raise TimeoutError

    monkeypatch.setattr(kafka, "_knock", knock)
    with pytest.raises(StillwaterError) as raised:
        KafkaAdmin(["a:1", "b:1"]).read()
    assert str(raised.value) == (
        "No Kafka broker could be asked: a:1: TimeoutError; b:1: TimeoutError."
    )


def test_a_reading_gives_up_in_time_for_the_function(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((0.0, 1.0, 99.0, 99.0))
    monkeypatch.setattr(kafka.time, "monotonic", lambda: next(clock))

    def knock(address: str) -> None:
        raise TimeoutError

    monkeypatch.setattr(kafka, "_knock", knock)
    with pytest.raises(StillwaterError, match="b:1: not tried, 15 s are over"):
        KafkaAdmin(["a:1", "b:1"]).read()


class Renewed:
    """A way in whose credentials are others at each reading."""

    def __init__(self) -> None:
        self.passwords = iter(("old", "renewed"))

    def __call__(self) -> dict[str, Any]:
        return {"security_protocol": "SASL_SSL", "sasl_plain_password": next(self.passwords)}

    def remedy(self, error: BaseException) -> str:
        return f"look at the Secret, for {type(error).__name__}"


def test_credentials_are_those_of_the_moment_of_each_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    def client(**options: Any) -> FakeAdmin:
        given.update(options)
        return FakeAdmin()

    monkeypatch.setattr(kafka, "KafkaAdminClient", client)
    monkeypatch.setattr(kafka, "_knock", lambda _: None)
    admin = KafkaAdmin(["a:1"], Renewed())
    for expected in ("old", "renewed"):
        admin.read()
        assert given["sasl_plain_password"] == expected


def test_credentials_nobody_can_read_are_kafkas_silence() -> None:
    class Refused(Renewed):
        def __call__(self) -> dict[str, Any]:
            raise StillwaterError("The Kubernetes API answered 403.")

    with pytest.raises(StillwaterError, match="answered 403"):
        KafkaAdmin(["a:1"], Refused()).read()


def test_a_client_that_is_not_let_in_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def client(**_: Any) -> FakeAdmin:
        # As kafka-python does: the reason is logged, and what is raised is its bootstrap's end.
        refusal = SaslAuthenticationFailedError("no such user")
        logging.getLogger("kafka.net.manager").error("Connection failed: %s", refusal)
        raise KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(kafka, "KafkaAdminClient", client)
    monkeypatch.setattr(kafka, "_knock", lambda _: None)
    with pytest.raises(StillwaterError) as caught:
        KafkaAdmin(["a:1"], Renewed()).read()
    assert "no such user" in str(caught.value)
    assert str(caught.value).endswith(": look at the Secret, for SaslAuthenticationFailedError.")
    assert logging.getLogger("kafka.net.manager").handlers == []


def test_an_order_of_replicas_is_written_for_each_partition(admin: FakeAdmin) -> None:
    KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 3, 1), ("t", 1): (3, 1, 2)})
    assert admin.reassigned == [{("t", 0): [2, 3, 1], ("t", 1): [3, 1, 2]}]


def test_thousands_of_partitions_go_in_several_requests(admin: FakeAdmin) -> None:
    KafkaAdmin(["a:1"]).reorder({("t", n): (2, 1) for n in range(1200)})
    assert [len(request) for request in admin.reassigned] == [500, 500, 200]


def test_a_refused_order_names_its_partition(admin: FakeAdmin) -> None:
    admin.refusal = ClusterAuthorizationFailedError
    with pytest.raises(StillwaterError, match=r"replicas of t-0: ClusterAuthorizationFailedError"):
        KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 1)})


def test_a_partition_deleted_meanwhile_is_no_refusal(admin: FakeAdmin) -> None:
    admin.refusal = UnknownTopicOrPartitionError
    KafkaAdmin(["a:1"]).reorder({("t", 0): (2, 1)})


def test_elections_are_asked_for_by_topic(admin: FakeAdmin) -> None:
    KafkaAdmin(["a:1"]).elect({("t", 1), ("s", 0), ("t", 0)})
    assert admin.elections == [{"s": [0], "t": [0, 1]}]


@pytest.mark.parametrize("code", [80, 84])  # not available, not needed
def test_an_election_that_has_nothing_to_do_is_no_failure(admin: FakeAdmin, code: int) -> None:
    admin.election_error = code
    KafkaAdmin(["a:1"]).elect({("t", 0)})


def test_an_election_that_fails_names_its_partition(admin: FakeAdmin) -> None:
    admin.election_error = 41
    with pytest.raises(StillwaterError, match="no leader of t-0"):
        KafkaAdmin(["a:1"]).elect({("t", 0)})


def test_nothing_to_change_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = KafkaAdmin([])
    admin.reorder({})
    admin.elect(())
