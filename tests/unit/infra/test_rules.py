"""infra.alerts.dashboards: alerts over metrics that exist and pass the list, and fire for silence.

Whether they fire at all is asked of promtool, in tests/integration/test_alert_rules.py.
"""

from __future__ import annotations

import re

import pytest

from infra.alerts.dashboards import cluster_values, rule_file
from tests.unit.infra.metric_sources import names, unknown
from tests.unit.infra.programs import prometheus_alerts, spec

ALERTS = prometheus_alerts(spec(connect={}, eviction_gate={"image": "gate:1"}))
every_alert = pytest.mark.parametrize("name", ALERTS)


@every_alert
def test_an_alert_reads_what_somebody_exposes_and_the_list_lets_through(name: str) -> None:
    assert names(ALERTS[name]["expr"])
    assert unknown(ALERTS[name]["expr"]) == []


def test_a_name_nobody_exposes_is_found() -> None:
    assert unknown('sum(kafka_server_nothing{pod="kafka_x"}) + kube_nothing_total') == [
        "kafka_server_nothing",
        "kube_nothing_total",
    ]


@every_alert
def test_an_alert_hears_one_cluster_and_no_pods_name(name: str) -> None:
    # Strimzi's example rules match pods by a name that node pools do not give (strimzi#13163).
    expression = ALERTS[name]["expr"].replace(cluster_values(spec())["cordoned"], "")
    assert "pod=~" not in expression
    assert 'namespace="kafka"' in expression
    if name != "StrimziReconciliationFails":  # the operator counts by namespace alone
        assert '"orders' in expression or "-orders-" in expression


@every_alert
def test_an_alert_says_a_sentence_and_where_to_read_on(name: str) -> None:
    rule = ALERTS[name]
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"{spec().alerts.runbooks_url}/{name}.md"
    assert rule["labels"]["severity"] in {"critical", "warning"}


def test_no_alert_has_anothers_name() -> None:
    assert len(ALERTS) == sum(
        len(group["rules"])
        for group in rule_file(spec(connect={}, eviction_gate={"image": "gate:1"}))["groups"]
    )


def group_names(**changed: object) -> list[str]:
    return [group["name"] for group in rule_file(spec(**changed))["groups"]]


def test_every_subject_is_watched() -> None:
    assert group_names(connect={}) == [
        "orders-controllers",
        "orders-metadata",
        "orders-replicas",
        "orders-brokers",
        "orders-rotation",
        "orders-volumes",
        "orders-certificates",
        "orders-connect",
    ]


def test_without_connect_nobody_watches_it() -> None:
    assert "orders-connect" not in group_names()


def test_the_address_of_the_runbooks_is_the_descriptions() -> None:
    file = rule_file(spec(alerts={"runbooks_url": "https://wiki.example"}))
    pages = {rule["annotations"]["runbook_url"] for g in file["groups"] for rule in g["rules"]}
    assert all(page.startswith("https://wiki.example/") for page in pages)


@pytest.mark.parametrize(
    ("name", "promised"),
    [("KafkaBrokerMissing", 3), ("KafkaControllerMissing", 3), ("ConnectWorkerMissing", 3)],
)
def test_nobody_left_to_count_is_fewer_than_promised(name: str, promised: int) -> None:
    expression = ALERTS[name]["expr"]
    assert expression.endswith(f"or vector(0)) < {promised}")


def test_a_counter_that_a_restart_erases_is_read_as_it_stands() -> None:
    for name in ("KafkaMetadataLoadError", "KafkaMetadataApplyError"):
        assert "increase(" not in ALERTS[name]["expr"]
        assert ALERTS[name]["for"] == "0m"


def test_a_rotations_limits_are_the_descriptions_own() -> None:
    slow = {
        "nth_drain_timeout_seconds": 1200,
        "pod_grace_seconds": 901,
        "post_condition_wait_seconds": 3600,
    }
    slow_alerts = prometheus_alerts(spec(timings=slow))
    assert slow_alerts["KafkaRotationStuck"]["for"] == "40m"
    assert slow_alerts["KafkaControlledShutdownStuck"]["for"] == "17m"
    assert slow_alerts["KafkaBrokerNotBack"]["for"] == "60m"


def test_a_volumes_claims_are_matched_by_the_names_node_pools_give() -> None:
    (pattern,) = set(
        re.findall(r'persistentvolumeclaim=~"([^"]+)"', ALERTS["KafkaVolumeNearlyFull"]["expr"])
    )
    assert re.fullmatch(pattern, "data-0-orders-broker-a-10")
    assert re.fullmatch(pattern, "data-1-orders-controller-c-2")
    assert not re.fullmatch(pattern, "data-0-other-broker-a-10")
    # Another cluster of the namespace, whose name begins as this one's.
    assert not re.fullmatch(pattern, "data-0-orders-eu-broker-a-10")
