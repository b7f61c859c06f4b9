"""The health agent of Kafka's pods: what a probe is answered, and which pods ask it."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from core.health.node import Role
from core.health.rules import WELL
from local.kubernetes.health import Agent, node_of
from local.kubernetes.strimzi_model import HEALTH_RULES, PORTS, RULES_VARIABLE, read
from local.place import Place
from tests.unit.local.described_kafka import KAFKA, cluster, pool, rendered_pod

FENCED = replace(WELL[Role.BROKER], fenced=True)


def agent(**seen: Any) -> Agent:
    made = Agent.__new__(Agent)
    made._seen = seen
    return made


def test_a_probe_is_answered_by_the_rule_set_it_names() -> None:
    found = agent(broker=FENCED)
    assert found.answer("/v1/ready/broker?rules=shipped")[0] is HTTPStatus.NO_CONTENT
    status, told = found.answer("/v1/ready/broker?rules=strict")
    assert status is HTTPStatus.SERVICE_UNAVAILABLE
    assert "is fenced" in told
    assert found.answer("/v1/alive/broker")[0] is HTTPStatus.NO_CONTENT


def test_a_pod_that_was_not_looked_at_yet_is_not_ready_and_is_not_restarted() -> None:
    assert agent().answer("/v1/ready/broker")[0] is HTTPStatus.NOT_FOUND
    assert agent().answer("/v1/alive/broker")[0] is HTTPStatus.NO_CONTENT


def test_rules_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="laxest"):
        agent(broker=FENCED).answer("/v1/ready/broker?rules=laxest")


def test_a_pod_without_an_address_is_no_node_yet(tmp_path: Any) -> None:
    labels = {"strimzi.io/broker-role": "true", "strimzi.io/controller-role": "false"}
    pod = {"metadata": {"name": "c-a-10", "uid": "u-1", "labels": labels}, "status": {}}
    place = Place(17, tmp_path)
    assert node_of(pod, place) is None
    node = node_of({**pod, "status": {"podIP": "10.17.1.5"}}, place)
    assert node is not None
    assert (node.node_id, node.role, node.host) == (10, Role.BROKER, "127.17.1.5")


@pytest.mark.parametrize("without", [{"health_rules": None}, {"metrics": ()}])
def test_without_rules_or_metrics_probes_ask_for_the_port(without: dict[str, Any]) -> None:
    asked = {"metrics": ("kafka_.*",), "health_rules": "strict", "health_agent_port": 8080}
    for node_id, port in ((0, 9090), (10, 9091)):
        pod = rendered_pod(node_id, replace(cluster(), **{**asked, **without}))
        (container,) = pod["spec"]["containers"]
        assert container["readinessProbe"]["tcpSocket"] == {"port": port}
        assert "tcpSocket" in container["livenessProbe"]


@pytest.mark.parametrize(
    ("annotated", "told", "rules"),
    [
        (None, None, "strict"),
        (None, "shipped", "shipped"),
        (None, PORTS, None),
        ("proposal", "shipped", "proposal"),
        (PORTS, "shipped", None),
    ],
)
def test_a_kafka_is_probed_by_the_strict_rules_unless_it_or_the_twin_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, annotated: str | None, told: str | None, rules: str | None
) -> None:
    monkeypatch.delenv(RULES_VARIABLE, raising=False)
    if told is not None:
        monkeypatch.setenv(RULES_VARIABLE, told)
    annotations = {} if annotated is None else {HEALTH_RULES: annotated}
    kafka = {**KAFKA, "metadata": {**KAFKA["metadata"], "annotations": annotations}}
    pools = [pool("controller", "controller"), pool("broker-a", "broker")]
    ids = {"controller": [0], "broker-a": [10]}
    assert read(kafka, pools, ids, "id").health_rules == rules
