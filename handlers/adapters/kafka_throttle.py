"""Kafka's settings that throttle replication: a rate for every broker, and topics marked for it.

The rate is the default of all brokers: a broker's own value can be set at that broker alone, and
one that is away would keep it. Kafka throttles a replica that is out of sync and marked, and none
in sync (KIP-73).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kafka.errors import UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from core.availability.kafka_rights import Call
from core.rotation.step import Throttle
from handlers.adapters.kafka_answers import BROKER, TOPIC, permitted
from handlers.adapters.kafka_wire import Wire

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MARKS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
EVERY_REPLICA = "*"
ALL_BROKERS = ""  # the name of their default
TOPICS_PER_REQUEST = 500
_SET, _DELETE = 0, 1  # KIP-339's operations


def set_throttle(wire: Wire, throttle: Throttle) -> None:
    """Set the rates first: a mark without a rate holds nothing back."""
    rates = {
        LEADER_RATE: str(throttle.leader_bytes_per_s),
        FOLLOWER_RATE: str(throttle.follower_bytes_per_s),
    }
    _alter(wire, BROKER, [ALL_BROKERS], rates)
    _alter(wire, TOPIC, sorted(throttle.topics), dict.fromkeys(MARKS, EVERY_REPLICA))


def lift_throttle(wire: Wire, topics: Collection[str]) -> None:
    """Take the rates away first: then nothing is held back, whatever fails afterwards."""
    _alter(wire, BROKER, [ALL_BROKERS], dict.fromkeys((LEADER_RATE, FOLLOWER_RATE)))
    _alter(wire, TOPIC, sorted(topics), dict.fromkeys(MARKS))


def _alter(wire: Wire, kind: int, names: Sequence[str], values: Mapping[str, str | None]) -> None:
    changes = [(key, _DELETE if value is None else _SET, value) for key, value in values.items()]
    call = Call.ALTER_BROKER_CONFIGS if kind == BROKER else Call.ALTER_TOPIC_CONFIGS
    for some in _chunks(names):
        answer = wire.ask(
            IncrementalAlterConfigsRequest(
                resources=[(kind, name, changes) for name in some], validate_only=False
            )
        )
        for result in answer.responses:
            # A topic that was deleted meanwhile is throttled by nobody.
            gone = result.error_code and issubclass(
                for_code(result.error_code), UnknownTopicOrPartitionError
            )
            if not gone:
                permitted(result.error_code, call)


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), TOPICS_PER_REQUEST):
        yield names[start : start + TOPICS_PER_REQUEST]
