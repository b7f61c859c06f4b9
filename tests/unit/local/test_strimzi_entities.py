"""What the twin's Strimzi stand-in issues and makes: certificates, users, rights, topics."""

import copy
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from local.kubernetes.strimzi_authorities import (
    CERTIFICATE_GENERATION,
    KEY_GENERATION,
    Signer,
    authority_of,
    component_certificate,
    hosts_of,
    is_signed_by,
    new_authority,
    replace_authority,
    served_hosts,
    with_data,
)
from local.kubernetes.strimzi_entities import (
    RefusedTopic,
    _bring,
    _is_settled,
    acl_problem,
    acls_of,
    certificate_data,
    password_data,
    principal,
    topic_name,
)
from tests.unit.local.described_kafka import KAFKA, NLB, cluster, configure


def user(how: str | None, *acls: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"authorization": {"type": "simple", "acls": list(acls)}}
    if how is not None:
        spec["authentication"] = {"type": how}
    return {"metadata": {"name": "billing", "namespace": "kafka"}, "spec": spec}


def asking(node_id: int = 10, **listener: Any) -> dict[str, str]:
    kafka = copy.deepcopy(KAFKA)
    kafka["spec"]["kafka"]["listeners"][0] |= listener
    kafka["spec"]["kafka"]["authorization"] = {"type": "simple"}
    return configure(node_id, cluster(kafka))


def test_where_nobody_is_asked_nodes_speak_in_the_clear_too() -> None:
    assert set(configure(10)["listener.security.protocol.map"].split(",")) == {
        *("CONTROLPLANE-9090:PLAINTEXT", "REPLICATION-9091:PLAINTEXT", "NLB-9094:PLAINTEXT")
    }
    assert not [key for key in configure(10) if "ssl" in key or "authorizer" in key]


def test_a_listener_asks_for_passwords() -> None:
    config = asking(tls=True, authentication={"type": "scram-sha-512"})
    assert config["listener.security.protocol.map"].endswith("NLB-9094:SASL_SSL")
    assert config["listener.name.nlb-9094.sasl.enabled.mechanisms"] == "SCRAM-SHA-512"


def test_super_users_are_strimzis_own() -> None:
    assert asking()["super.users"].split(";") == [
        *(
            f"User:CN=coban-{part},O=io.strimzi"
            for part in (
                *("kafka", "entity-topic-operator", "entity-user-operator"),
                *("kafka-exporter", "cruise-control"),
            )
        ),
        "User:CN=cluster-operator,O=io.strimzi",
    ]


def test_a_brokers_certificate_serves_every_name_it_is_dialled_by() -> None:
    described = cluster()
    controller, broker = described.nodes[:2]
    own = "coban-broker-a-10.coban-kafka-brokers.kafka.svc"
    served = served_hosts(described, broker)
    assert {own, f"{own}.cluster.local", "coban-kafka-bootstrap.kafka.svc", NLB} <= served
    issued = component_certificate(new_authority("a"), "coban-kafka", sorted(served))
    assert hosts_of(issued.certificate) == served
    name = x509.load_pem_x509_certificate(issued.certificate.encode()).subject
    assert name.rfc4514_string() == "CN=coban-kafka,O=io.strimzi"
    assert not any("bootstrap" in host for host in served_hosts(described, controller))


def test_nobody_shows_what_a_new_authority_signs_before_every_pod_trusts_it() -> None:
    first = replace_authority(None, "cluster-ca")
    shown = component_certificate(first.current, "coban-kafka", ["a.kafka.svc"])
    second = replace_authority(first, "cluster-ca")
    assert set(second.trusted.values()) == {first.current.certificate, second.current.certificate}
    assert Signer(first, trusted_by_all=True).stands_for(shown, ["a.kafka.svc"])
    assert Signer(second, trusted_by_all=False).stands_for(shown, ["a.kafka.svc"])
    assert not Signer(second, trusted_by_all=True).stands_for(shown, ["a.kafka.svc"])
    assert not Signer(first, trusted_by_all=True).stands_for(shown, ["another.kafka.svc"])


def test_an_authority_whose_two_secrets_are_no_pair_is_none() -> None:
    made = replace_authority(None, "clients-ca")
    key, shown = (
        with_data({"metadata": {"annotations": annotations}}, data)
        for annotations, data in (
            ({KEY_GENERATION: "0"}, {"ca.key": made.current.key}),
            ({CERTIFICATE_GENERATION: "1"}, made.trusted),
        )
    )
    assert authority_of(key, shown) is None
    shown["metadata"]["annotations"][CERTIFICATE_GENERATION] = "0"
    assert authority_of(key, shown) == made
    assert authority_of(None, shown) is None


def test_a_users_secret_holds_what_strimzis_does() -> None:
    made = replace_authority(None, "clients-ca")
    held = certificate_data("billing", made)
    assert sorted(held) == ["ca.crt", "user.crt", "user.key", "user.p12", "user.password"]
    assert is_signed_by(str(held["user.crt"]), made.current.certificate)
    store, password = held["user.p12"], str(held["user.password"])
    assert isinstance(store, bytes)
    loaded = pkcs12.load_pkcs12(store, password.encode())
    own = load_pem_private_key(str(held["user.key"]).encode(), None)
    assert loaded.key.public_key() == own.public_key()  # type: ignore[union-attr]
    said = password_data("billing", "a secret")
    assert said["sasl.jaas.config"].endswith('username="billing" password="a secret";')  # type: ignore[union-attr,arg-type]


def test_kafka_knows_a_user_by_certificate_or_by_plain_name() -> None:
    names = {how: principal(user(how)) for how in ("tls", "tls-external", "scram-sha-512", None)}
    assert set(names.values()) == {"User:CN=billing", "User:billing"}
    assert names["tls"] == names["tls-external"] == "User:CN=billing"


def test_rights_where_nobody_asks_for_them_are_refused_in_strimzis_words() -> None:
    asking = {"spec": {"kafka": {"authorization": {"type": "simple"}}}}
    without = {"spec": {"authentication": {"type": "tls"}}}
    assert acl_problem(user("tls"), {"spec": {"kafka": {}}}).startswith("Simple authorization ACL")
    assert [acl_problem(user("tls"), asking), acl_problem(without, {})] == ["", ""]


def test_acls_are_as_kafka_spells_them() -> None:
    topics = {"type": "topic", "name": "or", "patternType": "prefix"}
    transactions = {"type": "transactionalId", "name": "t"}
    described = user(
        "tls",
        {"resource": topics, "operations": ["Read"]},
        {"resource": transactions, "operations": ["DescribeConfigs"]},
    )
    assert {key[2:] for key in acls_of(described)} == {
        ("READ", "ALLOW", "TOPIC", "or", "PREFIXED"),
        ("DESCRIBE_CONFIGS", "ALLOW", "TRANSACTIONAL_ID", "t", "LITERAL"),
    }


class RememberingCluster:
    """Kafka's admin API over a dictionary of topics: name -> (partitions, replicas)."""

    def __init__(self, **topics: tuple[int, int]) -> None:
        self.topics = topics
        self.configured: list[dict[str, str]] = []

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        (name,) = names
        partitions, replicas = self.topics[name]
        return [
            {"error_code": 0, "partitions": [{"replica_nodes": [*range(replicas)]}] * partitions}
        ]

    def create_partitions(self, grown: dict[str, int]) -> None:
        for name, partitions in grown.items():
            self.topics[name] = (partitions, self.topics[name][1])

    def alter_configs(self, resources: list[Any]) -> None:
        self.configured += [resource.configs for resource in resources]


def topic(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "orders", "namespace": "kafka", "generation": 2}, "spec": spec}


def bring(cluster: RememberingCluster, **spec: Any) -> None:
    _bring(cluster, topic(**spec))  # type: ignore[arg-type]  # it asks no more of a client


def test_a_topic_that_exists_grows_and_takes_the_settings_that_are_said() -> None:
    cluster = RememberingCluster(orders=(2, 3))
    bring(cluster, partitions=6, replicas=3, config={"retention.ms": 5})
    assert cluster.topics["orders"] == (6, 3)
    assert cluster.configured == [{"retention.ms": "5"}]
    bring(cluster)
    assert (cluster.topics["orders"], len(cluster.configured)) == ((6, 3), 1)


@pytest.mark.parametrize(
    ("spec", "says"), [({"partitions": 1}, "never removes one"), ({"replicas": 1}, "reassignment")]
)
def test_what_no_topic_can_become_is_refused_in_a_sentence(spec: dict[str, int], says: str) -> None:
    cluster = RememberingCluster(orders=(2, 3))
    with pytest.raises(RefusedTopic, match=says):
        bring(cluster, **spec)
    assert cluster.topics["orders"] == (2, 3)


def test_a_resource_may_be_called_otherwise_than_its_topic() -> None:
    assert topic_name(topic(topicName="Orders_V1")) == "Orders_V1"
    assert topic_name(topic()) == "orders"


@pytest.mark.parametrize(
    ("status", "reason", "generation", "settled"),
    [
        ("True", "", 2, True),
        ("True", "", 1, False),
        ("False", "NotSupported", 2, True),
        ("False", "KafkaError", 2, False),
    ],
)
def test_a_description_is_tried_until_it_is_brought_about_or_refused(
    status: str, reason: str, generation: int, settled: bool
) -> None:
    resource = topic()
    assert not _is_settled(resource)
    condition = {"type": "Ready", "status": status, "reason": reason}
    resource["status"] = {"observedGeneration": generation, "conditions": [condition]}
    assert _is_settled(resource) is settled
