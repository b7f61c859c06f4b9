"""topics: topics that outlive their entry, users who authenticate as the listener asks."""

from __future__ import annotations

from typing import Any

import pytest

from core.cluster import Topic
from infra.kafka.cluster import kafka_spec
from infra.kafka.topics import resource_name, topic_spec, user_spec
from tests.unit.infra.programs import description, run_layers, spec

AUTHENTICATED = {"internal_listener": {"authentication": "tls"}}


def test_a_topic_takes_the_clusters_replicas_unless_it_has_its_own() -> None:
    described = spec()
    assert topic_spec(described, Topic(name="orders", partitions=6)) == {
        "partitions": 6,
        "replicas": 3,
        "config": {},
    }
    assert topic_spec(described, Topic(name="o", replication_factor=1))["replicas"] == 1


@pytest.mark.parametrize("name", ["orders", "orders.v1", "a-b"])
def test_a_name_kubernetes_takes_is_kept(name: str) -> None:
    assert resource_name(name) == name
    assert "topicName" not in topic_spec(spec(), Topic(name=name))


@pytest.mark.parametrize(("one", "other"), [("Orders", "orders"), ("a_b", "a-b"), ("__x", "x")])
def test_two_topics_never_share_a_resource(one: str, other: str) -> None:
    assert resource_name(one) != resource_name(other)
    assert topic_spec(spec(), Topic(name=one))["topicName"] == one


def test_a_user_authenticates_as_the_internal_listener_asks_and_may_do_what_it_is_given() -> None:
    acls = [{"resource": "topic", "name": "o-", "prefix": True, "operations": ["Read"]}]
    described = spec(kafka=AUTHENTICATED, users=[{"name": "billing", "acls": acls}])
    rendered = user_spec(described, acls=described.users[0].acls, quotas={"producerByteRate": 9})
    assert rendered == {
        "authentication": {"type": "tls"},
        "authorization": {
            "type": "simple",
            "acls": [
                {
                    "resource": {"type": "topic", "name": "o-", "patternType": "prefix"},
                    "operations": ["Read"],
                }
            ],
        },
        "quotas": {"producerByteRate": 9},
    }


def test_with_users_kafka_authorises_and_clients_without_a_name_keep_what_nobody_claimed() -> None:
    kafka = kafka_spec(spec(kafka=AUTHENTICATED))["kafka"]
    assert kafka["authorization"] == {"type": "simple"}
    assert kafka["config"]["allow.everyone.if.no.acl.found"] is True
    plain = kafka_spec(spec())["kafka"]
    assert "authorization" not in plain
    assert "allow.everyone.if.no.acl.found" not in plain["config"]


def test_a_topic_operator_without_finalizers_never_holds_a_namespace_back() -> None:
    operator = kafka_spec(spec())["entityOperator"]
    (setting,) = operator["template"]["topicOperatorContainer"]["env"]
    assert setting == {"name": "STRIMZI_USE_FINALIZERS", "value": "false"}


def test_topics_and_users_wait_for_kafka_and_for_their_own_readiness(cache: None) -> None:
    raw = description(kafka=AUTHENTICATED, topics=[{"name": "t"}], users=[{"name": "u"}])
    layer = run_layers(raw)["kafka"]
    component: Any = next(r for r in layer.resources if r.type.endswith(":infra:Topics"))
    assert "kafka-kafka" in component.depends_on
    for kind in ("KafkaTopic", "KafkaUser"):
        metadata = layer.one(f"kafka.strimzi.io/v1:{kind}").inputs["metadata"]
        assert metadata["labels"] == {"strimzi.io/cluster": "orders"}
        assert metadata["annotations"]["pulumi.com/waitFor"] == "condition=Ready"
