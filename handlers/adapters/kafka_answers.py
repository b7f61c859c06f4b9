"""Requests of Kafka's protocol that readings send, and what is taken out of their answers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import Any

from kafka.errors import AuthorizationError, for_code
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListConfigResourcesRequest,
)

from core.availability.answers import BrokerAnswer, DirectoryAnswer, ReplicaAnswer
from core.availability.kafka_rights import KafkaOperation, KafkaRequest, grant
from core.errors import StillwaterError
from handlers.adapters.kafka_wire import Wire, error_name

METADATA_TOPIC = "__cluster_metadata"
TOPIC, BROKER = 2, 4  # Kafka's numbers of config resources
# Kafka's numbers of operations.
_OPERATIONS = {
    KafkaOperation.ALTER: 7,
    KafkaOperation.DESCRIBE: 8,
    KafkaOperation.DESCRIBE_CONFIGS: 10,
}
# Nobody waits for a right to throttle: AlterConfigs is found missing where it is used.


def quorum_request() -> Any:
    return DescribeQuorumRequest(topics=[(METADATA_TOPIC, [(0,)])])


def topic_names_request() -> Any:
    return ListConfigResourcesRequest(resource_types=[TOPIC], min_version=1)


def brokers_there(wire: Wire) -> list[int]:
    """Return the ids of the brokers that are registered and not fenced."""
    return sorted(b.broker_id for b in brokers_in(wire.ask(cluster_request())) if not b.fenced)


def log_dirs_request() -> Any:
    return DescribeLogDirsRequest(topics=None)


def cluster_request() -> Any:
    return DescribeClusterRequest(
        include_cluster_authorized_operations=True, include_fenced_brokers=True
    )


def brokers_in(answer: Any) -> list[BrokerAnswer]:
    raise_for(answer.error_code)
    # Before 4.0 a broker that is fenced is not in the answer at all.
    return [BrokerAnswer(each.broker_id, bool(each.is_fenced)) for each in answer.brokers]


def replicas_in(found: Iterable[Any]) -> tuple[ReplicaAnswer, ...]:
    return tuple(ReplicaAnswer(each.replica_id, each.last_caught_up_timestamp) for each in found)


def directory_in(found: Any) -> DirectoryAnswer:
    return DirectoryAnswer(
        path=found.log_dir,
        # A future log is a copy in the making, on another disk of the same broker.
        held=frozenset(
            (name, partition.partition_index)
            for topic in found.topics
            # One text for what every broker says: 200 of them name each topic.
            for name in (sys.intern(topic.name),)
            for partition in topic.partitions
            if not partition.is_future_key
        ),
        error=error_name(found.error_code),
    )


def raise_for(code: int) -> None:
    if code:
        raise for_code(code)


def allowed_in(operations: Collection[int] | None) -> frozenset[str] | None:
    """Return what a client may do with the cluster, of what the functions ever do."""
    if operations is None:
        return None
    return frozenset(name for name, number in _OPERATIONS.items() if number in operations)


def voters_in(configured: str) -> frozenset[int]:
    """Return the ids in controller.quorum.voters.

    >>> sorted(voters_in("0@a:9090,1@b:9090"))
    [0, 1]
    """
    ids = (each.partition("@")[0].strip() for each in configured.split(","))
    return frozenset(int(each) for each in ids if each.isdecimal())


def seconds_in(milliseconds: str | None) -> float | None:
    told = milliseconds is not None and milliseconds.isdecimal()
    return int(milliseconds or 0) / 1000 if told else None


def raise_where_refused(code: int, call: KafkaRequest) -> None:
    """Raise where Kafka refuses a call as a whole, with the right to grant where one is missing."""
    if not code:
        return
    remedy = f"; {grant(call)}" if issubclass(for_code(code), AuthorizationError) else ""
    raise StillwaterError(f"Kafka refuses {call} ({error_name(code)}){remedy}.")
