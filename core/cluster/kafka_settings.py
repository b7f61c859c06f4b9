"""Judges settings of brokers, topics and Connect, and whether the operator runs the spec's Kafka.

The definitions are Kafka's own, written by `python -m local.kafka.definitions`; of pairs of
settings only those are judged that have stopped somebody. Strimzi drops in silence what it keeps to
itself (1.2.0: KafkaClusterSpec's forbidden prefixes, ListenersValidator's ports). Versions: its
kafka-versions.yaml; Kafka 4.3's MetadataVersion, from 3.3-IV3 to 4.3-IV0 in production.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from core.cluster.spec import ClusterSpec
from core.ground import naming
from core.ground.constants import STRIMZI_KAFKA_VERSIONS as VERSIONS
from core.ground.constants import TAKEN_PORTS

FILE = Path(__file__).with_name("kafka_definitions.json")
Value = str | int | bool
# A setting's type, and what a value must be.
Definition = tuple[str, str]
_MOST = {"SHORT": 2**15 - 1, "INT": 2**31 - 1, "LONG": 2**63 - 1, "DOUBLE": float("inf")}
_RANGE = re.compile(r"\[([-\d.]+),(?:\.\.\.,?)?([-\d.]*)\](?: or (-?\d+))?")
_WORDS = re.compile(r"(\(case insensitive\) )?\[([\w\-]+(?:, [\w\-]+)*)\]")
# Python itself reads no number of thousands of digits, and Kafka none of more than 19.
_WHOLE = re.compile(r"[-+]?[0-9]{1,100}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?|[0-9]*\.[0-9]+)([eE][-+]?[0-9]+)?")
# Of a line of Java's properties, where a backslash begins an escape: one that stands for itself is
# written twice, and one at the end takes the next line in.
_ESCAPED = re.compile(r"\\\\|\\u[0-9a-fA-F]{4}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# How settings begin that Kafka 4 has no more -> why.
GONE: Mapping[str, str] = _TABLE["gone"]
# Of a setting that is nearly one of Kafka's; a plugin's are less alike.
ALIKE = 0.88
_CLIENTS = ("producer", "consumer", "admin")
# What a worker says for its own clients itself, whatever is set.
_ITS_OWN = frozenset(
    {
        *("enable.idempotence", "key.serializer", "value.serializer"),
        *("enable.auto.commit", "auto.offset.reset", "key.deserializer", "value.deserializer"),
    }
)


@cache
def definitions(whose: str) -> Mapping[str, Definition]:
    """Return the settings of brokers, topics, workers, or a worker's clients, by name."""
    found: dict[str, Definition] = json.loads(FILE.read_text())[whose]
    return found


@cache
def _worker_keys() -> Mapping[str, Definition]:
    """Return what stands in a worker's own configuration: its topics', its clients' and its own."""
    of_topics = {
        f"{topic}.storage.{name}": said
        for topic in ("config", "offset", "status")
        for name, said in definitions("topic").items()
        if name != "cleanup.policy"
    }
    own = {
        name: said
        for client in _CLIENTS
        for name, said in definitions(client).items()
        if name not in _ITS_OWN and not name.startswith(("sasl.", "security.", "ssl."))
    }
    return {**of_topics, **own, **definitions("worker")}


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each value that Kafka would refuse, and for what it has no more."""
    for topic in spec.topics:
        says = f"topic {topic.name} sets"
        yield from _refused(says, topic.config, definitions("topic"), "it would not make it")
    brokers = spec.kafka.config
    yield from _refused(
        "kafka.config sets", brokers, definitions("broker"), "no broker would start"
    )
    for setting in brokers:
        for begins, why in GONE.items():
            if setting.startswith(begins):
                yield f"kafka.config sets {setting}, and {why}; take it out."
    yield from _lines("kafka.config", brokers)
    if spec.connect is not None:
        config = spec.connect.config
        yield from _refused("connect.config sets", config, _worker_keys(), "no worker would start")
        for client in _CLIENTS:
            theirs = {f"{client}.{name}": said for name, said in definitions(client).items()}
            yield from _refused(
                "connect.config sets", config, theirs, "connectors' tasks would not start"
            )
        yield from _lines("connect.config", config)


def doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for what Kafka starts with, and without what was meant by it."""
    config, known = spec.kafka.config, definitions("broker").keys()
    for setting in config:
        close = difflib.get_close_matches(setting, known, n=1, cutoff=ALIKE)
        if setting not in known and close:
            yield (
                f"kafka.config sets {setting}, which this release does not know, and a broker "
                f"ignores unknown settings; did you mean {close[0]}?"
            )


def refusal(definition: Definition, value: Value) -> str | None:
    """Return what a value must be; None where Kafka's own parser takes it."""
    kind, limit = definition
    written = str(value).strip()
    if kind in _MOST:
        return _no_number(kind, limit, "" if isinstance(value, bool) else written)
    words = ("(case insensitive) [true, false]" if kind == "BOOLEAN" else limit) or ""
    found = _WORDS.fullmatch(words)
    if found is None:
        return None
    known = found[2].split(", ")
    given = [each.strip() for each in written.split(",")] if kind == "LIST" else [written]
    if kind == "LIST" and not written:
        return None
    taken = {each.lower() for each in known} if found[1] else set(known)
    if all((each.lower() if found[1] else each) in taken for each in given):
        return None
    return f"{'some' if kind == 'LIST' else 'one'} of {', '.join(known)}"


def whole_number(value: Value) -> int | None:
    """Return a value's number; None: it is no whole one."""
    written = str(value).strip()
    return int(written) if _WHOLE.fullmatch(written) else None


def _no_number(kind: str, limit: str, written: str) -> str | None:
    is_whole = kind != "DOUBLE"
    if not (_WHOLE if is_whole else _NUMBER).fullmatch(written):
        return "a whole number" if is_whole else "a number"
    given = int(written) if is_whole else float(written)
    # Connect's own words of a topic's partitions and replicas: Kafka's default is -1.
    found = _RANGE.fullmatch("[1,...] or -1" if limit.startswith("Positive number") else limit)
    read = int if is_whole else float
    least = -_MOST[kind] - is_whole if found is None else read(found[1])
    most = read(found[2]) if found and found[2] else _MOST[kind]
    also = found[3] if found else None
    if least <= given <= most or str(given) == also:
        return None
    return f"{least:{'' if is_whole else 'g'}} to {most:{'' if is_whole else 'g'}}" + (
        f", or {also}" if also else ""
    )


def _refused(
    says: str, config: Mapping[str, Value], known: Mapping[str, Definition], else_: str
) -> Iterator[str]:
    for setting, value in config.items():
        wanted = refusal(known[setting], value) if setting in known else None
        if wanted is not None:
            written = str(value).lower() if isinstance(value, bool) else str(value)
            yield (
                f"{says} {setting} to {written[:60]!r}, and Kafka takes {wanted}, so that {else_}; "
                f"correct it."
            )


def _lines(key: str, config: Mapping[str, Value]) -> Iterator[str]:
    """Refuse what would become a second line of the properties that Strimzi writes."""
    for setting, value in config.items():
        if not setting or setting != setting.strip() or re.search(r"[\s=:#!]", setting):
            yield (
                f"{key} has the setting {setting[:60]!r}, and settings have letters, digits, dots, "
                f"hyphens and underscores; correct it."
            )
        elif _CONTROL.search(str(value)):
            yield (
                f"{key} sets {setting} to {str(value)[:60]!r}, which is more than a line, and the "
                f"rest would be settings of their own; write it in one line."
            )
        elif "\\" in _ESCAPED.sub("", str(value)):
            yield (
                f"{key} sets {setting} to {str(value)[:60]!r}, and Kafka's properties drop a "
                "single backslash; write it twice."
            )


# What producers with acks=all wait for at every move of leaders, where Kafka keeps its own second
# and half second (docs/reference/rotation-measured.md): a follower asks again so much later after
# an error, and a fetch that finds nothing is answered after so long. Until then its thread asks the
# broker for no partition that it has begun to lead.
FETCH_BACKOFF_MS, FETCH_WAIT_MS = 100, 100


# Of tiered storage's own topic, with Kafka's default.
REMOTE_METADATA_MIN_ISR = "rlmm.config.remote.log.metadata.topic.min.isr"
REMOTE_METADATA_IN_SYNC = 2


def default_config(spec: ClusterSpec) -> dict[str, str | int | bool]:
    """Return every setting that is written for a broker where `kafka.config` has none."""
    factor, minimum = spec.kafka.default_replication_factor, spec.kafka.min_insync_replicas
    timings = spec.timings
    return {
        # Each broker's rack is its zone: consumers that say theirs read from the replica in it.
        naming.REPLICA_SELECTOR: naming.FOLLOWER_FETCHING,
        "default.replication.factor": factor,
        "min.insync.replicas": minimum,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": minimum,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": minimum,
        # Kafka's own prefix for the settings of tiered storage's metadata; unused without it.
        "rlmm.config.remote.log.metadata.topic.replication.factor": factor,
        # Kafka's own is 2, which brokers that run already are not told: it would roll them.
        **({} if minimum == REMOTE_METADATA_IN_SYNC else {REMOTE_METADATA_MIN_ISR: minimum}),
        **(
            {
                "cruise.control.metrics.topic.replication.factor": factor,
                "cruise.control.metrics.topic.min.insync.replicas": minimum,
            }
            if spec.kafka.rebalance is not None
            else {}
        ),
        "broker.session.timeout.ms": timings.broker_session_timeout_seconds * 1000,
        "broker.heartbeat.interval.ms": timings.broker_heartbeat_interval_seconds * 1000,
        "replica.fetch.backoff.ms": FETCH_BACKOFF_MS,
        "replica.fetch.wait.max.ms": FETCH_WAIT_MS,
        "connections.max.idle.ms": timings.broker_connections_max_idle_seconds * 1000,
    }


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


def pair_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each two settings that Kafka or Connect would not start with."""
    yield from _broker_problems(spec)
    for topic in spec.topics:
        yield from _topic_problems(f"topic {topic.name}", topic.config, spec.kafka.config)
    if spec.connect is not None:
        yield from _connect_problems(spec, spec.connect.config)


def _broker_problems(spec: ClusterSpec) -> Iterator[str]:
    config = spec.kafka.config
    told = {**default_config(spec), **config}
    wait = _figure(_FETCH_WAIT, told, 500)
    for setting, default in _FETCH_LIMITS.items():
        most = _figure(setting, told, default)
        if wait is not None and most is not None and wait > most:
            yield (
                f"kafka.config: {_said(_FETCH_WAIT, wait, config)} and "
                f"{_said(setting, most, config)}, and no broker starts if the first is higher; "
                "lower the first or raise the second."
            )
    deciding = next((each for each in _RETENTION if each in config), None)
    if deciding is not None and _figure(deciding, config, -1) == 0:
        yield (
            f"kafka.config sets {deciding} to 0, with which no broker starts; write -1 or more "
            "than 0."
        )
    if is_true(config, TIERED):
        if STORAGE not in config:
            yield (
                f"kafka.config sets {TIERED} and no {STORAGE}, without which no broker would start;"
                f" name the class of your storage, or take it out."
            )
        yield from _local_retention("kafka.config", "log.local.retention", {}, config)


def _topic_problems(whose: str, config: Config, brokers: Config) -> Iterator[str]:
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
            f"{whose} sets remote.storage.enable with cleanup.policy {policy}, and Kafka keeps no "
            "compacted topic in remote storage; take one out."
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
                f"{whose} has retention.{unit} {kept} and {prefix}.{unit} {local}. That must not "
                f"be more; lower {prefix}.{unit}, or take it out."
            )


def _connect_problems(spec: ClusterSpec, config: Config) -> Iterator[str]:
    for topic in ("config", "offset", "status"):
        setting = f"{topic}.storage.replication.factor"
        factor = _figure(setting, config, -1)
        if factor is not None and factor > spec.brokers:
            yield (
                f"connect.config sets {setting} to {factor} and the cluster has {spec.brokers} "
                "brokers, with which no worker starts; lower it."
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


def operator_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each setting or port that the operator would drop or refuse."""
    yield from _operators_own_keys("kafka", spec.kafka.config)
    if spec.connect is not None:
        yield from _operators_own_keys("connect", spec.connect.config)
    ports = {
        "kafka.listener.port": spec.kafka.listener.port,
        "kafka.internal_listener.port": spec.kafka.internal_listener.port,
    }
    for key, port in ports.items():
        if port in TAKEN_PORTS:
            yield (
                f"{key} is {port}, at which {TAKEN_PORTS[port]} answers in a broker's pod; choose "
                f"another."
            )
    if len(set(ports.values())) < len(ports):
        yield (
            f"{' and '.join(ports)} are both {spec.kafka.listener.port}, and a broker answers one "
            f"listener at a port; change one."
        )


def _operators_own_keys(of: str, config: Mapping[str, Value]) -> Iterator[str]:
    operator = _TABLE["operator"][of]
    for setting in config:
        begins = next((e for e in operator["keeps"] if setting.lower().startswith(e)), None)
        if begins is not None and setting not in operator["free"]:
            yield (
                f"{of}.config sets {setting}, and the operator keeps what begins with {begins} to "
                f"itself and drops it; take it out."
            )


# A test holds this to the chart that infra/ pins.
OPERATOR = "1.2.0"
# Oldest first. 3.7-IV3 was never used for anything.
METADATA = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    "4.3-IV0",
)
_VERSION = re.compile(r"(\d+\.\d+)\.\d+")
# The oldest Kubernetes that this operator runs on.
KUBERNETES = (1, 30)


def release_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each version that cannot run, or not with the other."""
    version, metadata = spec.kafka.version, spec.kafka.metadata_version
    ours = spec.strimzi.operator == "chart"
    if ours and version not in VERSIONS:
        yield (
            f"kafka.version {version} is not among those that Strimzi {OPERATOR} runs "
            f"({', '.join(VERSIONS)}){_nearest_release(version, VERSIONS)}."
        )
    elif _VERSION.fullmatch(version) is None:
        yield f"kafka.version {version} is not a version of Kafka; write it as in {VERSIONS[0]}."
    level = metadata_level(metadata)
    if level is None:
        yield (
            f"kafka.metadata_version {metadata} is not among those this release knows, "
            f"{METADATA[0]} to {METADATA[-1]}{_nearest_release(metadata, METADATA)}."
        )
    elif _release(level) > _release(version):
        yield (
            f"kafka.metadata_version {metadata} is newer than kafka.version {version}; raise "
            "kafka.version first, and the metadata version once every node runs it."
        )
    minor = tuple(int(part) for part in spec.kubernetes.version.split("."))
    if ours and minor < KUBERNETES:
        yield (
            f"kubernetes.version {spec.kubernetes.version} is older than "
            f"{'.'.join(map(str, KUBERNETES))}, the oldest that Strimzi {OPERATOR} runs on; raise "
            f"it."
        )


def release_doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for what only an operator of somebody else's knows."""
    if spec.strimzi.operator == "external":
        yield (
            f"Whether your operator runs kafka.version {spec.kafka.version} was not checked: "
            f"strimzi.operator is external, and only Strimzi {OPERATOR} is known here."
        )


def metadata_level(metadata: str) -> str | None:
    """Return a metadata version's level: `4.2` is the last of that release; None: unknown."""
    if metadata in METADATA:
        return metadata
    of_release = [level for level in METADATA if level.startswith(f"{metadata}-")]
    return of_release[-1] if of_release else None


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    # An unreadable version has its own sentence.
    return tuple(int(part) for part in found.groups()) if found else (10**6,)


def _nearest_release(written: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(written, known, n=1)
    return f"; {close[0]} is the nearest" if close else "; choose one of them"
