"""Decides whether Kafka would take the values of its own settings, a topic's and a broker's.

A topic with a value that Kafka refuses is never made; a broker with one never starts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from core.cluster import kafka_pairs
from core.cluster.kafka_kinds import Kind, Value
from core.cluster.kafka_settings import BROKER, OTHERS, TOPIC
from core.cluster.spec import ClusterSpec

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


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each value that Kafka would refuse, and for what it has no more."""
    for topic in spec.topics:
        whose = f"topic {topic.name}"
        yield from refused_values(f"{whose} sets", topic.config, TOPIC, "it would not make it")
        yield from kafka_pairs.of_topic(whose, topic.config, spec.kafka.config)
    yield from refused_values(
        "kafka.config sets", spec.kafka.config, BROKER, "no broker would start"
    )
    yield from kafka_pairs.of_brokers(spec)
    for setting in spec.kafka.config:
        for begins, why in GONE.items():
            if setting.startswith(begins):
                yield f"kafka.config sets {setting}, and {why}; take it out."
    configs = {"kafka.config": spec.kafka.config}
    if spec.connect is not None:
        configs["connect.config"] = spec.connect.config
    for key, config in configs.items():
        yield from _lines(key, config)


def doubts(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for what Kafka starts with, and without what was meant by it."""
    config = spec.kafka.config
    known = OTHERS | BROKER.keys()
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


def refused_values(
    says: str, config: Mapping[str, Value], kinds: Mapping[str, Kind], else_: str
) -> Iterator[str]:
    """Yield a sentence for each value that is not of its kind."""
    for setting, value in config.items():
        wanted = kinds[setting].refuses(value) if setting in kinds else None
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
