"""What `check` says of Kafka's settings, held against the classes that Kafka reads them with.

Every row of the tables at its limits and beside them, every pair around the point where it breaks,
and settings thrown together: a few thousand verdicts of one Java process.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.cluster import (
    ClusterSpec,
    kafka_pairs,
    kafka_settings,
    kafka_values,
    operator_keys,
    parse,
)
from core.cluster.contradictions import OWN_KEYS
from core.cluster.kafka_defaults import default_config
from core.cluster.kafka_kinds import ANY_NUMBER, CLASS, CLASSES, NAME, Kind, Shaped, Words
from core.cluster.kafka_pairs import STORAGE, TIERED
from tests.integration.kafka_verdicts import answers_of
from tests.unit.infra.programs import description

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("java") is None, reason="Kafka's classes need Java"),
]
PROGRAM = Path(__file__).with_name("KafkaVerdicts.java")
THROWN = 400
Config = Mapping[str, str]
# Held against a topic's replicas before Kafka could see it.
OF_THE_MODEL = "min.insync.replicas"
# Limits that Kafka's classes of settings do not know: brokers were started with less, and stopped,
# or never got as far as to serve anybody.
SEEN = {
    "controller.socket.timeout.ms",
    "initial.broker.registration.timeout.ms",
    "max.connections",
    "replica.selector.class",
    "request.timeout.ms",
    "server.max.startup.time.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    # A topic of so many replicas is never made.
    "default.replication.factor",
    # Classes that are looked for later than their names are read.
    "metric.reporters",
    "kafka.metrics.reporters",
    "remote.log.metadata.manager.class.name",
    "remote.log.storage.manager.class.name",
}
# Limits that stand elsewhere than in the definition of the setting.
ELSEWHERE = SEEN | {
    "group.consumer.assignors",
    "group.coordinator.rebalance.protocols",
    "group.share.assignors",
    "log.cleaner.threads",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "max.connections.per.ip.overrides",
    "metadata.log.segment.ms",
    "metrics.recording.level",
    "offsets.topic.compression.codec",
    "offsets.topic.segment.bytes",
    "share.coordinator.snapshot.update.records.per.snapshot",
    "share.coordinator.state.topic.compression.codec",
    "share.coordinator.state.topic.segment.bytes",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "transaction.state.log.segment.bytes",
}
_A_CLASS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"
FORMED: Mapping[Shaped, Sequence[str]] = {
    CLASS: ("", _A_CLASS),
    CLASSES: ("", _A_CLASS, f"{_A_CLASS}, a.B", f"{_A_CLASS},,a.B"),
    NAME: ("", "some.prefix."),
    kafka_settings.THROTTLED: ("", "*", "0:1", "0:1, 1:2", "0:1,", "0", "a:b", "*,0:1"),
    kafka_settings.PER_IP: (
        *("", "127.0.0.1:5", "127.0.0.1:5, ::1:6", "h : 5", "127.0.0.1", "h:x", "h:", "[::1]:6"),
        *("a/b:6", "a b:5", "h:-5", "h:1,,i:2"),
    ),
}
ASSIGNORS: Mapping[str, Sequence[str]] = {
    "group.consumer.assignors": (
        *("", "uniform", "range,uniform", "Range", "sticky", "uniform,,range"),
        f"{_ASSIGNORS}.RangeAssignor , uniform",
    ),
    "group.share.assignors": (
        *("", "simple", "uniform", f"{_ASSIGNORS}.SimpleAssignor"),
        f"simple,{_ASSIGNORS}.SimpleAssignor",
    ),
}


@dataclass
class Verdicts:
    """What one Java process answered: the definitions, and to each question what it refuses."""

    defaults: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: dict[tuple[str, ...], str] = field(default_factory=dict)

    def refuses(self, kind: str, config: Config) -> str | None:
        """Return why Kafka refuses a configuration; None: it takes it."""
        answer = self.refused[question(kind, config)]
        return None if answer == "ok" else answer


def question(kind: str, config: Config) -> tuple[str, ...]:
    return (kind, *(f"{setting}={value}" for setting, value in config.items()))


def values(setting: str, kind: Kind) -> Iterator[str]:
    """Yield what is at the limits of a row, inside of them and outside."""
    yield "nonsense,"
    if isinstance(kind, Words):
        every = ",".join(kind.words)
        yield from ("", *kind.words, *(word.swapcase() for word in kind.words), every, f"{every},")
    elif isinstance(kind, Shaped):
        yield from ASSIGNORS.get(setting) or FORMED[kind]
    elif kind == ANY_NUMBER:
        yield from ("-1", "0.5", "1e9", "0", "5.", ".5")
    elif kind.whole:
        least, most = int(kind.least), int(kind.most)
        around = {least - 1, least, least + 1, most - 1, most, most + 1, 0, -1, -2, 1}
        yield from (*map(str, sorted(around)), "1.5", "")
    else:
        yield from (str(kind.least), str(kind.least - 0.01), str(kind.most), str(kind.most + 0.01))


def rows() -> Iterator[tuple[str, str]]:
    for setting, kind in kafka_settings.BROKER.items():
        if setting not in OWN_KEYS:
            for value in values(setting, kind):
                yield setting, value


def around_the_pairs() -> Iterator[dict[str, str]]:
    """Yield each pair a step below, at and above equality, one of it set and both."""
    ours = {**kafka_pairs.DEFAULTS, **default_config(spec())}
    for pair in kafka_pairs.PAIRS:
        lower, upper = (int(ours[each]) for each in (pair.lower, pair.upper))
        for step in (-1, 0, 1):
            yield {pair.lower: str(upper + step)}
            yield {pair.upper: str(lower + step)}
            for middle in (lower, upper):
                yield {pair.lower: str(middle + step), pair.upper: str(middle)}


OTHER_PAIRS: Sequence[Config] = (
    {"max.connections.per.ip": "0"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    {"log.cleaner.dedupe.buffer.size": "1048576"},
    {"log.cleaner.dedupe.buffer.size": "1048577"},
    {"log.cleaner.dedupe.buffer.size": "4194307", "log.cleaner.threads": "4"},
    {"log.cleaner.dedupe.buffer.size": "4194308", "log.cleaner.threads": "4"},
    {"log.cleaner.threads": "127"},
    {"log.cleaner.threads": "128"},
    {"log.retention.hours": "0"},
    {"log.retention.hours": "-7"},
    {"log.retention.minutes": "0", "log.retention.hours": "5"},
    {"log.retention.hours": "0", "log.retention.minutes": "5"},
    {"log.retention.minutes": "0", "log.retention.ms": "-5"},
    {"log.retention.ms": "0", "log.retention.minutes": "5"},
    {TIERED: "true"},
    {TIERED: "false"},
)
TOPICS: Sequence[Config] = (
    {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"},
    {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "9"},
    {"min.compaction.lag.ms": "9", "broker:log.cleaner.max.compaction.lag.ms": "8"},
    {"max.compaction.lag.ms": "8", "broker:log.cleaner.min.compaction.lag.ms": "9"},
    {"remote.storage.enable": "true"},
)
# Around what is kept on the brokers, in any of the places where it may be said.
LOCAL: Mapping[str, Sequence[str]] = {
    "retention.ms": ("-1", "7200000", "3600000"),
    "local.retention.ms": ("-2", "-1", "3600000", "7200000", "7200001"),
    "retention.bytes": ("-5", "-1", "0", "5"),
    "local.retention.bytes": ("-2", "-1", "0", "5", "6"),
    "remote.log.copy.disable": ("true", "false"),
    "cleanup.policy": ("delete", "compact", "compact,delete", "", "delete,delete"),
    "broker:log.retention.hours": ("1", "2", "-1"),
    "broker:log.retention.minutes": ("60", "120"),
    "broker:log.retention.bytes": ("-1", "5"),
    "broker:log.local.retention.ms": ("-2", "-1", "3600000", "7200001"),
    "broker:log.local.retention.bytes": ("-2", "-1", "5", "6"),
    "broker:log.cleanup.policy": ("delete", "compact", ""),
}
REMOTE = {TIERED: "true", STORAGE: "com.example.Storage"}


def thrown() -> Iterator[dict[str, str]]:
    """Yield settings of pairs thrown together, near the defaults of all of them."""
    dice = random.Random(4)  # noqa: S311 - settings, not secrets
    figures = [*kafka_pairs.DEFAULTS, *kafka_pairs.RETENTION]
    near = sorted({value for value in kafka_pairs.DEFAULTS.values() if value < 2**31 - 1})
    for _ in range(THROWN):
        yield {
            setting: str(dice.choice(near) + dice.choice((-1, 0, 1)))
            for setting in dice.sample(figures, dice.randint(2, 4))
        }
        local = {each: dice.choice(of) for each, of in LOCAL.items() if each.startswith("broker:")}
        chosen = dice.sample(sorted(local), dice.randint(1, 4))
        yield {**REMOTE, **{each.removeprefix("broker:"): local[each] for each in chosen}}


def topics() -> Iterator[dict[str, str]]:
    yield from map(dict, TOPICS)
    for setting, kind in kafka_settings.TOPIC.items():
        if setting != OF_THE_MODEL:
            yield from ({setting: value} for value in values(setting, kind))
    dice = random.Random(5)  # noqa: S311 - settings, not secrets
    remote = {f"broker:{setting}": value for setting, value in REMOTE.items()}
    for _ in range(THROWN):
        chosen = dice.sample(sorted(LOCAL), dice.randint(1, 5))
        local = {setting: dice.choice(LOCAL[setting]) for setting in chosen}
        yield {**local, **remote, "remote.storage.enable": dice.choice(("true", "TRUE", "false"))}


def configurations() -> Iterator[dict[str, str]]:
    yield from ({setting: value} for setting, value in rows())
    yield from around_the_pairs()
    yield from map(dict, OTHER_PAIRS)
    yield from thrown()


def spec(config: Config | None = None, topic: Config | None = None) -> ClusterSpec:
    changed: dict[str, Any] = {"kafka": {"config": dict(config or {})}}
    if topic is not None:
        changed["topics"] = [{"name": "t", "config": dict(topic)}]
    return parse(description(**changed))


def sentences(config: Config, topic: Config) -> list[str]:
    """Return what is said of the topic alone."""
    found = kafka_values.problems(spec(config, topic))
    return [sentence for sentence in found if sentence.startswith("topic t")]


def whole(config: Config) -> dict[str, str]:
    """Return what brokers are told: what a description says, over what it leaves to us."""
    ours = {setting: str(value) for setting, value in default_config(spec()).items()}
    return {**ours, **config}


@pytest.fixture(scope="module")
def verdicts() -> Verdicts:
    asked = [
        *(question("setting", {setting: value}) for setting, value in rows()),
        *(question("brokers", whole(config)) for config in configurations()),
        *(question("topic", topic) for topic in topics()),
    ]
    lines = answers_of(PROGRAM, "".join("\t".join(each) + "\n" for each in asked))
    begins = lines.index("end") + 1
    said = Verdicts(refused=dict(zip(asked, lines[begins:-1], strict=True)))
    for line in lines[: begins - 1]:
        whose, setting, default = line.split("\t")
        said.defaults.setdefault(whose, {})[setting] = default
    return said


def test_every_setting_of_kafkas_is_in_a_table_or_the_operators(verdicts: Verdicts) -> None:
    def left_to_users(setting: str) -> bool:
        kept = any(setting.startswith(each) for each in operator_keys.OF_KAFKA)
        return not setting.startswith("internal.") and (
            not kept or setting in operator_keys.FREE_OF_KAFKA
        )

    of_brokers = {each for each in verdicts.defaults["brokers"] if left_to_users(each)}
    known = kafka_settings.BROKER.keys() | kafka_settings.OTHERS | OWN_KEYS.keys()
    assert of_brokers - known == set()
    assert kafka_settings.BROKER.keys() - of_brokers == set()
    assert {each for each in verdicts.defaults["topic"] if left_to_users(each)} == set(
        kafka_settings.TOPIC
    )


def test_the_defaults_of_pairs_are_kafkas_own(verdicts: Verdicts) -> None:
    kafkas = {each: verdicts.defaults["brokers"][each] for each in kafka_pairs.DEFAULTS}
    assert {each: str(value) for each, value in kafka_pairs.DEFAULTS.items()} == kafkas


def test_each_row_refuses_what_kafkas_definition_refuses_and_no_more(verdicts: Verdicts) -> None:
    differ = []
    for setting, value in rows():
        wanted = kafka_settings.BROKER[setting].refuses(value)
        refused = verdicts.refuses("setting", {setting: value})
        if (refused is not None and wanted is None) or (
            wanted is not None and refused is None and setting not in ELSEWHERE
        ):
            differ.append((setting, value, wanted, refused))
    assert differ == []


def test_a_description_is_refused_where_kafka_would_not_start(verdicts: Verdicts) -> None:
    differ = []
    for config in configurations():
        said = list(kafka_values.problems(spec(config)))
        refused = verdicts.refuses("brokers", whole(config))
        if bool(said) != (refused is not None) and not (said and SEEN & config.keys()):
            differ.append((config, said, refused))
    assert differ == []


def test_a_topic_is_refused_where_kafka_would_not_make_it(verdicts: Verdicts) -> None:
    differ = []
    for topic in topics():
        of_brokers = {k.removeprefix("broker:"): v for k, v in topic.items() if "broker:" in k}
        own = {setting: value for setting, value in topic.items() if "broker:" not in setting}
        said = sentences(of_brokers, own)
        refused = verdicts.refuses("topic", topic)
        if bool(said) != (refused is not None):
            differ.append((topic, said, refused))
    assert differ == []
