"""Kafka Connect's settings of a worker and of its clients, and what each takes.

What begins with `producer.`, `consumer.` or `admin.` is of connectors' own clients; a client's
setting without that is of the clients that a worker has for itself. Sources: Kafka 4.2's
DistributedConfig, ProducerConfig, ConsumerConfig and AdminClientConfig.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.cluster.kafka_kinds import (
    ANY_INT,
    ANY_LONG,
    ANY_NUMBER,
    CLASS,
    CLASSES,
    INT,
    LONG,
    NAME,
    SHORT,
    TRUTH,
    Kind,
    Range,
    Shaped,
    Words,
)

_ZERO, _ONE = Range(0, INT), Range(1, INT)
_ZERO_LONG = Range(0, LONG)
_NAMES = Shaped(r"([^\s,]+(\s*,\s*[^\s,]+)*)?", "names with commas between")
_FACTOR, _PARTITIONS = Range(1, SHORT, also=-1), Range(1, INT, also=-1)
_HMACS = (
    *("HmacMD5", "HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512"),
    *("HmacSHA512/224", "HmacSHA512/256"),
    *("HmacSHA3-224", "HmacSHA3-256", "HmacSHA3-384", "HmacSHA3-512"),
)
# Java 17's; those of TLS itself make no key of their own.
GENERATORS = (
    *("AES", "ARCFOUR", "Blowfish", "ChaCha20", "DES", "DESede", "RC2"),
    *_HMACS,
)
MACS = (
    *_HMACS,
    *("HmacPBESHA1", "HmacPBESHA224", "HmacPBESHA256", "HmacPBESHA384", "HmacPBESHA512"),
    *("HmacPBESHA512/224", "HmacPBESHA512/256", "PBEWithHmacSHA1", "PBEWithHmacSHA224"),
    *("PBEWithHmacSHA256", "PBEWithHmacSHA384", "PBEWithHmacSHA512", "SslMacMD5", "SslMacSHA1"),
)
_CLIENT: Mapping[str, Kind] = {
    "client.dns.lookup": Words(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    "config.providers": _NAMES,
    "connections.max.idle.ms": ANY_LONG,
    "metadata.max.age.ms": _ZERO_LONG,
    "metadata.recovery.rebootstrap.trigger.ms": _ZERO_LONG,
    "metadata.recovery.strategy": Words(("REBOOTSTRAP", "NONE"), any_case=True),
    "metric.reporters": CLASSES,
    "metrics.num.samples": _ONE,
    "metrics.recording.level": Words(("INFO", "DEBUG", "TRACE")),
    "metrics.sample.window.ms": _ZERO_LONG,
    "receive.buffer.bytes": Range(-1, INT),
    "reconnect.backoff.max.ms": _ZERO_LONG,
    "reconnect.backoff.ms": _ZERO_LONG,
    "request.timeout.ms": _ZERO,
    "retry.backoff.max.ms": _ZERO_LONG,
    "retry.backoff.ms": _ZERO_LONG,
    "send.buffer.bytes": Range(-1, INT),
    "socket.connection.setup.timeout.max.ms": ANY_LONG,
    "socket.connection.setup.timeout.ms": ANY_LONG,
}
WORKER: Mapping[str, Kind] = {
    **_CLIENT,
    "config.storage.replication.factor": _FACTOR,
    "connect.protocol": Words(("eager", "compatible", "sessioned"), any_case=True),
    "exactly.once.source.support": Words(("disabled", "enabled", "preparing"), any_case=True),
    "header.converter": CLASS,
    "heartbeat.interval.ms": _ZERO,
    "inter.worker.key.generation.algorithm": Words(GENERATORS, any_case=True),
    "inter.worker.key.size": ANY_INT,
    "inter.worker.key.ttl.ms": _ZERO,
    "inter.worker.signature.algorithm": Words(MACS, any_case=True),
    "inter.worker.verification.algorithms": Words(MACS, several=True, any_case=True),
    "key.converter": CLASS,
    "metrics.recording.level": Words(("INFO", "DEBUG")),
    "offset.flush.interval.ms": ANY_LONG,
    "offset.flush.timeout.ms": ANY_LONG,
    "offset.storage.partitions": _PARTITIONS,
    "offset.storage.replication.factor": _FACTOR,
    "plugin.discovery": Words(
        ("only_scan", "service_load", "hybrid_warn", "hybrid_fail"), any_case=True
    ),
    "rebalance.timeout.ms": _ZERO,
    "scheduled.rebalance.max.delay.ms": _ZERO,
    "session.timeout.ms": ANY_INT,
    "socket.connection.setup.timeout.max.ms": _ZERO_LONG,
    "socket.connection.setup.timeout.ms": _ZERO_LONG,
    "status.storage.partitions": _PARTITIONS,
    "status.storage.replication.factor": _FACTOR,
    "task.shutdown.graceful.timeout.ms": ANY_LONG,
    "topic.creation.enable": TRUTH,
    "topic.tracking.allow.reset": TRUTH,
    "topic.tracking.enable": TRUTH,
    "value.converter": CLASS,
    "worker.sync.timeout.ms": ANY_INT,
    "worker.unsync.backoff.ms": ANY_INT,
}
_SECURITY: Mapping[str, Kind] = {
    "sasl.client.callback.handler.class": CLASS,
    "sasl.kerberos.min.time.before.relogin": ANY_LONG,
    "sasl.kerberos.ticket.renew.jitter": ANY_NUMBER,
    "sasl.kerberos.ticket.renew.window.factor": ANY_NUMBER,
    "sasl.login.callback.handler.class": CLASS,
    "sasl.login.class": CLASS,
    "sasl.login.connect.timeout.ms": ANY_INT,
    "sasl.login.read.timeout.ms": ANY_INT,
    "sasl.login.refresh.buffer.seconds": Range(0, 3600),
    "sasl.login.refresh.min.period.seconds": Range(0, 900),
    "sasl.login.refresh.window.factor": Range(0.5, 1.0, whole=False),
    "sasl.login.refresh.window.jitter": Range(0.0, 0.25, whole=False),
    "sasl.login.retry.backoff.max.ms": ANY_LONG,
    "sasl.login.retry.backoff.ms": ANY_LONG,
    "sasl.oauthbearer.assertion.algorithm": Words(("ES256", "RS256"), any_case=True),
    "sasl.oauthbearer.assertion.claim.exp.seconds": Range(0, 86_400),
    "sasl.oauthbearer.assertion.claim.jti.include": TRUTH,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Range(0, 3600),
    "sasl.oauthbearer.clock.skew.seconds": ANY_INT,
    "sasl.oauthbearer.header.urlencode": TRUTH,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": ANY_LONG,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": ANY_LONG,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": ANY_LONG,
    "sasl.oauthbearer.jwt.retriever.class": CLASS,
    "sasl.oauthbearer.jwt.validator.class": CLASS,
    "security.protocol": Words(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True),
    "ssl.engine.factory.class": CLASS,
}
PRODUCER: Mapping[str, Kind] = {
    **_CLIENT,
    **_SECURITY,
    "acks": Words(("all", "-1", "0", "1")),
    "batch.size": _ZERO,
    "buffer.memory": _ZERO_LONG,
    "compression.gzip.level": Range(1, 9, also=-1),
    "compression.lz4.level": Range(1, 17),
    "compression.type": Words(("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.zstd.level": Range(-131_072, 22),
    "delivery.timeout.ms": _ZERO,
    "enable.idempotence": TRUTH,
    "enable.metrics.push": TRUTH,
    "interceptor.classes": CLASSES,
    "key.serializer": CLASS,
    "linger.ms": _ZERO_LONG,
    "max.block.ms": _ZERO_LONG,
    "max.in.flight.requests.per.connection": _ONE,
    "max.request.size": _ZERO,
    "metadata.max.idle.ms": Range(5000, LONG),
    "partitioner.adaptive.partitioning.enable": TRUTH,
    "partitioner.availability.timeout.ms": _ZERO_LONG,
    "partitioner.class": CLASS,
    "partitioner.ignore.keys": TRUTH,
    "retries": _ZERO,
    "transaction.timeout.ms": ANY_INT,
    "transaction.two.phase.commit.enable": TRUTH,
    "transactional.id": NAME,
    "value.serializer": CLASS,
}
CONSUMER: Mapping[str, Kind] = {
    **_CLIENT,
    **_SECURITY,
    "allow.auto.create.topics": TRUTH,
    "auto.commit.interval.ms": _ZERO,
    "auto.offset.reset": Shaped(
        r"latest|earliest|none|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
        "latest, earliest, none or by_duration:PnDTnHnMnS",
    ),
    "check.crcs": TRUTH,
    "default.api.timeout.ms": _ZERO,
    "enable.auto.commit": TRUTH,
    "enable.metrics.push": TRUTH,
    "exclude.internal.topics": TRUTH,
    "fetch.max.bytes": _ZERO,
    "fetch.max.wait.ms": _ZERO,
    "fetch.min.bytes": _ZERO,
    "group.instance.id": NAME,
    "group.protocol": Words(("classic", "consumer"), any_case=True),
    "heartbeat.interval.ms": _ZERO,
    "interceptor.classes": CLASSES,
    "isolation.level": Words(("read_committed", "read_uncommitted")),
    "key.deserializer": CLASS,
    "max.partition.fetch.bytes": _ZERO,
    "max.poll.interval.ms": _ONE,
    "max.poll.records": _ONE,
    "partition.assignment.strategy": CLASSES,
    "session.timeout.ms": ANY_INT,
    "share.acknowledgement.mode": Words(("implicit", "explicit")),
    "share.acquire.mode": Words(("batch_optimized", "record_limit"), any_case=True),
    "value.deserializer": CLASS,
}
ADMIN: Mapping[str, Kind] = {
    **_CLIENT,
    **_SECURITY,
    "default.api.timeout.ms": _ZERO,
    "enable.metrics.push": TRUTH,
    "retries": _ZERO,
}
# What a worker says for its own clients itself, whatever is set.
_ITS_OWN = frozenset(
    {
        *("enable.idempotence", "key.serializer", "value.serializer"),
        *("enable.auto.commit", "auto.offset.reset", "key.deserializer", "value.deserializer"),
    }
)
CLIENTS: Mapping[str, Mapping[str, Kind]] = {
    "producer.": PRODUCER,
    "consumer.": CONSUMER,
    "admin.": ADMIN,
}
# Of the clients that a worker has for itself.
INTERNAL: Mapping[str, Kind] = {
    setting: kind
    for kinds in (PRODUCER, CONSUMER, ADMIN)
    for setting, kind in kinds.items()
    if setting not in WORKER
    and setting not in _ITS_OWN
    and not setting.startswith(("sasl.", "security.", "ssl."))
}
# Names, addresses and the like, of which Kafka takes any text when it starts.
_TEXTS = """
access.control.allow.methods access.control.allow.origin bootstrap.controllers client.id client.rack
group.remote.assignor header.converter.plugin.version key.converter.plugin.version
value.converter.plugin.version
"""
# Judged by classes that come with a connector, or where clients are secured.
_JUDGED_LATER = """
admin.listeners connector.client.config.override.policy response.http.headers.config
"""
OTHERS = frozenset(_TEXTS.split()) | frozenset(_JUDGED_LATER.split())
