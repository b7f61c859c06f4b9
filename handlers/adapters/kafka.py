"""Kafka's admin API: one reading of brokers, quorum and partitions; the order of replicas.

Traps this module knows (research: kafka-measured): without a quorum the brokers still describe the
cluster, stale and with nobody fenced; a frozen broker in the bootstrap list costs a client its
whole bootstrap time, so addresses are tried one by one; a client older than a broker's return does
not know that broker, so every reading makes its own.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    ElectionNotNeededError,
    KafkaError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)

from core.availability.leaders import Order, Partition
from core.errors import StillwaterError
from core.views import ClusterView, PartitionView, VoterView

CONNECT_SECONDS = 1.0
BOOTSTRAP_SECONDS = 2.0
REQUEST_SECONDS = 3.0
# One address may take 14 s, so a reading that fails altogether ends within 30 s.
READ_SECONDS = 15.0
# A broker that is away is what a tick expects; the client would log a warning per attempt.
logging.getLogger("kafka").setLevel(logging.ERROR)
MIN_ISR = "min.insync.replicas"
PREFERRED = 0  # KIP-460's election type
# A request names every partition it changes; a controller takes thousands in one, but not any size.
PARTITIONS_PER_REQUEST = 500
# A partition that goes away, and an election that came about already, ask for nothing.
_HARMLESS = (ElectionNotNeededError, PreferredLeaderNotAvailableError, UnknownTopicOrPartitionError)

T = TypeVar("T")


class KafkaCluster(Protocol):
    """What the handlers ask of Kafka."""

    def read(self) -> ClusterView:
        """Return one reading; raises StillwaterError when no broker answers."""

    def reorder(self, orders: Mapping[Partition, Order]) -> None:
        """Write the order of partitions' replicas; no data moves.

        Raises StillwaterError with the first partition that Kafka refuses.
        """

    def log_bytes(self) -> dict[int, int]:
        """Return how many bytes of log each broker holds."""

    def elect(self, partitions: Iterable[Partition]) -> None:
        """Have the first replica of each partition lead it, where it is in sync."""


class Access(Protocol):
    """How a client connects, as of each reading: authorities and credentials are renewed."""

    def __call__(self) -> Mapping[str, Any]:
        """Return settings of kafka-python; raises StillwaterError where there are none."""

    def remedy(self, error: BaseException) -> str:
        """Return a clause on what to do where Kafka did not let the client in; may be empty."""


class Anonymous:
    """In the clear and without a name."""

    def __call__(self) -> Mapping[str, Any]:
        return {"security_protocol": "PLAINTEXT"}

    def remedy(self, error: BaseException) -> str:
        del error
        return ""


class KafkaAdmin:
    """Asks a cluster through whichever bootstrap address answers first."""

    def __init__(self, bootstrap: Iterable[str], access: Access | None = None) -> None:
        self._bootstrap = tuple(bootstrap)
        self._access = access or Anonymous()

    def read(self) -> ClusterView:
        return self._ask(_reading)

    def reorder(self, orders: Mapping[Partition, Order]) -> None:
        if orders:
            self._ask(lambda admin: _reorder(admin, orders))

    def log_bytes(self) -> dict[int, int]:
        return self._ask(_log_bytes)

    def elect(self, partitions: Iterable[Partition]) -> None:
        wanted = sorted(partitions)
        if wanted:
            self._ask(lambda admin: _elect(admin, wanted))

    def _ask(self, question: Callable[[Any], T]) -> T:
        problems, remedies = [], []
        settings = self._access()
        give_up_at = time.monotonic() + READ_SECONDS
        for address in self._bootstrap:
            if time.monotonic() > give_up_at:
                problems.append(f"{address}: not tried, {READ_SECONDS:.0f} s are over")
                continue
            with _connection_errors() as refused:
                try:
                    return self._ask_at(address, settings, question)
                except (KafkaError, OSError) as error:
                    why = refused[-1] if refused else error
                    problems.append(f"{address}: {str(why) or type(why).__name__}")
                    remedies.append(self._access.remedy(why))
        remedy = next((f": {each}" for each in remedies if each), "")
        said = "; ".join(problems)
        raise StillwaterError(f"No Kafka broker could be asked: {said}{remedy}.")

    def _ask_at(self, address: str, settings: Mapping[str, Any], question: Callable[[Any], T]) -> T:
        _knock(address)
        admin = KafkaAdminClient(
            bootstrap_servers=address,
            bootstrap_timeout_ms=int(BOOTSTRAP_SECONDS * 1000),
            request_timeout_ms=int(REQUEST_SECONDS * 1000),
            client_id="stillwater-tick",
            **settings,
        )
        try:
            return question(admin)
        finally:
            admin.close()


class _Listening(logging.Handler):
    """Keeps the errors that a client's manager logs with its failed connections."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.args if isinstance(record.args, tuple) else ()
        self.heard += [each for each in said if isinstance(each, BaseException)]


@contextlib.contextmanager
def _connection_errors() -> Iterator[list[BaseException]]:
    """Yield why connections failed meanwhile: a client that cannot bootstrap raises its timeout."""
    listening, log = _Listening(), logging.getLogger("kafka.net.manager")
    log.addHandler(listening)
    try:
        yield listening.heard
    finally:
        log.removeHandler(listening)


def _knock(address: str) -> None:
    """Fail at once where nothing listens: the client would try for its whole bootstrap time."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _reading(admin: Any) -> ClusterView:  # kafka-python carries no types
    brokers = admin.describe_cluster()["brokers"]
    leader, voters = _quorum(admin)
    topics = [t for t in admin.describe_topics() if not t["error_code"]]
    minimums = _min_isr(admin, [t["name"] for t in topics])
    return ClusterView(
        brokers=frozenset(b["broker_id"] for b in brokers),
        fenced=frozenset(b["broker_id"] for b in brokers if b.get("is_fenced")),
        voters=voters,
        quorum_leader=leader,
        partitions=tuple(
            _partition(topic["name"], partition, minimums[topic["name"]])
            for topic in topics
            for partition in topic["partitions"]
        ),
        stale=leader is None,
        # Asked of the controllers, so it waits in vain where there are none.
        reassigning=() if leader is None else _reassigning(admin),
    )


def _log_bytes(admin: Any) -> dict[int, int]:
    return {
        described["broker"]: sum(
            partition["partition_size"]
            for directory in described["log_dirs"]
            for topic in directory["topics"]
            for partition in topic["partitions"]
        )
        for described in admin.describe_log_dirs()
    }


def _reassigning(admin: Any) -> tuple[str, ...]:
    """Return the partitions that are moving to other brokers."""
    moving = admin.list_partition_reassignments()
    return tuple(sorted(f"{partition.topic}-{partition.partition}" for partition in moving))


def _quorum(admin: Any) -> tuple[int | None, tuple[VoterView, ...]]:
    """Return the quorum's leader and voters, or None and nothing where there is no quorum."""
    try:
        described = admin.describe_metadata_quorum()
    except KafkaError:
        return None, ()
    partition = described["topics"][0]["partitions"][0]
    leader_id = partition["leader_id"]
    voters = {v["replica_id"]: v["last_caught_up_timestamp"] for v in partition["current_voters"]}
    if partition.get("error") or leader_id not in voters:
        return None, ()
    return leader_id, tuple(
        VoterView(node_id, _lag_seconds(node_id, leader_id, voters)) for node_id in sorted(voters)
    )


def _lag_seconds(node_id: int, leader_id: int, caught_up_ms: Mapping[int, int]) -> float | None:
    """Return how long a voter has been behind; a timestamp of -1 is one that never fetched."""
    if node_id == leader_id:
        return 0.0
    if caught_up_ms[node_id] < 0 or caught_up_ms[leader_id] < 0:
        return None
    return max(caught_up_ms[leader_id] - caught_up_ms[node_id], 0) / 1000


def _min_isr(admin: Any, topics: list[str]) -> dict[str, int]:
    if not topics:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, [MIN_ISR]) for topic in topics]
    # The default filter leaves out what equals a default, which is how it is mostly set.
    described = admin.describe_configs(resources, config_filter="all")
    found = {
        topic: int(configs[MIN_ISR]["value"])
        for by_topic in described.values()
        for topic, configs in by_topic.items()
        if MIN_ISR in configs
    }
    missing = [topic for topic in topics if topic not in found]
    if missing:
        raise StillwaterError(
            f"Kafka did not say {MIN_ISR} of topic {missing[0]}; grant DESCRIBE_CONFIGS on topics."
        )
    return found


def _partition(topic: str, found: Mapping[str, Any], min_isr: int) -> PartitionView:
    leader = found["leader_id"]
    return PartitionView(
        topic=topic,
        partition=found["partition_index"],
        leader=None if leader < 0 else leader,
        replicas=tuple(found["replica_nodes"]),
        isr=tuple(found["isr_nodes"]),
        min_isr=min_isr,
    )


def _reorder(admin: Any, orders: Mapping[Partition, Order]) -> None:
    for chunk in _chunks(sorted(orders)):
        asked = {TopicPartition(*partition): list(orders[partition]) for partition in chunk}
        answers = admin.alter_partition_reassignments(asked)
        for partition, error in answers.items():
            if error is not None and not issubclass(error, _HARMLESS):
                raise StillwaterError(
                    f"Kafka refused another order of the replicas of "
                    f"{partition.topic}-{partition.partition}: {error.__name__}."
                )


def _elect(admin: Any, partitions: list[Partition]) -> None:
    for chunk in _chunks(partitions):
        asked: dict[str, list[int]] = {}
        for topic, number in chunk:
            asked.setdefault(topic, []).append(number)
        # One partition without its election must not hide what came of the others.
        answer = admin.elect_leaders(PREFERRED, asked, raise_errors=False)
        for topic in answer.replica_election_results:
            for result in topic.partition_result:
                error = for_code(result.error_code)
                if result.error_code and not issubclass(error, _HARMLESS):
                    raise StillwaterError(
                        f"Kafka elected no leader of {topic.topic}-{result.partition_id}: "
                        f"{error.__name__}."
                    )


def _chunks(partitions: list[Partition]) -> Iterator[list[Partition]]:
    for start in range(0, len(partitions), PARTITIONS_PER_REQUEST):
        yield partitions[start : start + PARTITIONS_PER_REQUEST]
