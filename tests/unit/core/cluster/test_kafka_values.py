"""core.cluster.kafka_values: values that Kafka refuses, and settings that it has no more."""

from __future__ import annotations

from typing import Any

import pytest

from core.cluster import contradictions, kafka_settings, parse
from tests.unit.infra.programs import description

TIERED = {"config": {"remote.log.storage.system.enable": True}}


def found(**changed: Any) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def topic(**config: Any) -> dict[str, Any]:
    settings = {name.replace("__", "."): value for name, value in config.items()}
    return {"topics": [{"name": "t", "config": settings}]}


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("retention.ms", "7d", "to '7d', and Kafka takes a whole number"),
        ("retention.ms", "1e5", "a whole number"),
        ("retention.ms", "1_000", "a whole number"),
        ("retention.ms", "\u0661", "a whole number"),
        ("retention.ms", True, "to 'true', and Kafka takes a whole number"),
        ("retention.ms", -5, "takes -1 to 9223372036854775807"),
        ("retention.ms", 2**63, "takes -1 to 9223372036854775807"),
        ("retention.bytes", "1GB", "a whole number"),
        ("max.message.bytes", 3_000_000_000, "takes 0 to 2147483647"),
        ("max.message.bytes", -1, "takes 0 to"),
        ("segment.bytes", 1024, "takes 1048576 to"),
        ("segment.ms", 0, "takes 1 to"),
        ("flush.messages", 0, "takes 1 to"),
        ("segment.index.bytes", 3, "takes 4 to"),
        ("min.insync.replicas", 0, "takes 1 to"),
        ("cleanup.policy", "deleted", "takes some of compact, delete"),
        ("cleanup.policy", "compact;delete", "takes some of compact, delete"),
        ("compression.type", "brotli", "takes one of uncompressed, zstd"),
        ("compression.type", "GZIP", "takes one of uncompressed, zstd"),
        ("compression.gzip.level", 12, "takes -1 to 9"),
        ("compression.lz4.level", 0, "takes 1 to 17"),
        ("compression.zstd.level", 23, "to 22"),
        ("message.timestamp.type", "createTime", "takes one of CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1.5", "takes 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "takes a number"),
        ("preallocate", "yes", "takes one of true, false"),
        ("preallocate", 1, "takes one of true, false"),
        ("leader.replication.throttled.replicas", "all", "PARTITION:BROKER"),
    ],
)
def test_a_topics_value_that_kafka_refuses_is_a_sentence(
    setting: str, value: object, words: str
) -> None:
    (sentence,) = found(topics=[{"name": "t", "config": {setting: value}}])
    assert sentence.startswith(f"topic t sets {setting} to ")
    assert words in sentence
    assert sentence.endswith("so that it would not make it; correct it.")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (topic(min__compaction__lag__ms=9, max__compaction__lag__ms=5), "the first above the sec"),
        (
            topic(remote__storage__enable=True, local__retention__ms=9, retention__ms=5)
            | {"kafka": TIERED},
            "sets local.retention.ms to 9 and retention.ms to 5",
        ),
        (topic(remote__storage__enable=True), "remote.log.storage.system.enable to true"),
        (
            topic(remote__storage__enable=True, cleanup__policy="compact") | {"kafka": TIERED},
            "no compacted topic in remote storage",
        ),
        ({"kafka": {"config": {"num.partitions": 0}}}, "takes 1 to 2147483647, so that no broker"),
        ({"kafka": {"config": {"num.io.threads": -1}}}, "kafka.config sets num.io.threads to '-1'"),
        ({"kafka": {"config": {"log.retention.hours": "week"}}}, "takes a whole number"),
        ({"kafka": {"config": {"log.segment.bytes": 14}}}, "takes 1048576 to"),
        ({"kafka": {"config": {"log.cleanup.policy": "remove"}}}, "some of compact, delete"),
        ({"kafka": {"config": {"auto.create.topics.enable": "no"}}}, "one of true, false"),
        ({"kafka": {"config": {"zookeeper.connect": "z:2181"}}}, "Kafka 4 has no ZooKeeper"),
        ({"kafka": {"config": {"inter.broker.protocol.version": "3.4"}}}, "kafka.metadata_version"),
        ({"kafka": {"config": {"num.partitions": "3\nnode.id=7"}}}, "which is more than a line"),
        ({"kafka": {"config": {"": 1}}}, "kafka.config has the setting ''"),
        ({"kafka": {"config": {"a b": 1}}}, "kafka.config has the setting 'a b'"),
        ({"kafka": {"config": {"a=b": 1}}}, "kafka.config has the setting 'a=b'"),
        ({"connect": {"config": {"key.converter": "a\nb"}}}, "connect.config sets key.converter"),
    ],
)
def test_what_a_broker_or_a_pair_may_not_be_told_is_a_sentence(
    changed: dict[str, Any], words: str
) -> None:
    sentences = found(**changed)
    assert any(words in each for each in sentences), sentences


@pytest.mark.parametrize(
    "changed",
    [
        topic(retention__ms=-1, cleanup__policy="compact,delete", preallocate="TRUE"),
        topic(min__cleanable__dirty__ratio="0.5", segment__bytes=1048576),
        topic(min__compaction__lag__ms=5, max__compaction__lag__ms=9),
        topic(remote__storage__enable=True, local__retention__ms=-2) | {"kafka": TIERED},
        topic(leader__replication__throttled__replicas="0:1,1:2"),
        {"kafka": {"config": {"log.retention.hours": -1, "num.partitions": "12"}}},
        {"kafka": {"config": {"my.plugin.setting": "x y", "message.max.bytes": 200_000_000}}},
    ],
)
def test_what_kafka_takes_is_taken(changed: dict[str, Any]) -> None:
    assert found(**changed) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kafka": {"config": {"log.retentoin.hours": 1}}}, "did you mean log.retention.hours?"),
        ({"kafka": {"config": {"num.network.thread": 1}}}, "did you mean num.network.threads?"),
        ({"kafka": {"config": {"unclean.leader.election.enable": True}}}, "those are lost"),
        (topic(unclean__leader__election__enable="true"), "topic t sets unclean.leader"),
    ],
)
def test_what_kafka_ignores_or_loses_records_by_is_doubted(
    changed: dict[str, Any], words: str
) -> None:
    (doubt,) = contradictions.doubts(parse(description(**changed)))
    assert words in doubt


def test_no_setting_of_kafkas_own_is_taken_for_a_misspelling_of_another() -> None:
    known = dict.fromkeys(sorted(kafka_settings.OTHERS), "1")
    doubts = contradictions.doubts(parse(description(kafka={"config": known})))
    assert [each for each in doubts if "did you mean" in each] == []
