"""core.cluster.kafka_settings: values that Kafka refuses, or has no more; metrics' expressions."""

from typing import Any

import pytest

from core.checks import contradictions
from core.cluster import parse
from core.cluster.fields import expression_problem
from infra.alerts.metrics import CONNECT_ALLOW, KAFKA_ALLOW
from tests.every_case import every_case
from tests.unit.infra.programs import description

STORAGE = {
    "remote.log.storage.system.enable": True,
    "remote.log.storage.manager.class.name": "com.example.Storage",
}
TIERED = {"config": STORAGE}


def found(**changed: Any) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def topic(**config: Any) -> dict[str, Any]:
    settings = {name.replace("__", "."): value for name, value in config.items()}
    return {"topics": [{"name": "t", "config": settings}]}


@every_case(
    ("setting", "value", "words"),
    [
        ("retention.ms", "7d", "to '7d', and Kafka takes a whole number"),
        ("retention.ms", "1e5", "a whole number"),
        ("retention.ms", "1" * 5000, "a whole number"),
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
        ("compression.gzip.level", 12, "takes 1 to 9, or -1"),
        ("compression.gzip.level", 0, "takes 1 to 9, or -1"),
        ("compression.lz4.level", 0, "takes 1 to 17"),
        ("compression.zstd.level", 23, "to 22"),
        ("message.timestamp.type", "createTime", "takes one of CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1.5", "takes 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "takes a number"),
        ("preallocate", "yes", "takes one of true, false"),
        ("preallocate", 1, "takes one of true, false"),
    ],
)
def test_a_topics_value_kafka_refuses_is_said(setting: str, value: object, words: str) -> None:
    (sentence,) = found(topics=[{"name": "t", "config": {setting: value}}])
    assert sentence.startswith(f"topic t sets {setting} to ")
    assert words in sentence
    assert sentence.endswith("so that it would not make it; correct it.")


@every_case(
    ("changed", "words"),
    [
        (
            topic(remote__storage__enable=True, local__retention__ms=9, retention__ms=5)
            | {"kafka": TIERED},
            "has retention.ms 5 and local.retention.ms 9. That must not be more",
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
        ({"kafka": {"config": {"my.path": "C:\\"}}}, "drop a single backslash"),
        ({"kafka": {"config": {"my.pattern": "a\\.b"}}}, "write it twice"),
        ({"kafka": {"config": {"reserved.broker.max.id": 5}}}, "gives no ids of its own"),
        ({"kafka": {"config": {"": 1}}}, "kafka.config has the setting ''"),
        ({"kafka": {"config": {"a b": 1}}}, "kafka.config has the setting 'a b'"),
        ({"kafka": {"config": {"a=b": 1}}}, "kafka.config has the setting 'a=b'"),
        ({"connect": {"config": {"key.converter": "a\nb"}}}, "connect.config sets key.converter"),
    ],
)
def test_what_may_not_be_told_is_a_sentence(changed: dict[str, Any], words: str) -> None:
    sentences = found(**changed)
    assert any(words in each for each in sentences), sentences


@every_case(
    ("config", "sentence"),
    [
        (
            {"replica.fetch.wait.max.ms": 40_000, "replica.lag.time.max.ms": 60_000},
            (
                "kafka.config: replica.fetch.wait.max.ms is 40000 and replica.socket.timeout.ms "
                "is 30000 where nothing is said, and no broker starts if the first is higher; "
                "lower the first or raise the second."
            ),
        ),
        (
            # Kafka's own half second is not what brokers are told here.
            {"replica.lag.time.max.ms": 99},
            (
                "kafka.config: replica.fetch.wait.max.ms is 100 where nothing is said and "
                "replica.lag.time.max.ms is 99, and no broker starts if the first is higher; "
                "lower the first or raise the second."
            ),
        ),
        (
            {"log.retention.hours": 5, "log.retention.minutes": 0},
            (
                "kafka.config sets log.retention.minutes to 0, with which no broker starts; write "
                "-1 or more than 0."
            ),
        ),
        (
            {"remote.log.storage.system.enable": True},
            (
                "kafka.config sets remote.log.storage.system.enable and no "
                "remote.log.storage.manager.class.name, without which no broker would start; "
                "name the class of your storage, or take it out."
            ),
        ),
        (
            STORAGE | {"log.local.retention.ms": 7_200_001, "log.retention.minutes": 120},
            (
                "kafka.config has retention.ms 7200000 and log.local.retention.ms 7200001. That "
                "must not be more; lower log.local.retention.ms, or take it out."
            ),
        ),
    ],
)
def test_settings_that_stop_any_broker_are_said(config: dict[str, Any], sentence: str) -> None:
    assert found(kafka={"config": config}) == [sentence]


@pytest.mark.parametrize(
    ("of_topic", "of_brokers", "words"),
    [
        ({}, {"log.cleanup.policy": "compact"}, "with cleanup.policy compact"),
        ({"local.retention.ms": 60_001}, {"log.retention.minutes": 1}, "has retention.ms 60000"),
        ({"retention.bytes": 5}, {"log.local.retention.bytes": 6}, "local.retention.bytes 6"),
    ],
)
def test_what_a_topic_does_not_set_it_has_of_the_brokers(
    of_topic: dict[str, Any], of_brokers: dict[str, Any], words: str
) -> None:
    config = {"remote.storage.enable": True, **of_topic}
    (sentence,) = found(
        topics=[{"name": "t", "config": config}], kafka={"config": STORAGE | of_brokers}
    )
    assert sentence.startswith("topic t ")
    assert words in sentence


@every_case(
    "changed",
    [
        topic(retention__ms=-1, cleanup__policy="compact,delete", preallocate="TRUE"),
        topic(min__cleanable__dirty__ratio="0.5", segment__bytes=1048576),
        topic(min__compaction__lag__ms=5, max__compaction__lag__ms=9),
        topic(remote__storage__enable=True, local__retention__ms=-2) | {"kafka": TIERED},
        topic(leader__replication__throttled__replicas="0:1,1:2"),
        {"kafka": {"config": {"log.retention.hours": -1, "num.partitions": "12"}}},
        {"kafka": {"config": {"log.retention.hours": 0, "log.retention.ms": 5}}},
        {"kafka": {"config": {"replica.lag.time.max.ms": 100, "log.cleanup.policy": ""}}},
        {"kafka": {"config": {"connections.max.reauth.ms": -5, "log.retention.ms": -5}}},
        {"kafka": {"config": {"group.consumer.migration.policy": "upgrade"}}},
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
    ],
)
def test_what_kafka_ignores_is_doubted(changed: dict[str, Any], words: str) -> None:
    (doubt,) = contradictions.doubts(parse(description(**changed)))
    assert words in doubt


@every_case(
    ("setting", "value", "words"),
    [
        ("inter.worker.key.ttl.ms", -1, "takes 0 to 2147483647, so that no worker would start"),
        ("offset.storage.partitions", 0, "takes 1 to 2147483647, or -1"),
        ("status.storage.replication.factor", 0, "takes 1 to 32767, or -1"),
        ("offset.flush.interval.ms", "1m", "takes a whole number"),
        ("exactly.once.source.support", "yes", "one of DISABLED, ENABLED, PREPARING"),
        ("metrics.recording.level", "TRACE", "one of INFO, DEBUG"),
        ("topic.creation.enable", "no", "one of true, false"),
        ("acks", "2", "one of all, -1, 0, 1"),
        ("status.storage.segment.bytes", 1024, "takes 1048576 to"),
        ("producer.batch.size", -1, "so that connectors' tasks would not start"),
        ("consumer.max.poll.records", 0, "takes 1 to"),
        ("admin.retries", -1, "takes 0 to"),
        ("status.storage.replication.factor", 99, "with which no worker starts"),
        ("heartbeat.interval.ms", 10_000, "session.timeout.ms is 10000 where nothing is said"),
        ("session.timeout.ms", 5000, "the brokers take 6000 to 1800000"),
        ("producer.delivery.timeout.ms", 30_004, "30000 together, 30005"),
        ("consumer.heartbeat.interval.ms", 45_000, "no sink's task would start"),
    ],
)
def test_what_kafka_connect_refuses_is_a_sentence(setting: str, value: object, words: str) -> None:
    (sentence,) = found(connect={"config": {setting: value}})
    assert sentence.startswith("connect.config")
    assert words in sentence


@every_case(
    "config",
    [
        {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 44_999},
        {"offset.storage.partitions": -1, "status.storage.replication.factor": -1},
        {"exactly.once.source.support": "ENABLED", "connect.protocol": "sessioned"},
        {"producer.delivery.timeout.ms": 30_005, "consumer.max.poll.records": 1},
        {"key.converter.schemas.enable": False, "my.extension.setting": "x"},
    ],
)
def test_what_kafka_connect_takes_is_taken(config: dict[str, Any]) -> None:
    assert found(connect={"config": config}) == []


@every_case(
    ("expression", "words"),
    [
        ("", "would let every metric through"),
        ("kafka_a,kafka_b", "commas stand between expressions"),
        ("kafka_[ab]{1,2}", "commas stand between expressions"),
        (r"kafka_\d+", "its backslash is taken away"),
        ("kafka_a\nnode.id=7", "has a space"),
        (" kafka_a", "has a space"),
        ("(kafka", "is not a regular expression"),
        ("*kafka", "is not a regular expression"),
        ("(?P<a>kafka)", "not an expression that Java reads"),
        ("(kafka)?(?(1)_a|b)", "not an expression that Java reads"),
        ("kafka(?#all)", "not an expression that Java reads"),
        ("(?a)kafka", "not an expression that Java reads"),
        ("kafka_[a[b]", "not an expression that Java reads"),
    ],
)
def test_what_kafka_would_not_read_as_it_is_meant_is_refused(expression: str, words: str) -> None:
    assert words in str(expression_problem(expression))


@every_case(
    "expression",
    [
        *KAFKA_ALLOW,
        *CONNECT_ALLOW,
        *(".*", "(?i)KAFKA_.*", "(?<a>kafka)", "(?:a|b)[0-9]{2}", "a++", "kafka(?!_x).*"),
        *("[^a-z]+_x", "(?<!a)b", "(?<=a)b"),
    ],
)
def test_what_java_reads_is_taken(expression: str) -> None:
    assert expression_problem(expression) is None
