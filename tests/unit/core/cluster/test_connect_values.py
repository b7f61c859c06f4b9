"""core.cluster.connect_values: settings with which no worker or task would start."""

from __future__ import annotations

from typing import Any

from core.cluster import contradictions, parse
from tests.every_case import every_case
from tests.unit.infra.programs import description


def found(config: dict[str, Any]) -> list[str]:
    return contradictions.problems(parse(description(connect={"config": config})))


@every_case(
    ("setting", "value", "words"),
    [
        ("rebalance.timeout.ms", -1, "takes 0 to 2147483647, so that no worker would start"),
        ("offset.storage.partitions", 0, "takes 1 to 2147483647, or -1"),
        ("status.storage.replication.factor", 0, "takes 1 to 32767, or -1"),
        ("offset.flush.interval.ms", "1m", "takes a whole number"),
        ("exactly.once.source.support", "yes", "one of disabled, enabled, preparing"),
        ("metrics.recording.level", "TRACE", "one of INFO, DEBUG"),
        ("topic.creation.enable", "no", "one of true, false"),
        ("acks", "2", "one of all, -1, 0, 1"),
        ("status.storage.segment.bytes", 1024, "takes 1048576 to"),
        ("producer.batch.size", -1, "so that connectors' tasks would not start"),
        ("consumer.max.poll.records", 0, "takes 1 to"),
        ("admin.retries", -1, "takes 0 to"),
        ("status.storage.replication.factor", 99, "could never make that topic"),
        ("heartbeat.interval.ms", 10_000, "session.timeout.ms is 10000 where nothing is said"),
        ("session.timeout.ms", 5000, "the brokers take 6000 to 1800000"),
        ("inter.worker.key.size", 39, "a key of HmacSHA256 has 40 bits or more"),
        ("inter.worker.signature.algorithm", "HmacSHA512", "the first among the second"),
        ("producer.delivery.timeout.ms", 30_004, "30000 together, 30005"),
        ("producer.transactional.id", "t", "without producer.enable.idempotence"),
        ("consumer.heartbeat.interval.ms", 45_000, "no sink's task would start"),
        ("consumer.group.remote.assignor", "uniform", "consumer.group.protocol consumer alone"),
    ],
)
def test_what_kafka_connect_refuses_is_a_sentence(setting: str, value: object, words: str) -> None:
    (sentence,) = found({setting: value})
    assert sentence.startswith("connect.config")
    assert words in sentence


@every_case(
    "config",
    [
        {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 44_999},
        {"offset.storage.partitions": -1, "status.storage.replication.factor": -1},
        {"exactly.once.source.support": "ENABLED", "connect.protocol": "sessioned"},
        {"producer.enable.idempotence": True, "producer.acks": "all"},
        {"producer.delivery.timeout.ms": 30_005, "consumer.max.poll.records": 1},
        {"key.converter.schemas.enable": False, "my.extension.setting": "x"},
    ],
)
def test_what_kafka_connect_takes_is_taken(config: dict[str, Any]) -> None:
    assert found(config) == []
