"""infra.kafka.connect: probes that hear an unhealthy worker; topics that outlive entries."""

from typing import Any

import pytest

from core.availability.wholeness import rights_for
from core.cluster import Topic
from core.cluster.rights import FUNCTION_CALLS, clients, connect_acls
from core.timing import FACTS
from infra.kafka.cluster import kafka_spec
from infra.kafka.connect import connect_spec
from infra.kafka.topics import resource_name, topic_spec, user_spec
from tests.every_case import every_case
from tests.unit.infra.programs import run_changed, spec
from tests.unit.infra.recording import CONTROL_PLANE, CONTROL_PLANE_IPV6

ANONYMOUS = {"authentication": "none", "anonymous_clients": True}


def rendered(connect: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    described = spec(connect=connect or {}, **changed)
    assert described.connect is not None
    return connect_spec(described, described.connect)


def test_probes_outlast_the_answer_of_an_unhealthy_worker_a_start_and_an_absence_of_kafka() -> None:
    worker = rendered({"startup_seconds": 300})
    # GET /health says 500 or 503 only after 10 s; Strimzi's default of 5 s hears neither.
    assert FACTS["connect_health_wait_seconds"] < 12
    # No figure is left to a default: one field alone resets the initial delay to 15 s.
    asked = {"periodSeconds": 15, "timeoutSeconds": 12}
    # Nobody is sent to a worker that cannot work; it is restarted after two minutes without Kafka.
    assert worker["readinessProbe"] == {**asked, "initialDelaySeconds": 15, "failureThreshold": 1}
    assert worker["livenessProbe"] == {**asked, "initialDelaySeconds": 300, "failureThreshold": 8}


def test_workers_start_from_kafkas_internal_listener_and_trust_its_authority() -> None:
    worker = rendered()
    assert worker["bootstrapServers"] == "orders-kafka-bootstrap.kafka.svc:9093"
    assert worker["tls"]["trustedCertificates"] == [
        {"secretName": "orders-cluster-ca-cert", "pattern": "*.crt"}
    ]
    plain = rendered(kafka={"internal_listener": {**ANONYMOUS, "tls": False, "port": 9092}})
    assert plain["bootstrapServers"].endswith(":9092")
    assert not {"tls", "authentication"} & set(plain)


@pytest.mark.parametrize(
    ("authentication", "secret"),
    [("tls", "certificateAndKey"), ("scram-sha-512", "passwordSecret")],
)
def test_a_worker_is_a_user_where_kafka_asks(authentication: str, secret: str, cache: None) -> None:
    listener = {"internal_listener": {"authentication": authentication}}
    layer = run_changed("kafka", connect={}, kafka=listener)
    user = layer.one("kafka.strimzi.io/v1:KafkaUser", "connect-user").inputs
    worker = layer.one("kafka.strimzi.io/v1:KafkaConnect")
    assert user["spec"]["authentication"] == {"type": authentication}
    asked = worker.inputs["spec"]["authentication"]
    assert asked["type"] == authentication
    assert asked[secret]["secretName"] == user["metadata"]["name"]
    assert "connect-user" in worker.depends_on


def test_a_worker_may_use_its_own_topics_and_group_and_what_its_connectors_were_given() -> None:
    given = {"resource": "topic", "name": "orders", "operations": ["Write"]}
    described = spec(connect={"acls": [given]})
    acls = {(acl.resource, acl.name): acl.operations for acl in connect_acls(described)}
    own = ("Create", "Describe", "DescribeConfigs", "Read", "Write")
    assert acls == {
        ("group", "orders-connect"): ("Describe", "Read"),
        ("topic", "orders-connect-configs"): own,
        ("topic", "orders-connect-offsets"): own,
        ("topic", "orders-connect-status"): own,
        ("topic", "orders"): ("Write",),
    }


def test_its_pods_are_never_taken_for_kafkas(cache: None) -> None:
    layer = run_changed("kafka", connect={})
    worker = layer.one("kafka.strimzi.io/v1:KafkaConnect").inputs
    kafka = layer.one("kafka.strimzi.io/v1:Kafka").inputs
    assert worker["metadata"]["name"] != kafka["metadata"]["name"]


def test_internal_topics_are_as_safe_as_any_and_consumers_read_in_their_zone() -> None:
    worker = rendered()
    factors = {v for k, v in worker["config"].items() if k.endswith("replication.factor")}
    assert factors == {3}
    assert worker["rack"]["topologyKey"] == "topology.kubernetes.io/zone"


def test_workers_spread_over_zones_and_one_may_be_evicted() -> None:
    template = rendered()["template"]
    (spread,) = template["pod"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert "podDisruptionBudget" not in template  # ours: infra.kafka.cluster
    assert template["pod"]["terminationGracePeriodSeconds"] == 60


def test_an_operator_that_makes_budgets_is_told_of_the_workers() -> None:
    theirs = {"disruption_budgets": "operator"}
    assert rendered(strimzi=theirs)["template"]["podDisruptionBudget"] == {"maxUnavailable": 1}
    assert "podDisruptionBudget" not in rendered({"replicas": 1}, strimzi=theirs)["template"]


def test_without_connect_in_the_description_there_is_none(layers: dict[str, Any]) -> None:
    assert layers["kafka"].of("kafka.strimzi.io/v1:KafkaConnect") == []


def test_workers_the_operator_and_the_control_plane_alone_reach_the_rest_port(cache: None) -> None:
    layer = run_changed("kafka", connect={})
    admitted = layer.one("networking.k8s.io/v1:NetworkPolicy", "connect-admitted")
    assert admitted.inputs["metadata"]["namespace"] == "kafka"
    spec = admitted.inputs["spec"]
    workers = {
        "matchLabels": {"strimzi.io/cluster": "orders-connect", "strimzi.io/kind": "KafkaConnect"}
    }
    assert (spec["podSelector"], spec["policyTypes"]) == (workers, ["Ingress"])
    rest, metrics = spec["ingress"]
    assert [port["port"] for port in rest["ports"]] == [8083]
    assert rest["from"] == [
        {"podSelector": workers},
        {
            "namespaceSelector": {},
            "podSelector": {"matchLabels": {"strimzi.io/kind": "cluster-operator"}},
        },
        # λ health asks through the API server.
        *({"ipBlock": {"cidr": cidr}} for cidr in (*CONTROL_PLANE.values(), CONTROL_PLANE_IPV6)),
    ]
    # Prometheus may be anywhere.
    assert metrics == {"ports": [{"port": 9404, "protocol": "TCP"}]}
    # Before the first worker.
    assert "connect-admitted" in layer.one("kafka.strimzi.io/v1:KafkaConnect").depends_on


OAUTH = {
    "valid_issuer_url": "https://id.example/realms/kafka",
    "jwks_url": "https://id.example/certs",
}


def test_a_topic_takes_the_clusters_replicas_unless_it_has_its_own() -> None:
    described = spec()
    expected = {"partitions": 6, "replicas": 3, "config": {}}
    assert topic_spec(described, Topic(name="orders", partitions=6)) == expected
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
def test_a_function_is_a_user_with_its_calls_rights(function: str, layers: dict[str, Any]) -> None:
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
