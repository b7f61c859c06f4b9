"""Answers requests of Kafka's real protocol from memory: a fake cluster, for tests and bench.

`FakeKafka.encode_response` takes a request of kafka-python's and returns the bytes of the response,
as one broker would give them to one user. What the user may not see is left out or refused as Kafka
4.2 does it: silently where all topics are asked for, with an error code elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.errors import IncompatibleBrokerVersion, KafkaTimeoutError
from kafka.protocol import admin
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

TOPIC_DENIED, CLUSTER_DENIED, UNKNOWN_TOPIC, STORAGE_ERROR = 29, 31, 3, 56
ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 7, 8, 10, 11  # operations
ALL = frozenset({ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS})
TOPIC, BROKER = 2, 4  # config resources
TOPIC_CONFIG, DEFAULT_OF_BROKERS, DEFAULT = 1, 3, 5  # where a value stands
LOG_DIRECTORY = "/var/lib/kafka/data-0/kafka-log"
LOG_BYTES = 1 << 20
_NO_ID = UUID(int=0)
_NOT_TOLD = -(1 << 31)
# The version each call is answered in, and its response.
RESPONSES: dict[str, tuple[Any, int]] = {
    "ApiVersions": (ApiVersionsResponse, 3),
    "Metadata": (MetadataResponse, 12),
    "DescribeCluster": (admin.DescribeClusterResponse, 2),
    "DescribeQuorum": (admin.DescribeQuorumResponse, 2),
    "DescribeTopicPartitions": (admin.DescribeTopicPartitionsResponse, 0),
    "DescribeLogDirs": (admin.DescribeLogDirsResponse, 4),
    "DescribeConfigs": (admin.DescribeConfigsResponse, 4),
    "ListConfigResources": (admin.ListConfigResourcesResponse, 1),
    "ListPartitionReassignments": (admin.ListPartitionReassignmentsResponse, 0),
    "AlterPartitionReassignments": (admin.AlterPartitionReassignmentsResponse, 1),
    "ElectLeaders": (admin.ElectLeadersResponse, 2),
    "IncrementalAlterConfigs": (admin.IncrementalAlterConfigsResponse, 1),
}


@dataclass
class FakePartition:
    """One partition; `leader` is -1 while it has none."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    error: int = 0
    eligible: tuple[int, ...] = ()


@dataclass
class FakeKafka:
    """State that a test changes, and the answers that follow from it."""

    topics: dict[str, list[FakePartition]]
    brokers: dict[int, bool]  # id -> fenced
    voters: dict[int, int]  # id -> last caught up, ms; -1: never
    leader: int
    minimums: dict[str, str] = field(default_factory=dict)  # where not "2"
    observers: dict[int, int] = field(default_factory=dict)
    host: str = "127.0.0.1"
    ports: dict[int, int] = field(default_factory=dict)
    # What the user may do.
    cluster: frozenset[int] = ALL
    hidden: set[str] = field(default_factory=set)
    without_configs: set[str] = field(default_factory=set)
    # What is wrong with brokers.
    failed: dict[int, str] = field(default_factory=dict)  # id -> a log directory that failed
    lost_logs: set[tuple[int, str, int]] = field(default_factory=set)
    strays: set[tuple[int, str, int]] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    unaware: dict[int, set[str]] = field(default_factory=dict)  # id -> topics it never heard of
    quorum_error: int = 0
    too_old: set[str] = field(default_factory=set)  # calls the brokers do not know
    settings: dict[str, str] = field(
        default_factory=lambda: {"controller.quorum.fetch.timeout.ms": "2000"}
    )
    moving: list[tuple[str, int]] = field(default_factory=list)
    moving_error: int = 0
    order_error: int = 0
    election_error: int = 0
    # What was asked.
    asked: list[tuple[str, int]] = field(default_factory=list)
    reordered: list[dict[tuple[str, int], list[int]]] = field(default_factory=list)
    elected: list[dict[str, list[int]]] = field(default_factory=list)
    # Resource (kind, name) -> what was set of it and not deleted.
    altered: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def encode_response(self, request: Any, broker: int | None = None) -> bytes:
        """Return the body of one broker's response; raises as the client does where none comes."""
        call = type(request).__name__.partition("_v")[0].removesuffix("Request")
        whom = next(iter(self.brokers)) if broker is None else broker
        self.asked.append((call, whom))
        if call in self.too_old:
            raise IncompatibleBrokerVersion(call)
        if whom in self.silent:
            raise KafkaTimeoutError(f"Broker {whom} is frozen.")
        _, version = RESPONSES[call]
        received = type(request).decode(bytes(request.encode(version=version)), version=version)
        return self.responding(call, received, whom, version)

    def responding(self, call: str, received: Any, broker: int, version: int) -> bytes:
        """Return the body of the response to a request as it came off the wire."""
        return bytes(_ANSWERS[call](self, received, broker).encode(version=version))

    def answer(self, request: Any, broker: int | None = None) -> Any:
        """Return the response as the client decodes it."""
        body = self.encode_response(request, broker)
        response, version = RESPONSES[self.asked[-1][0]]
        return response.decode(body, version=version)

    def known_to(self, broker: int) -> list[str]:
        return sorted(self.topics.keys() - self.unaware.get(broker, set()))

    def may(self, operation: int) -> bool:
        return operation in self.cluster

    def replicas_on(self, broker: int) -> dict[str, list[int]]:
        """Return which replicas a broker has a log of."""
        found: dict[str, list[int]] = {}
        for topic, partitions in self.topics.items():
            numbers = [
                number
                for number, each in enumerate(partitions)
                if broker in each.replicas and (broker, topic, number) not in self.lost_logs
            ]
            if numbers:
                found[topic] = numbers
        for whose, topic, number in self.strays:
            if whose == broker:
                found.setdefault(topic, []).append(number)
        return found


def api_versions(kafka: FakeKafka) -> Any:
    """Return which calls the brokers know, in which versions."""
    known = [(r.API_KEY, 0, v) for call, (r, v) in RESPONSES.items() if call not in kafka.too_old]
    return ApiVersionsResponse(
        error_code=0,
        api_keys=known,
        throttle_time_ms=0,
        supported_features=[],
        finalized_features_epoch=-1,
        finalized_features=[],
        zk_migration_ready=False,
    )


def _metadata(kafka: FakeKafka, request: Any, broker: int) -> Any:
    if request.topics is None:
        described = [(name, 0) for name in kafka.known_to(broker) if name not in kafka.hidden]
    else:
        described = [(each.name, _error_of(kafka, each.name, broker)) for each in request.topics]
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            (id_, kafka.host, kafka.ports.get(id_, 9092), None)
            for id_, fenced in kafka.brokers.items()
            if not fenced
        ],
        cluster_id="fake",
        controller_id=broker,
        topics=[
            (error, name, _NO_ID, False, [] if error else list(_partitions(kafka, name)), None)
            for name, error in described
        ],
    )


def _error_of(kafka: FakeKafka, name: str, broker: int) -> int:
    if name in kafka.hidden:
        return TOPIC_DENIED
    return 0 if name in kafka.known_to(broker) else UNKNOWN_TOPIC


def _partitions(kafka: FakeKafka, name: str) -> Iterator[tuple[Any, ...]]:
    for number, each in enumerate(kafka.topics[name]):
        ids = [list(each.replicas), list(each.isr)]
        yield each.error, number, each.leader, 3, *ids, []


def _describe_cluster(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del request, broker
    return admin.DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        endpoint_type=1,
        cluster_id="fake",
        controller_id=next(iter(kafka.brokers)),
        brokers=[
            (id_, kafka.host, kafka.ports.get(id_, 9092), None, fenced)
            for id_, fenced in kafka.brokers.items()
        ],
        authorized_operations=set(kafka.cluster) if kafka.may(DESCRIBE) else set(),
    )


def _describe_quorum(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del request, broker
    error = kafka.quorum_error if kafka.may(DESCRIBE) else CLUSTER_DENIED
    voters, observers = (
        [_fetching(*x) for x in s.items()] for s in (kafka.voters, kafka.observers)
    )
    partition = (0, 0, None, kafka.leader, 4, 261, voters, observers)
    return admin.DescribeQuorumResponse(
        error_code=error,
        error_message=None,
        topics=[] if error else [("__cluster_metadata", [partition])],
        nodes=[] if error else [(id_, []) for id_ in kafka.voters],
    )


def _fetching(node_id: int, caught_up_ms: int) -> tuple[Any, ...]:
    return node_id, _NO_ID, 261, caught_up_ms, caught_up_ms


def _describe_topic_partitions(kafka: FakeKafka, request: Any, broker: int) -> Any:
    """Answer one page: whole topics by name, cut off where the limit is."""
    since = ("", 0)
    if request.cursor is not None:
        since = (request.cursor.topic_name, request.cursor.partition_index)
    topics: list[tuple[Any, ...]] = []
    left, following = request.response_partition_limit, None
    for name in kafka.known_to(broker):
        if name in kafka.hidden or name < since[0]:
            continue
        first = since[1] if name == since[0] else 0
        partitions: list[Any] = [
            (error, number, leader, epoch, replicas, isr, _elr(kafka, name, number), [], offline)
            for error, number, leader, epoch, replicas, isr, offline in _partitions(kafka, name)
        ][first : first + left]
        topics.append((0, name, _NO_ID, False, partitions, _NOT_TOLD))
        left -= len(partitions)
        if first + len(partitions) < len(kafka.topics[name]):
            cursor = admin.DescribeTopicPartitionsResponse.Cursor
            following = cursor(topic_name=name, partition_index=first + len(partitions))
            break
    return admin.DescribeTopicPartitionsResponse(
        throttle_time_ms=0, topics=topics, next_cursor=following
    )


def _elr(kafka: FakeKafka, name: str, number: int) -> list[int]:
    return list(kafka.topics[name][number].eligible)


def _describe_log_dirs(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del request
    held = [
        (name, [(number, LOG_BYTES, 0, False) for number in numbers])
        for name, numbers in kafka.replicas_on(broker).items()
    ]
    found = [(0, LOG_DIRECTORY, held, 1 << 40, 1 << 39)]
    if broker in kafka.failed:
        found.append((STORAGE_ERROR, kafka.failed[broker], [], -1, -1))
    allowed = kafka.may(DESCRIBE)
    return admin.DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0 if allowed else CLUSTER_DENIED,
        results=found if allowed else [],
    )


def _describe_configs(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del broker
    return admin.DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            _config(kafka, each.resource_type, each.resource_name) for each in request.resources
        ],
    )


def _config(kafka: FakeKafka, kind: int, name: str) -> tuple[Any, ...]:
    if kind == BROKER:
        error = 0 if kafka.may(DESCRIBE_CONFIGS) else CLUSTER_DENIED
        found = kafka.settings
    else:
        error = TOPIC_DENIED if name in kafka.without_configs | kafka.hidden else 0
        found = {"min.insync.replicas": kafka.minimums.get(name, "2")}
        found = {key: value for key, value in found.items() if value}
    entries: list[Any] = [
        (key, value, False, DEFAULT, False, [], 3, None) for key, value in found.items()
    ]
    # What was set of it, or, of a broker, of the default of all.
    for source, whose in ((TOPIC_CONFIG, (kind, name)), (DEFAULT_OF_BROKERS, (kind, ""))):
        if (source == TOPIC_CONFIG) == (kind == TOPIC):
            altered = kafka.altered.get(whose, {})
            entries += [(k, v, False, source, False, [], 3, None) for k, v in altered.items()]
    return error, None, kind, name, [] if error else entries


def _list_config_resources(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del request
    denied = not kafka.may(DESCRIBE_CONFIGS)
    return admin.ListConfigResourcesResponse(
        throttle_time_ms=0,
        error_code=CLUSTER_DENIED if denied else 0,
        config_resources=[] if denied else [(name, TOPIC) for name in kafka.known_to(broker)],
    )


def _list_partition_reassignments(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del request, broker
    return admin.ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=kafka.moving_error if kafka.may(DESCRIBE) else CLUSTER_DENIED,
        error_message=None,
        topics=[(topic, [(number, [1], [], [])]) for topic, number in kafka.moving],
    )


def _alter_partition_reassignments(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del broker
    asked = [
        (t.name, p.partition_index, list(p.replicas)) for t in request.topics for p in t.partitions
    ]
    kafka.reordered.append({(name, number): replicas for name, number, replicas in asked})
    return admin.AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=True,
        error_code=0 if kafka.may(ALTER) else CLUSTER_DENIED,
        error_message=None,
        responses=[(name, [(number, kafka.order_error, None)]) for name, number, _ in asked],
    )


def _elect_leaders(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del broker
    asked = {each.topic: list(each.partitions) for each in request.topic_partitions}
    kafka.elected.append(asked)
    return admin.ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=0 if kafka.may(ALTER) else CLUSTER_DENIED,
        replica_election_results=[
            (topic, [(number, kafka.election_error, None) for number in numbers])
            for topic, numbers in asked.items()
        ],
    )


def _incremental_alter_configs(kafka: FakeKafka, request: Any, broker: int) -> Any:
    del broker
    return admin.IncrementalAlterConfigsResponse(
        throttle_time_ms=0, responses=[_alteration(kafka, each) for each in request.resources]
    )


def _alteration(kafka: FakeKafka, asked: Any) -> tuple[int, None, int, str]:
    kind, name = asked.resource_type, asked.resource_name
    if not kafka.may(ALTER_CONFIGS):
        return (CLUSTER_DENIED if kind == BROKER else TOPIC_DENIED), None, kind, name
    if kind == TOPIC and name not in kafka.topics:
        return UNKNOWN_TOPIC, None, kind, name
    found = kafka.altered.setdefault((kind, name), {})
    for each in asked.configs:
        if each.config_operation:
            found.pop(each.name, None)
        else:
            found[each.name] = each.value
    return 0, None, kind, name


_ANSWERS: dict[str, Callable[[FakeKafka, Any, int], Any]] = {
    "ApiVersions": lambda kafka, request, broker: api_versions(kafka),  # noqa: ARG005
    "Metadata": _metadata,
    "DescribeCluster": _describe_cluster,
    "DescribeQuorum": _describe_quorum,
    "DescribeTopicPartitions": _describe_topic_partitions,
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeConfigs": _describe_configs,
    "ListConfigResources": _list_config_resources,
    "ListPartitionReassignments": _list_partition_reassignments,
    "AlterPartitionReassignments": _alter_partition_reassignments,
    "ElectLeaders": _elect_leaders,
    "IncrementalAlterConfigs": _incremental_alter_configs,
}
