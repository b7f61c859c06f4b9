"""Decides what Kafka Connect refuses of settings beside each other, of a worker's or a client's.

Sources: Kafka 4.2's DistributedConfig (keys between workers), AbstractCoordinator's Heartbeat,
KafkaProducer and ProducerConfig, ConsumerConfig; the brokers' limits of groups' sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from core.cluster.connect_settings import MACS
from core.cluster.kafka_kinds import INT, Value, figure_of, setting_text, whole_number
from core.cluster.spec import ClusterSpec

Config = Mapping[str, Value]
_SESSION, _HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
_DELIVERY, _REQUEST, _LINGER = "delivery.timeout.ms", "request.timeout.ms", "linger.ms"
_IDEMPOTENCE, _ACKS, _RETRIES = "enable.idempotence", "acks", "retries"
_IN_FLIGHT, _TRANSACTIONAL = "max.in.flight.requests.per.connection", "transactional.id"
_TWO_PHASES, _TRANSACTION = "transaction.two.phase.commit.enable", "transaction.timeout.ms"
_GENERATION, _SIZE = "inter.worker.key.generation.algorithm", "inter.worker.key.size"
_SIGNATURE, _VERIFICATION = (
    "inter.worker.signature.algorithm",
    "inter.worker.verification.algorithms",
)
MOST_IN_FLIGHT = 5
TOPICS = ("config", "offset", "status")
DEFAULTS: Mapping[str, int] = {_SESSION: 10_000, _HEARTBEAT: 3000}
OF_BROKERS: Mapping[str, int] = {
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1_800_000,
}
OF_CONSUMERS: Mapping[str, int] = {_SESSION: 45_000, _HEARTBEAT: 3000}
OF_PRODUCERS: Mapping[str, int] = {_REQUEST: 30_000, _LINGER: 5}
_SIGNED_WITH = "HmacSHA256"
_CONSUMERS_OWN = (_SESSION, _HEARTBEAT, "partition.assignment.strategy")
_AT_LEAST_40: tuple[Callable[[int], bool], str] = (lambda bits: bits >= 40, "40 bits or more")
_UP_TO_1024: tuple[Callable[[int], bool], str] = (
    lambda bits: 40 <= bits <= 1024,
    "40 to 1024 bits",
)
# Keys of these have so many bits; every other HMAC's 40 or more (Java 17).
SIZES: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "aes": (lambda bits: bits in {128, 192, 256}, "128, 192 or 256 bits"),
    "arcfour": _UP_TO_1024,
    "blowfish": (lambda bits: bits in range(32, 449, 8), "32 to 448 bits in steps of 8"),
    "chacha20": (lambda bits: bits == 256, "256 bits"),
    "des": (lambda bits: bits == 56, "56 bits"),
    "desede": (lambda bits: bits in {112, 168}, "112 or 168 bits"),
    "hmacmd5": (lambda _: True, "any size"),
    "hmacsha1": (lambda _: True, "any size"),
    "rc2": _UP_TO_1024,
}


def of_worker(spec: ClusterSpec, config: Config) -> Iterator[str]:
    """Yield a sentence for each settings with which no worker would start."""
    yield from _session("connect.config", "", config, DEFAULTS, "no worker would start")
    yield from _brokers_sessions(spec, config)
    yield from _keys(config)
    for topic in TOPICS:
        setting = f"{topic}.storage.replication.factor"
        factor = whole_number(config[setting]) if setting in config else None
        if factor is not None and factor > spec.brokers:
            yield (
                f"connect.config sets {setting} to {factor} and the cluster has {spec.brokers} "
                f"brokers: Kafka could never make that topic, so that no worker would start; "
                f"lower it."
            )


def of_producers(config: Config, prefix: str, else_: str) -> Iterator[str]:
    """Yield a sentence for what no producer would start with: a connector's, a worker's own."""
    given = _of_client(prefix, config)
    delivery, request, linger = (
        figure_of(each, given, OF_PRODUCERS) for each in (_DELIVERY, _REQUEST, _LINGER)
    )
    # Of Connect's own it is the longest there is.
    if _DELIVERY not in given:
        delivery = None
    if delivery is not None and request is not None and linger is not None:
        least = min(request + linger, INT)
        if delivery < least:
            yield (
                f"connect.config sets {prefix}{_DELIVERY} to {delivery}, and Kafka wants no less "
                f"than {prefix}{_LINGER} {linger} and {prefix}{_REQUEST} {request} together, "
                f"{least}, so that {else_}; raise the first."
            )
    yield from _idempotence(given, prefix, else_)


def of_consumers(config: Config, prefix: str, else_: str) -> Iterator[str]:
    """Yield a sentence for what no consumer would start with: a connector's, a worker's own."""
    given = _of_client(prefix, config)
    for setting in given:
        if setting.startswith("share."):
            yield (
                f"connect.config sets {prefix}{setting}, which only consumers of share groups "
                f"take, so that {else_}; take it out."
            )
    of_brokers = _word(given, "group.protocol", "classic") == "consumer"
    if of_brokers:
        for setting in _CONSUMERS_OWN:
            if setting in given:
                yield (
                    f"connect.config sets {prefix}{setting} beside {prefix}group.protocol "
                    f"consumer, where the brokers decide it, so that {else_}; "
                    f"take one out."
                )
        return
    if given.get("group.remote.assignor"):
        yield (
            f"connect.config sets {prefix}group.remote.assignor, which Kafka takes beside "
            f"{prefix}group.protocol consumer alone, so that {else_}; set that too, or take it out."
        )
    if prefix:
        yield from _session("connect.config", prefix, given, OF_CONSUMERS, else_)


def _session(
    whose: str, prefix: str, config: Config, defaults: Mapping[str, int], else_: str
) -> Iterator[str]:
    beat, session = (figure_of(each, config, defaults) for each in (_HEARTBEAT, _SESSION))
    if beat is not None and session is not None and (beat >= session or session < 0):
        yield (
            f"{whose}: {prefix}{setting_text(_HEARTBEAT, beat, config)} and "
            f"{prefix}{setting_text(_SESSION, session, config)}, and Kafka wants the first below "
            f"the second, so that {else_}; lower the first or raise the second."
        )


def _brokers_sessions(spec: ClusterSpec, config: Config) -> Iterator[str]:
    session = whole_number(config[_SESSION]) if _SESSION in config else DEFAULTS[_SESSION]
    least, most = (figure_of(each, spec.kafka.config, OF_BROKERS) for each in OF_BROKERS)
    if session is None or least is None or most is None or least <= session <= most:
        return
    yield (
        f"connect.config: {setting_text(_SESSION, session, config)}, and the brokers take {least} "
        f"to {most} (kafka.config's {' and '.join(OF_BROKERS)}), so that no worker would join; "
        f"change it."
    )


def _keys(config: Config) -> Iterator[str]:
    generation = str(config.get(_GENERATION, _SIGNED_WITH)).strip()
    size = whole_number(config[_SIZE]) if _SIZE in config else None
    takes, form = SIZES.get(generation.lower(), _AT_LEAST_40)
    if size is not None and not takes(size):
        yield (
            f"connect.config sets {_SIZE} to {size}, and a key of {generation} has {form}, so that "
            f"no worker would start; correct it, or take it out."
        )
    signature = str(config.get(_SIGNATURE, _SIGNED_WITH)).strip()
    verification = str(config.get(_VERIFICATION, _SIGNED_WITH)).strip()
    known = {each.lower() for each in MACS}
    if signature.lower() in known and signature not in {
        each.strip() for each in verification.split(",")
    }:
        yield (
            f"connect.config: {_SIGNATURE} is {signature} and {_VERIFICATION} are {verification}, "
            f"and Kafka wants the first among the second, letter for letter, so that no worker "
            f"would start; add it."
        )


def _idempotence(given: Config, prefix: str, else_: str) -> Iterator[str]:
    """Yield what a producer wants that Connect makes with acks=all and without idempotence."""
    # A worker's own producers have none, whatever is set.
    idempotent = bool(prefix) and _word(given, _IDEMPOTENCE, "false") == "true"
    acks, retries = _word(given, _ACKS, "all"), figure_of(_RETRIES, given, {_RETRIES: INT})
    in_flight = figure_of(_IN_FLIGHT, given, {_IN_FLIGHT: 1})
    broken = []
    if idempotent and acks in {"0", "1"}:
        broken.append(f"{prefix}{_ACKS} {acks} is not all")
    if idempotent and retries == 0:
        broken.append(f"{prefix}{_RETRIES} is 0")
    if idempotent and in_flight is not None and in_flight > MOST_IN_FLIGHT:
        broken.append(f"{prefix}{_IN_FLIGHT} {in_flight} is above {MOST_IN_FLIGHT}")
    for each in broken:
        yield (
            f"connect.config sets {prefix}{_IDEMPOTENCE}, and {each}, which Kafka refuses beside "
            f"it, so that {else_}; change one."
        )
    if _TRANSACTIONAL in given and not idempotent:
        yield (
            f"connect.config sets {prefix}{_TRANSACTIONAL} without {prefix}{_IDEMPOTENCE}, so "
            f"that {else_}; take it out."
        )
    if _word(given, _TWO_PHASES, "false") == "true" and _TRANSACTION in given:
        yield (
            f"connect.config sets {prefix}{_TWO_PHASES} beside {prefix}{_TRANSACTION}, which "
            f"Kafka refuses, so that {else_}; take one out."
        )


def _of_client(prefix: str, config: Config) -> dict[str, Value]:
    """Return a client's settings; without a prefix, those that a worker's own clients read."""
    return {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}


def _word(config: Config, setting: str, default: str) -> str:
    return str(config.get(setting, default)).strip().lower()
