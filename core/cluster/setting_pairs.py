"""Judges settings beside each other that have kept brokers, topics or Connect from starting.

Kafka's definitions know single settings alone. What stands here has stopped somebody: remote
storage without its class and local retention above the whole (KIP-405), a fetch that waits longer
than a replica may lag (Kafka's documentation of `replica.fetch.wait.max.ms`), topics of Connect
with more replicas than brokers, sessions outside the brokers' limits, a delivery that ends before
its request (ProducerConfig's own refusals).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.cluster.kafka_defaults import default_config
from core.cluster.kafka_settings import Value, whole_number
from core.cluster.spec import ClusterSpec

Config = Mapping[str, Value]
TIERED = "remote.log.storage.system.enable"
STORAGE = "remote.log.storage.manager.class.name"
_FETCH_WAIT = "replica.fetch.wait.max.ms"
_FETCH_LIMITS = {"replica.lag.time.max.ms": 30_000, "replica.socket.timeout.ms": 30_000}
# The first that is set decides; in milliseconds.
_RETENTION = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}
_WEEK_MS = 7 * 86_400_000
# Of what stays on the brokers: as much as is kept in all.
_UNSAID = -2
_SESSION, _HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
_OF_BROKERS = {"group.min.session.timeout.ms": 6000, "group.max.session.timeout.ms": 1_800_000}
_CONNECT = {_SESSION: 10_000, _HEARTBEAT: 3000}
_CONSUMER = {_SESSION: 45_000, _HEARTBEAT: 3000}
_DELIVERY, _REQUEST, _LINGER = "delivery.timeout.ms", "request.timeout.ms", "linger.ms"
_PRODUCER = {_REQUEST: 30_000, _LINGER: 5}


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each two settings that Kafka or Connect would not start with."""
    yield from _of_brokers(spec)
    for topic in spec.topics:
        yield from _of_topic(f"topic {topic.name}", topic.config, spec.kafka.config)
    if spec.connect is not None:
        yield from _of_connect(spec, spec.connect.config)


def _of_brokers(spec: ClusterSpec) -> Iterator[str]:
    config = spec.kafka.config
    told = {**default_config(spec), **config}
    wait = _figure(_FETCH_WAIT, told, 500)
    for setting, default in _FETCH_LIMITS.items():
        most = _figure(setting, told, default)
        if wait is not None and most is not None and wait > most:
            yield (
                f"kafka.config: {_said(_FETCH_WAIT, wait, config)} and "
                f"{_said(setting, most, config)}, and Kafka wants the first no higher than the "
                f"second, so that no broker would start; lower the first or raise the second."
            )
    deciding = next((each for each in _RETENTION if each in config), None)
    if deciding is not None and _figure(deciding, config, -1) == 0:
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


def _of_topic(whose: str, config: Config, brokers: Config) -> Iterator[str]:
    """Yield for a topic; what it does not set it has of the brokers."""
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


def _local_retention(whose: str, prefix: str, config: Config, brokers: Config) -> Iterator[str]:
    """Yield where more stays on the brokers' disks than is kept in all."""
    deciding = next((each for each in _RETENTION if each in brokers), None)
    hours = _figure(deciding, brokers, 0) if deciding else None
    kept_ms = _WEEK_MS if hours is None or deciding is None else hours * _RETENTION[deciding]
    for unit, default in (("ms", kept_ms), ("bytes", _figure("log.retention.bytes", brokers, -1))):
        kept = _figure(f"retention.{unit}", config, default)
        local = _figure(
            f"local.retention.{unit}",
            config,
            _figure(f"log.local.retention.{unit}", brokers, _UNSAID),
        )
        if kept is None or local is None or local == _UNSAID or kept < 0:
            continue
        if local == -1 or local > kept:
            yield (
                f"{whose} keeps records by retention.{unit} {kept} and on the brokers by "
                f"{prefix}.{unit} {local}, which has to be no more than that, so that Kafka "
                f"refuses them; lower {prefix}.{unit}, or take it out."
            )


def _of_connect(spec: ClusterSpec, config: Config) -> Iterator[str]:
    for topic in ("config", "offset", "status"):
        setting = f"{topic}.storage.replication.factor"
        factor = _figure(setting, config, -1)
        if factor is not None and factor > spec.brokers:
            yield (
                f"connect.config sets {setting} to {factor} and the cluster has {spec.brokers} "
                f"brokers: Kafka could never make that topic, so that no worker would start; "
                f"lower it."
            )
    for prefix, defaults, else_ in (
        ("", _CONNECT, "no worker would start"),
        ("consumer.", _CONSUMER, "no sink's task would start"),
    ):
        session = _figure(prefix + _SESSION, config, defaults[_SESSION])
        beat = _figure(prefix + _HEARTBEAT, config, defaults[_HEARTBEAT])
        if session is not None and beat is not None and beat >= session:
            yield (
                f"connect.config: {_said(prefix + _HEARTBEAT, beat, config)} and "
                f"{_said(prefix + _SESSION, session, config)}, and Kafka wants the first below the "
                f"second, so that {else_}; lower the first or raise the second."
            )
    for prefix, else_ in (
        ("", "no worker would start"),
        ("producer.", "no source's task would start"),
    ):
        request, linger = (_figure(prefix + each, config, _PRODUCER[each]) for each in _PRODUCER)
        delivery = _figure(prefix + _DELIVERY, config, None)
        if delivery is None or request is None or linger is None:
            continue
        if delivery < request + linger:
            yield (
                f"connect.config sets {prefix}{_DELIVERY} to {delivery}, and Kafka wants no less "
                f"than {prefix}{_LINGER} {linger} and {prefix}{_REQUEST} {request} together, "
                f"{request + linger}, so that {else_}; raise the first."
            )
    session = _figure(_SESSION, config, _CONNECT[_SESSION])
    least, most = (_figure(name, spec.kafka.config, d) for name, d in _OF_BROKERS.items())
    if session is None or least is None or most is None:
        return
    if not least <= session <= most:
        yield (
            f"connect.config: {_said(_SESSION, session, config)}, and the brokers take {least} "
            f"to {most} (kafka.config's {' and '.join(_OF_BROKERS)}), so that no worker would "
            f"join; change it."
        )


def is_true(config: Config, setting: str) -> bool:
    """Say whether a config sets this to true, as Kafka reads it."""
    return str(config.get(setting, "")).strip().lower() == "true"


def _figure(setting: str, config: Config, default: int | None) -> int | None:
    """Return a setting's number or its default; None: it is no whole number."""
    return whole_number(config[setting]) if setting in config else default


def _said(setting: str, number: int, config: Config) -> str:
    return f"{setting} is {number}" + ("" if setting in config else " where nothing is said")
