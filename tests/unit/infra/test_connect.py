"""infra.kafka.connect: probes that hear an unhealthy worker's answer, workers that keep apart."""

from __future__ import annotations

from typing import Any

import pytest

from core.cluster.rights import connect_acls
from core.timing import FACTS
from infra.kafka.connect import connect_spec
from tests.unit.infra.programs import run_changed, spec
from tests.unit.infra.recording import CONTROL_PLANE, CONTROL_PLANE_IPV6

ANONYMOUS = {"authentication": "none", "anonymous_clients": True}


def rendered(connect: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    described = spec(connect=connect or {}, **changed)
    assert described.connect is not None
    return connect_spec(described, described.connect)


@pytest.mark.parametrize("probe", ["readinessProbe", "livenessProbe"])
def test_a_probe_outlasts_the_answer_of_an_unhealthy_worker(probe: str) -> None:
    # GET /health says 500 or 503 only after 10 s; Strimzi's default of 5 s hears neither.
    asked = rendered()[probe]
    assert asked["timeoutSeconds"] > FACTS["connect_health_wait_seconds"]
    assert asked["timeoutSeconds"] < asked["periodSeconds"]


@pytest.mark.parametrize("probe", ["readinessProbe", "livenessProbe"])
def test_no_figure_of_a_probe_is_left_to_a_default(probe: str) -> None:
    # One field alone resets the initial delay to 15 s.
    assert set(rendered()[probe]) == {
        "initialDelaySeconds",
        "periodSeconds",
        "timeoutSeconds",
        "failureThreshold",
    }


def test_a_worker_that_starts_for_long_is_not_restarted_for_it() -> None:
    probe = rendered({"startup_seconds": 300})["livenessProbe"]
    assert probe["initialDelaySeconds"] == 300
    assert probe["failureThreshold"] > 1


def test_a_worker_is_not_restarted_because_kafka_is_away_for_two_minutes() -> None:
    probe = rendered()["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120
    # Readiness follows at once: nobody is sent to a worker that cannot work.
    assert rendered()["readinessProbe"]["failureThreshold"] == 1


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
def test_where_kafka_asks_who_it_is_a_worker_is_a_user_of_its_own(
    authentication: str, secret: str, cache: None
) -> None:
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
