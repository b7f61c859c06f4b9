"""Decides what Kafka refuses of settings beside each other: of a broker's, and of a topic's.

One of a pair that is set alone is held against the other's default. Sources: Kafka 4.2's
KafkaConfig.validateValues, the constructors of GroupCoordinatorConfig and ShareGroupConfig, and
LogConfig's validations of brokers and of topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.cluster.kafka_defaults import default_config
from core.cluster.kafka_kinds import LONG, MIB, Value, figure_of, setting_text, whole_number
from core.cluster.spec import ClusterSpec

Config = Mapping[str, Value]
_DAY_MS = 86_400_000
TIERED = "remote.log.storage.system.enable"
STORAGE = "remote.log.storage.manager.class.name"
_FETCH_WAIT, _REQUEST = "replica.fetch.wait.max.ms", "socket.request.max.bytes"
_BUFFER, _CLEANERS = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
_SHORTEST, _LONGEST = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
_LOCAL_MS, _LOCAL_BYTES = "log.local.retention.ms", "log.local.retention.bytes"
# The first that is set decides; in milliseconds.
RETENTION = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3600_000,
}
# Of what stays on the brokers: as much as is kept in all.
_UNSAID = -2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two settings of which the first may not be above the second, or has to be below it.

    They are compared where the second is at least `since`; below that it means no limit.
    """

    lower: str
    upper: str
    below: bool = False
    since: int = -LONG - 1


def _of_group(kind: str) -> Iterator[Pair]:
    for figure in ("heartbeat.interval.ms", "session.timeout.ms"):
        least, most = f"group.{kind}.min.{figure}", f"group.{kind}.max.{figure}"
        yield Pair(least, f"group.{kind}.{figure}")
        yield Pair(f"group.{kind}.{figure}", most)
    yield Pair(
        f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms", below=True
    )


_GROUPS = ("consumer", "share", "streams")
PAIRS: tuple[Pair, ...] = (
    Pair(_FETCH_WAIT, "replica.socket.timeout.ms"),
    Pair(_FETCH_WAIT, "replica.lag.time.max.ms"),
    Pair(_REQUEST, "queued.max.request.bytes", since=1),
    Pair(
        "connection.failed.authentication.delay.ms",
        "connections.max.idle.ms",
        below=True,
        since=0,
    ),
    Pair(_SHORTEST, _LONGEST),
    *(pair for kind in _GROUPS for pair in _of_group(kind)),
    Pair("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    Pair("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    Pair("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    Pair("group.share.max.size", "group.share.max.share.sessions"),
)
# Kafka's own, of what is compared here; ours come before them (kafka_defaults).
DEFAULTS: Mapping[str, int] = {
    _FETCH_WAIT: 500,
    "replica.socket.timeout.ms": 30_000,
    "replica.lag.time.max.ms": 30_000,
    _REQUEST: 100 * MIB,
    "queued.max.request.bytes": -1,
    "connection.failed.authentication.delay.ms": 100,
    "connections.max.idle.ms": 600_000,
    _SHORTEST: 0,
    _LONGEST: LONG,
    **{f"group.{kind}.min.heartbeat.interval.ms": 5000 for kind in _GROUPS},
    **{f"group.{kind}.heartbeat.interval.ms": 5000 for kind in _GROUPS},
    **{f"group.{kind}.max.heartbeat.interval.ms": 15_000 for kind in _GROUPS},
    **{f"group.{kind}.min.session.timeout.ms": 45_000 for kind in _GROUPS},
    **{f"group.{kind}.session.timeout.ms": 45_000 for kind in _GROUPS},
    **{f"group.{kind}.max.session.timeout.ms": 60_000 for kind in _GROUPS},
    "group.streams.num.standby.replicas": 0,
    "group.streams.max.standby.replicas": 2,
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.share.record.lock.duration.ms": 30_000,
    "group.share.max.record.lock.duration.ms": 60_000,
    "group.share.max.size": 200,
    "group.share.max.share.sessions": 2000,
    _BUFFER: 128 * MIB,
    _CLEANERS: 1,
    _LOCAL_MS: _UNSAID,
    _LOCAL_BYTES: _UNSAID,
    "log.retention.bytes": -1,
}


def of_brokers(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each two settings with which no broker would start."""
    config, ours = spec.kafka.config, default_config(spec)
    for pair in PAIRS:
        lower, upper = (
            figure_of(each, config, ours, DEFAULTS) for each in (pair.lower, pair.upper)
        )
        if lower is None or upper is None or upper < pair.since:
            continue
        if lower > upper or (pair.below and lower == upper):
            yield (
                f"kafka.config: {setting_text(pair.lower, lower, config)} and "
                f"{setting_text(pair.upper, upper, config)}, and Kafka wants the first "
                f"{'below' if pair.below else 'no higher than'} the second, so that no broker "
                f"would start; lower the first or raise the second."
            )
    yield from _of_the_cleaner(config)
    if figure_of("max.connections.per.ip", config, DEFAULTS) == 0 and not config.get(
        "max.connections.per.ip.overrides"
    ):
        yield (
            "kafka.config sets max.connections.per.ip to 0 and no max.connections.per.ip.overrides,"
            " so that no broker would start; raise it, or name who may connect."
        )
    deciding = next((each for each in RETENTION if each in config), None)
    if deciding is not None and figure_of(deciding, config, DEFAULTS) == 0:
        yield (
            f"kafka.config sets {deciding} to 0, and Kafka keeps records for a time or, at -1, for "
            f"good, so that no broker would start; write -1 or more than 0."
        )
    if is_true(config, TIERED):
        if STORAGE not in config:
            yield (
                f"kafka.config sets {TIERED} and no {STORAGE}, without which no broker would start;"
                f" name the class of your storage, or take it out."
            )
        yield from _local_retention("kafka.config", "log.local.retention", {}, config)


def of_topic(whose: str, config: Config, brokers: Config) -> Iterator[str]:
    """Yield a sentence for each two settings with which Kafka would not make a topic.

    What the topic does not set it has of the brokers.
    """
    lag = {"min.compaction.lag.ms": _SHORTEST, "max.compaction.lag.ms": _LONGEST}
    least, most = (_of_topic_or_broker(*each, config, brokers) for each in lag.items())
    if lag.keys() & config.keys() and least is not None and most is not None and least > most:
        yield (
            f"{whose} has min.compaction.lag.ms {least} and max.compaction.lag.ms {most}, and "
            f"Kafka refuses the first above the second; lower it."
        )
    if not is_true(config, "remote.storage.enable"):
        return
    if not is_true(brokers, TIERED):
        yield (
            f"{whose} sets remote.storage.enable, which Kafka refuses where kafka.config does not "
            f"set {TIERED} to true; set that, or take it out."
        )
    policy = str(config.get("cleanup.policy", brokers.get("log.cleanup.policy", "delete")))
    if "compact" in policy:
        yield (
            f"{whose} sets remote.storage.enable beside cleanup.policy {policy}, and Kafka keeps "
            f"no compacted topic in remote storage; take one out."
        )
    yield from _local_retention(whose, "local.retention", config, brokers)


def is_true(config: Config, setting: str) -> bool:
    """Say whether a config sets this to true, as Kafka reads it."""
    return str(config.get(setting, "")).strip().lower() == "true"


def _of_the_cleaner(config: Config) -> Iterator[str]:
    size, threads = figure_of(_BUFFER, config, DEFAULTS), figure_of(_CLEANERS, config, DEFAULTS)
    # Java divides towards zero, and the mebibyte itself is not enough.
    if size is not None and threads is not None and threads > 0 and size // threads <= MIB:
        yield (
            f"kafka.config: {setting_text(_BUFFER, size, config)} and "
            f"{setting_text(_CLEANERS, threads, config)}, and Kafka wants more than {MIB} bytes "
            f"for each thread, so that no broker would start; raise the first."
        )


def _local_retention(whose: str, prefix: str, config: Config, brokers: Config) -> Iterator[str]:
    """Yield what LogConfig says of what stays on the brokers' disks and what is kept in all."""
    kept_ms = (
        whole_number(config["retention.ms"]) if "retention.ms" in config else _retention_ms(brokers)
    )
    kept_bytes = _of_topic_or_broker("retention.bytes", "log.retention.bytes", config, brokers)
    no_copies = is_true(config, "remote.log.copy.disable")
    for unit, of_brokers_, kept in (
        ("ms", _LOCAL_MS, kept_ms),
        ("bytes", _LOCAL_BYTES, kept_bytes),
    ):
        local = _of_topic_or_broker(f"local.retention.{unit}", of_brokers_, config, brokers)
        if kept is None or local is None or local == _UNSAID:
            continue
        if kept > -1 and (local == -1 or local > kept):
            limit = "which has to be no more than that"
        elif no_copies and local != kept:
            limit = "which has to be that too under remote.log.copy.disable"
        else:
            continue
        yield (
            f"{whose} keeps records by retention.{unit} {kept} and on the brokers by "
            f"{prefix}.{unit} {local}, {limit}, so that Kafka refuses them; lower {prefix}.{unit}, "
            f"or take it out."
        )


def _retention_ms(config: Config) -> int | None:
    deciding = next((each for each in RETENTION if each in config), None)
    if deciding is None:
        return 7 * _DAY_MS
    figure = figure_of(deciding, config, DEFAULTS)
    return None if figure is None else max(-1, figure * RETENTION[deciding])


def _of_topic_or_broker(setting: str, broker: str, config: Config, brokers: Config) -> int | None:
    return (
        whole_number(config[setting]) if setting in config else figure_of(broker, brokers, DEFAULTS)
    )
