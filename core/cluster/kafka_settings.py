"""Judges settings of brokers, topics and Connect by what Kafka's own classes define of them.

A topic with a value that Kafka refuses is never made; a broker or a worker with one never starts.
The definitions are Kafka's, written by `python -m local.kafka.definitions`: whose a setting is, its
type, and what a value must be, as Kafka's documentation has it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from core.cluster.spec import ClusterSpec

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
# Settings that Kafka 4 has no more; a broker that is told one of them starts without it.
GONE = {
    "zookeeper.": "Kafka 4 has no ZooKeeper",
    "inter.broker.protocol.version": "Kafka 4 goes by kafka.metadata_version",
    "log.message.format.version": "Kafka 4 has one message format",
    "log.message.downconversion.enable": "Kafka 4 converts no messages",
    "delegation.token.master.key": "Kafka 4 calls it delegation.token.secret.key",
    "log.message.timestamp.difference.max.ms": "Kafka 4 has log.message.timestamp.before.max.ms "
    "and log.message.timestamp.after.max.ms in its place",
    "offsets.commit.required.acks": "Kafka 4 always waits for all replicas",
    "reserved.broker.max.id": "Kafka 4 gives no ids of its own",
    "control.plane.listener.name": "Kafka 4 has controllers in its place",
}
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
def _of_workers() -> Mapping[str, Definition]:
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
        yield from _refused("connect.config sets", config, _of_workers(), "no worker would start")
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
                f"kafka.config sets {setting}, which this release does not know of Kafka's, and a "
                f"broker ignores what it does not know; did you mean {close[0]}?"
            )
    losing = [("kafka.config", config), *((f"topic {t.name}", t.config) for t in spec.topics)]
    for whose, settings in losing:
        if str(settings.get("unclean.leader.election.enable", "")).lower() == "true":
            yield (
                f"{whose} sets unclean.leader.election.enable to true, so that a broker that "
                f"missed records may lead and those are lost; take it out."
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
                f"{key} sets {setting} to {str(value)[:60]!r}, and the properties that Kafka reads "
                f"take a single backslash away, at the end together with the next line; write it "
                f"twice."
            )
