"""infra.kafka.connect: topics that outlive their entry, users with their rights and no other."""

from __future__ import annotations

from typing import Any

import pytest

from core.availability.wholeness import rights_for
from core.cluster import Topic
from core.cluster.rights import FUNCTION_CALLS, clients
from infra.kafka.cluster import kafka_spec
from infra.kafka.topics import resource_name, topic_spec, user_spec
from tests.every_case import every_case
from tests.unit.infra.programs import run_changed, spec

OAUTH = {
    "valid_issuer_url": "https://id.example/realms/kafka",
    "jwks_url": "https://id.example/certs",
}


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


def test_a_user_says_who_it_is_and_may_do_what_it_is_given() -> None:
    acls = [{"resource": "topic", "name": "o-", "prefix": True, "operations": ["Read"]}]
    described = spec(users=[{"name": "billing", "acls": acls}])
    billing, *_ = clients(described)
    assert user_spec(described, billing, {"producerByteRate": 9}) == {
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


def test_a_user_without_an_acl_loses_what_it_was_granted_before() -> None:
    described = spec(users=[{"name": "u"}])
    assert user_spec(described, clients(described)[0], {})["authorization"]["acls"] == []


def test_a_user_with_a_token_has_rights_and_no_credentials_of_strimzis() -> None:
    described = spec(
        kafka={"internal_listener": {"authentication": "oauth", "oauth": OAUTH}},
        users=[{"name": "service-account-billing"}],
    )
    rendered = user_spec(described, clients(described)[0], {})
    assert rendered == {"authorization": {"type": "simple", "acls": []}}


def test_nobody_is_held_to_rights_that_kafka_does_not_ask_for() -> None:
    # The user operator calls ACLs an error where Kafka has no authorizer.
    described = spec(kafka={"authorization": "none"}, users=[{"name": "u"}])
    assert user_spec(described, clients(described)[0], {}) == {"authentication": {"type": "tls"}}
    assert "authorization" not in kafka_spec(described)["kafka"]


def test_kafka_authorises_everybody_and_strimzis_own_are_the_only_super_users() -> None:
    kafka = kafka_spec(spec())["kafka"]
    assert kafka["authorization"] == {"type": "simple"}
    assert not [key for key in kafka["config"] if "acl" in key or "super" in key]
    assert [listener["authentication"] for listener in kafka["listeners"]] == 2 * [{"type": "tls"}]


def test_oauth_is_strimzis_custom_type_with_the_handlers_of_its_library() -> None:
    listener = {"authentication": "oauth", "oauth": {**OAUTH, "audience": "kafka"}}
    internal, _ = kafka_spec(spec(kafka={"internal_listener": listener}))["kafka"]["listeners"]
    asked = internal["authentication"]
    assert (asked["type"], asked["sasl"]) == ("custom", True)
    assert asked["listenerConfig"]["sasl.enabled.mechanisms"] == "OAUTHBEARER"
    said = asked["listenerConfig"]["oauthbearer.sasl.jaas.config"]
    for option in (
        'oauth.valid.issuer.uri="https://id.example/realms/kafka"',
        'oauth.jwks.endpoint.uri="https://id.example/certs"',
        'oauth.client.id="kafka"',
    ):
        assert option in said


@every_case("function", FUNCTION_CALLS)
def test_a_function_is_a_user_with_the_rights_of_its_calls(
    function: str, layers: dict[str, Any]
) -> None:
    user = layers["kafka"].one(
        "kafka.strimzi.io/v1:KafkaUser", f"topics-user-orders-stillwater-{function}"
    )
    granted = {
        (acl["resource"]["type"], operation)
        for acl in user.inputs["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }
    needed = rights_for(FUNCTION_CALLS[function])
    assert granted == {(right.resource, right.operation) for right in needed}
    assert (("cluster", "Alter") in granted) == (function == "tick")


def test_a_topic_operator_without_finalizers_never_holds_a_namespace_back() -> None:
    operator = kafka_spec(spec())["entityOperator"]
    (setting,) = operator["template"]["topicOperatorContainer"]["env"]
    assert setting == {"name": "STRIMZI_USE_FINALIZERS", "value": "false"}


def test_topics_and_users_wait_for_kafka_and_for_their_own_readiness(cache: None) -> None:
    layer = run_changed("kafka", topics=[{"name": "t"}], users=[{"name": "u"}])
    component: Any = next(r for r in layer.resources if r.type.endswith(":infra:Topics"))
    assert "kafka-kafka" in component.depends_on
    for kind, name in (("KafkaTopic", "topics-topic-t"), ("KafkaUser", "topics-user-u")):
        metadata = layer.one(f"kafka.strimzi.io/v1:{kind}", name).inputs["metadata"]
        assert metadata["labels"] == {"strimzi.io/cluster": "orders"}
        assert metadata["annotations"]["pulumi.com/waitFor"] == "condition=Ready"
