"""Kafka's settings of groups, shared ones, offsets and transactions, and what each takes.

Source: Kafka 4.2's definitions of its coordinators' settings. A segment of their topics has a
mebibyte at least, as any topic's: with less the broker starts and the topic is never made.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.cluster.kafka_kinds import (
    ANY_INT,
    INT,
    LONG,
    MIB,
    SHORT,
    TRUTH,
    Kind,
    Range,
    Shaped,
    Words,
)

# Kafka's own short names of its assignors; all others are classes.
_CLASS = r"[\w$]+(\.[\w$]+)+"
_CONSUMERS = Shaped(
    rf"(uniform|range|{_CLASS})(\s*,\s*(uniform|range|{_CLASS}))*",
    "uniform, range or full names of classes, with commas between",
)
_SHARES = Shaped(rf"simple|{_CLASS}", "simple or the full name of one class")
# As records say it (CompressionType.id): none, gzip, snappy, lz4, zstd.
_CODEC = Range(0, 4)

COORDINATORS: Mapping[str, Kind] = {
    "group.consumer.assignors": _CONSUMERS,
    "group.consumer.heartbeat.interval.ms": Range(1, INT),
    "group.consumer.max.heartbeat.interval.ms": Range(1, INT),
    "group.consumer.max.session.timeout.ms": Range(1, INT),
    "group.consumer.max.size": Range(1, INT),
    "group.consumer.migration.policy": Words(
        ("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), any_case=True
    ),
    "group.consumer.min.heartbeat.interval.ms": Range(1, INT),
    "group.consumer.min.session.timeout.ms": Range(1, INT),
    "group.consumer.regex.refresh.interval.ms": Range(10_000, INT),
    "group.consumer.session.timeout.ms": Range(1, INT),
    "group.coordinator.append.linger.ms": Range(-1, INT),
    "group.coordinator.rebalance.protocols": Words(
        ("classic", "consumer", "share", "streams"), several=True, always="classic"
    ),
    "group.coordinator.threads": Range(1, INT),
    "group.initial.rebalance.delay.ms": ANY_INT,
    "group.max.session.timeout.ms": ANY_INT,
    "group.max.size": Range(1, INT),
    "group.min.session.timeout.ms": ANY_INT,
    "group.share.assignors": _SHARES,
    "group.share.delivery.count.limit": Range(2, 10),
    "group.share.enable": TRUTH,
    "group.share.heartbeat.interval.ms": Range(1, INT),
    "group.share.initialize.retry.interval.ms": Range(1, INT),
    "group.share.max.heartbeat.interval.ms": Range(1, INT),
    "group.share.max.record.lock.duration.ms": Range(30_000, 3_600_000),
    "group.share.max.session.timeout.ms": Range(1, INT),
    "group.share.max.share.sessions": Range(1, INT),
    "group.share.max.size": Range(1, 1000),
    "group.share.min.heartbeat.interval.ms": Range(1, INT),
    "group.share.min.record.lock.duration.ms": Range(1000, 30_000),
    "group.share.min.session.timeout.ms": Range(1, INT),
    "group.share.partition.max.record.locks": Range(100, 10_000),
    "group.share.record.lock.duration.ms": Range(1000, 3_600_000),
    "group.share.session.timeout.ms": Range(1, INT),
    "group.streams.heartbeat.interval.ms": Range(1, INT),
    "group.streams.initial.rebalance.delay.ms": Range(0, INT),
    "group.streams.max.heartbeat.interval.ms": Range(1, INT),
    "group.streams.max.session.timeout.ms": Range(1, INT),
    "group.streams.max.size": Range(1, INT),
    "group.streams.max.standby.replicas": Range(0, INT),
    "group.streams.min.heartbeat.interval.ms": Range(1, INT),
    "group.streams.min.session.timeout.ms": Range(1, INT),
    "group.streams.num.standby.replicas": Range(0, INT),
    "group.streams.session.timeout.ms": Range(1, INT),
    "offset.metadata.max.bytes": ANY_INT,
    "offsets.commit.timeout.ms": Range(1, INT),
    "offsets.load.buffer.size": Range(1, INT),
    "offsets.retention.check.interval.ms": Range(1, LONG),
    "offsets.retention.minutes": Range(1, INT),
    "offsets.topic.compression.codec": _CODEC,
    "offsets.topic.num.partitions": Range(1, INT),
    "offsets.topic.replication.factor": Range(1, SHORT),
    "offsets.topic.segment.bytes": Range(MIB, INT),
    "producer.id.expiration.check.interval.ms": Range(1, INT),
    "producer.id.expiration.ms": Range(1, INT),
    "share.coordinator.append.linger.ms": Range(-1, INT),
    "share.coordinator.cold.partition.snapshot.interval.ms": Range(1, INT),
    "share.coordinator.load.buffer.size": Range(1, INT),
    "share.coordinator.snapshot.update.records.per.snapshot": Range(0, 500),
    "share.coordinator.state.topic.compression.codec": _CODEC,
    "share.coordinator.state.topic.min.isr": Range(1, SHORT),
    "share.coordinator.state.topic.num.partitions": Range(1, INT),
    "share.coordinator.state.topic.prune.interval.ms": Range(1, INT),
    "share.coordinator.state.topic.replication.factor": Range(1, SHORT),
    "share.coordinator.state.topic.segment.bytes": Range(MIB, INT),
    "share.coordinator.threads": Range(1, INT),
    "share.coordinator.write.timeout.ms": Range(1, INT),
    "share.fetch.purgatory.purge.interval.requests": ANY_INT,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": Range(1, INT),
    "transaction.max.timeout.ms": Range(1, INT),
    "transaction.partition.verification.enable": TRUTH,
    "transaction.remove.expired.transaction.cleanup.interval.ms": Range(1, INT),
    "transaction.state.log.load.buffer.size": Range(1, INT),
    "transaction.state.log.min.isr": Range(1, INT),
    "transaction.state.log.num.partitions": Range(1, INT),
    "transaction.state.log.replication.factor": Range(1, SHORT),
    "transaction.state.log.segment.bytes": Range(MIB, INT),
    "transaction.two.phase.commit.enable": TRUTH,
    "transactional.id.expiration.ms": Range(1, INT),
}
