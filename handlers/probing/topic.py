"""Keeps the probe's topic: a partition for every broker, of which that broker leads by preference.

Kafka gives leaders back to whom they are preferred for by itself (auto.leader.rebalance.enable), so
the probe needs no right on the cluster. The brokers alone know their racks and who has joined.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownBrokerIdError

from core.ground.errors import StillwaterError
from handlers.probing.attempts import replica_placement

# Nobody reads a record twice, and an hour is enough to look at.
CONFIGS = {"retention.ms": "3600000", "segment.ms": "3600000", "cleanup.policy": "delete"}
ASKING_MS = 10_000
# Longer than Kafka takes to find that a broker is gone, and to let others lead.
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 1.0
_PASSING = (TopicAlreadyExistsError, UnknownBrokerIdError)


def racks(admin: KafkaAdminClient) -> dict[int, str | None]:
    """Return the brokers that serve, each with its rack."""
    found = admin.describe_cluster()["brokers"]
    return {b["broker_id"]: b.get("rack") for b in found if not b.get("is_fenced")}


def partitions(admin: KafkaAdminClient, topic: str) -> dict[int, int]:
    """Return each broker's partition: the one it is the first replica of; empty without a topic."""
    (described,) = admin.describe_topics([topic])
    return {
        each["replica_nodes"][0]: each["partition_index"]
        for each in sorted(described["partitions"], key=lambda each: -each["partition_index"])
    }


def ensure_topic(settings: Mapping[str, Any], topic: str, factor: int) -> dict[int, int]:
    """Make the topic, or the partitions that brokers which have joined lack; return each's own.

    What passes by itself (a broker that is down, a leader that moves) is asked again for
    PATIENCE_SECONDS: a probe that starts in a fault is to see it. Raises StillwaterError with what
    Kafka refused, or said last.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _ensure_once(settings, topic, factor)
        except KafkaError as error:
            # A topic that exists by now was made by a request whose answer came too late, and a
            # controller is named before it is listed as a broker.
            passes = error.retriable or isinstance(error, _PASSING)
            if not passes or time.monotonic() > until:
                raise StillwaterError(f"Topic {topic} could not be kept: {error!r}.") from None
        time.sleep(AGAIN_SECONDS)


def _ensure_once(settings: Mapping[str, Any], topic: str, factor: int) -> dict[int, int]:
    admin = KafkaAdminClient(**settings, request_timeout_ms=ASKING_MS)
    try:
        return _kept_leaders(admin, topic, factor)
    finally:
        admin.close()


def _kept_leaders(admin: KafkaAdminClient, topic: str, factor: int) -> dict[int, int]:
    brokers = racks(admin)
    wanted = replica_placement(brokers, min(factor, len(brokers)))
    known = partitions(admin, topic)
    missing = [replicas for broker, replicas in wanted.items() if broker not in known]
    if missing and not known:
        assignments = dict(enumerate(missing))
        admin.create_topics({topic: {"assignments": assignments, "configs": CONFIGS}})
    elif missing:
        count = max(known.values()) + 1 + len(missing)
        admin.create_partitions({topic: {"count": count, "assignments": missing}})
    if missing:
        admin.wait_for_topics([topic])
        known = partitions(admin, topic)
    return {broker: known[broker] for broker in wanted if broker in known}
