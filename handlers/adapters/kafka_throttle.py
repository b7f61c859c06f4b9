"""Kafka's settings that throttle replication: a rate for every broker, and topics marked for it.

The rate is the default of all brokers: a broker's own value can be set at that broker alone, and
one that is away would keep it. Kafka throttles a replica that is out of sync and marked, and none
in sync (KIP-73).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from kafka.errors import UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from core.availability.kafka_rights import KafkaRequest
from core.rotation.step import Throttle
from handlers.adapters.calls import portions
from handlers.adapters.kafka_answers import BROKER, TOPIC, raise_where_refused
from handlers.adapters.kafka_wire import Wire

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MARKS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
EVERY_REPLICA = "*"
ALL_BROKERS = ""  # the name of their default
TOPICS_PER_REQUEST = 500
T = TypeVar("T")
_SET, _DELETE = 0, 1  # KIP-339's operations
# Where a value stands that somebody set while brokers ran: a topic, a broker, all brokers' default.
_SET_BY_SOMEBODY = frozenset({1, 2, 3})


def set_by_others(wire: Wire, throttle: Throttle, ours: Collection[str]) -> str | None:
    """Say which throttle somebody else has set where this one would be; None: nobody has.

    `ours` are the topics that are marked already, by an earlier turn: with any, so are the rates.
    """
    topics = [(TOPIC, name, list(MARKS)) for name in sorted({*throttle.topics} - {*ours})]
    found = (_first_set(wire, some, None) for some in portions(topics, TOPICS_PER_REQUEST))
    rates = (
        _first_set(wire, [(BROKER, str(broker), [LEADER_RATE, FOLLOWER_RATE])], broker)
        for broker in (() if ours else throttle.brokers)
    )
    return next((said for said in chain(rates, found) if said), None)


def _first_set(
    wire: Wire, resources: Sequence[tuple[int, str, list[str]]], broker: int | None
) -> str | None:
    answer = wire.ask(DescribeConfigsRequest(resources=list(resources)), broker)
    for each in answer.results:
        call = KafkaRequest.DESCRIBE_BROKER_CONFIGS
        what = f"broker {each.resource_name}"
        if each.resource_type == TOPIC:
            call, what = KafkaRequest.DESCRIBE_TOPIC_CONFIGS, f"topic {each.resource_name}"
        raise_where_refused(each.error_code, call)
        for config in each.configs:
            if config.config_source in _SET_BY_SOMEBODY and config.value:
                return f"{what} has {config.name}={config.value} already, which is not ours."
    return None


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
    call = KafkaRequest.ALTER_BROKER_CONFIGS if kind == BROKER else KafkaRequest.ALTER_TOPIC_CONFIGS
    for some in portions(names, TOPICS_PER_REQUEST):
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
                raise_where_refused(result.error_code, call)
