"""Kafka's settings of topics and brokers, and what each takes: types, ranges, words.

Sources: Kafka 4.2's LogConfig, and the definitions of its server, log, quorum, group and
transaction settings; KIP-1030 (a segment has a mebibyte at least).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

INT, LONG = 2**31 - 1, 2**63 - 1
MIB = 1024**2
Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two others."""

    least: float
    most: float
    whole: bool = True

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        given = None if isinstance(value, bool) else number(str(value).strip(), whole=self.whole)
        if given is None:
            return "a whole number" if self.whole else "a number"
        return None if self.least <= given <= self.most else f"{self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class Words:
    """One of some words, or several of them with commas between."""

    words: tuple[str, ...]
    several: bool = False

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        written = str(value).lower() if isinstance(value, bool) else str(value)
        given = [each.strip() for each in written.split(",")] if self.several else [written.strip()]
        known = {each.lower() for each in self.words} if self.words == _TRUTH else set(self.words)
        compared = {each.lower() for each in given} if self.words == _TRUTH else set(given)
        if compared <= known:
            return None
        return f"{'some' if self.several else 'one'} of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Shaped:
    """Text of a form."""

    expression: str
    form: str

    def refuses(self, value: Value) -> str | None:
        """Return what it must be; None: it is."""
        return None if re.fullmatch(self.expression, str(value)) else self.form


Kind = Range | Words | Shaped
_TRUTH = ("true", "false")
TRUTH = Words(_TRUTH)
_CODECS = Words(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
_CLEANUP = Words(("compact", "delete"), several=True)
_TIMESTAMP = Words(("CreateTime", "LogAppendTime"))
_THROTTLED = Shaped(r"\*|(\d+:\d+(,\d+:\d+)*)?", "*, or PARTITION:BROKER with commas between")
_GZIP, _LZ4, _ZSTD = Range(-1, 9), Range(1, 17), Range(-131_072, 22)

TOPIC: Mapping[str, Kind] = {
    "cleanup.policy": _CLEANUP,
    "compression.gzip.level": _GZIP,
    "compression.lz4.level": _LZ4,
    "compression.type": _CODECS,
    "compression.zstd.level": _ZSTD,
    "delete.retention.ms": Range(0, LONG),
    "file.delete.delay.ms": Range(0, LONG),
    "flush.messages": Range(1, LONG),
    "flush.ms": Range(0, LONG),
    "follower.replication.throttled.replicas": _THROTTLED,
    "index.interval.bytes": Range(0, INT),
    "leader.replication.throttled.replicas": _THROTTLED,
    "local.retention.bytes": Range(-2, LONG),
    "local.retention.ms": Range(-2, LONG),
    "max.compaction.lag.ms": Range(1, LONG),
    "max.message.bytes": Range(0, INT),
    "message.timestamp.after.max.ms": Range(0, LONG),
    "message.timestamp.before.max.ms": Range(0, LONG),
    "message.timestamp.type": _TIMESTAMP,
    "min.cleanable.dirty.ratio": Range(0, 1, whole=False),
    "min.compaction.lag.ms": Range(0, LONG),
    "min.insync.replicas": Range(1, INT),
    "preallocate": TRUTH,
    "remote.log.copy.disable": TRUTH,
    "remote.log.delete.on.disable": TRUTH,
    "remote.storage.enable": TRUTH,
    "retention.bytes": Range(-(2**63), LONG),
    "retention.ms": Range(-1, LONG),
    "segment.bytes": Range(MIB, INT),
    "segment.index.bytes": Range(4, INT),
    "segment.jitter.ms": Range(0, LONG),
    "segment.ms": Range(1, LONG),
    "unclean.leader.election.enable": TRUTH,
}
BROKER: Mapping[str, Kind] = {
    "auto.create.topics.enable": TRUTH,
    "auto.leader.rebalance.enable": TRUTH,
    "background.threads": Range(1, INT),
    "compression.gzip.level": _GZIP,
    "compression.lz4.level": _LZ4,
    "compression.type": _CODECS,
    "compression.zstd.level": _ZSTD,
    "connection.failed.authentication.delay.ms": Range(0, INT),
    "connections.max.idle.ms": Range(-(2**63), LONG),
    "connections.max.reauth.ms": Range(-(2**63), LONG),
    "controlled.shutdown.enable": TRUTH,
    "controlled.shutdown.max.retries": Range(-INT, INT),
    "default.replication.factor": Range(1, 32_767),
    "delete.topic.enable": TRUTH,
    "fetch.max.bytes": Range(1024, INT),
    "fetch.purgatory.purge.interval.requests": Range(-INT, INT),
    "group.initial.rebalance.delay.ms": Range(-INT, INT),
    "group.max.session.timeout.ms": Range(-INT, INT),
    "group.max.size": Range(1, INT),
    "group.min.session.timeout.ms": Range(-INT, INT),
    "leader.imbalance.check.interval.seconds": Range(1, LONG),
    "log.cleaner.backoff.ms": Range(0, LONG),
    "log.cleaner.dedupe.buffer.size": Range(-(2**63), LONG),
    "log.cleaner.delete.retention.ms": Range(0, LONG),
    "log.cleaner.enable": TRUTH,
    "log.cleaner.min.cleanable.ratio": Range(0, 1, whole=False),
    "log.cleaner.threads": Range(0, INT),
    "log.cleanup.policy": _CLEANUP,
    "log.flush.interval.messages": Range(1, LONG),
    "log.index.interval.bytes": Range(0, INT),
    "log.local.retention.bytes": Range(-2, LONG),
    "log.local.retention.ms": Range(-2, LONG),
    "log.message.timestamp.type": _TIMESTAMP,
    "log.preallocate": TRUTH,
    "log.retention.bytes": Range(-(2**63), LONG),
    "log.retention.check.interval.ms": Range(1, LONG),
    "log.retention.hours": Range(-INT, INT),
    "log.retention.minutes": Range(-INT, INT),
    "log.retention.ms": Range(-(2**63), LONG),
    "log.roll.hours": Range(1, INT),
    "log.roll.ms": Range(1, LONG),
    "log.segment.bytes": Range(MIB, INT),
    "log.segment.delete.delay.ms": Range(0, LONG),
    "max.connections": Range(0, INT),
    "max.connections.per.ip": Range(0, INT),
    "max.incremental.fetch.session.cache.slots": Range(0, INT),
    "message.max.bytes": Range(0, INT),
    "min.insync.replicas": Range(1, INT),
    "num.io.threads": Range(1, INT),
    "num.network.threads": Range(1, INT),
    "num.partitions": Range(1, INT),
    "num.recovery.threads.per.data.dir": Range(1, INT),
    "num.replica.alter.log.dirs.threads": Range(-INT, INT),
    "num.replica.fetchers": Range(-INT, INT),
    "offsets.retention.minutes": Range(1, INT),
    "offsets.topic.num.partitions": Range(1, INT),
    "offsets.topic.replication.factor": Range(1, 32_767),
    "queued.max.requests": Range(1, INT),
    "remote.log.storage.system.enable": TRUTH,
    "replica.fetch.backoff.ms": Range(0, INT),
    "replica.fetch.max.bytes": Range(0, INT),
    "replica.fetch.min.bytes": Range(-INT, INT),
    "replica.fetch.wait.max.ms": Range(-INT, INT),
    "replica.lag.time.max.ms": Range(-(2**63), LONG),
    "replica.socket.receive.buffer.bytes": Range(-INT, INT),
    "replica.socket.timeout.ms": Range(-INT, INT),
    "request.timeout.ms": Range(-INT, INT),
    "socket.receive.buffer.bytes": Range(-INT, INT),
    "socket.request.max.bytes": Range(1, INT),
    "socket.send.buffer.bytes": Range(-INT, INT),
    "transaction.max.timeout.ms": Range(1, INT),
    "transaction.state.log.min.isr": Range(1, INT),
    "transaction.state.log.num.partitions": Range(1, INT),
    "transaction.state.log.replication.factor": Range(1, 32_767),
    "transactional.id.expiration.ms": Range(1, INT),
    "unclean.leader.election.enable": TRUTH,
}
# Brokers' settings whose values are not judged here: known, so that they are no misspelling.
_OTHERS = """
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name
client.quota.callback.class create.topic.policy.class.name
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
delegation.token.max.lifetime.ms delegation.token.secret.key
delete.records.purgatory.purge.interval.requests early.start.listeners group.consumer.assignors
group.consumer.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms
group.consumer.max.session.timeout.ms group.consumer.max.size group.consumer.migration.policy
group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.rebalance.protocols group.coordinator.threads
group.share.assignors group.share.delivery.count.limit group.share.enable
group.share.heartbeat.interval.ms group.share.max.groups group.share.max.heartbeat.interval.ms
group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
group.share.min.heartbeat.interval.ms group.share.min.record.lock.duration.ms
group.share.min.session.timeout.ms group.share.partition.max.record.locks
group.share.persister.class.name group.share.record.lock.duration.ms
group.share.record.lock.partition.limit group.share.session.timeout.ms
group.streams.heartbeat.interval.ms group.streams.max.heartbeat.interval.ms
group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
group.streams.num.standby.replicas group.streams.session.timeout.ms
initial.broker.registration.timeout.ms kafka.metrics.polling.interval.secs kafka.metrics.reporters
leader.imbalance.per.broker.percentage log.cleaner.io.buffer.load.factor
log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.compaction.lag.ms log.dir.failure.timeout.ms log.flush.interval.ms
log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
log.flush.start.offset.checkpoint.interval.ms log.index.size.max.bytes log.initial.task.delay.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.roll.jitter.hours
log.roll.jitter.ms max.connection.creation.rate max.connections.per.ip.overrides
max.request.partition.size.limit metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
offset.metadata.max.bytes offsets.commit.timeout.ms offsets.load.buffer.size
offsets.retention.check.interval.ms offsets.topic.compression.codec offsets.topic.segment.bytes
principal.builder.class producer.id.expiration.check.interval.ms producer.id.expiration.ms
producer.purgatory.purge.interval.requests queued.max.request.bytes quota.window.num
quota.window.size.seconds remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path
remote.log.storage.manager.impl.prefix replica.fetch.response.max.bytes
replica.high.watermark.checkpoint.interval.ms replica.selector.class replication.quota.window.num
replication.quota.window.size.seconds server.max.startup.time.ms
share.coordinator.append.linger.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot
share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
share.coordinator.threads share.coordinator.write.timeout.ms
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
socket.listen.backlog.size telemetry.max.bytes
transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.partition.verification.enable
transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
transaction.state.log.segment.bytes transaction.two.phase.commit.enable
unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
"""
OTHERS = frozenset(_OTHERS.split())


def number(written: str, *, whole: bool = True) -> float | None:
    """Return a number as Kafka's own parser reads it; None: it would not."""
    if re.fullmatch(r"[-+]?[0-9]+", written):
        return int(written)
    if whole or re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?", written) is None:
        return None
    return float(written)
