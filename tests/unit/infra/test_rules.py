"""infra.alerts.rules: alerts over metrics that exist and pass the list, and fire for silence.

Whether they fire at all is asked of promtool, in tests/integration/test_alert_rules.py.
"""

from __future__ import annotations

import re

import pytest

from infra.alerts.rules import alerts, groups, rule_file
from infra.alerts.rules.alert import Alert
from infra.alerts.rules.rotation import CORDONED
from tests.unit.infra.metric_sources import names, unknown
from tests.unit.infra.programs import spec

ALERTS = alerts(spec(connect={}, eviction_gate={"image": "gate:1"}))
BY_NAME = {alert.name: alert for alert in ALERTS}
every_alert = pytest.mark.parametrize("alert", ALERTS, ids=BY_NAME)


@every_alert
def test_an_alert_reads_what_somebody_exposes_and_the_list_lets_through(alert: Alert) -> None:
    assert names(alert.expression)
    assert unknown(alert.expression) == []


def test_a_name_nobody_exposes_is_found() -> None:
    assert unknown('sum(kafka_server_nothing{pod="kafka_x"}) + kube_nothing_total') == [
        "kafka_server_nothing",
        "kube_nothing_total",
    ]


@every_alert
def test_an_alert_hears_one_cluster_and_no_pods_name(alert: Alert) -> None:
    # Strimzi's example rules match pods by a name that node pools do not give (strimzi#13163).
    expression = alert.expression.replace(CORDONED, "")
    assert "pod=~" not in expression
    assert 'namespace="kafka"' in expression
    if alert.name != "StrimziReconciliationFails":  # the operator counts by namespace alone
        assert '"orders' in expression or "-orders-" in expression


@every_alert
def test_an_alert_says_a_sentence_and_where_to_read_on(alert: Alert) -> None:
    rule = alert.rule("https://wiki.example/runbooks")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"https://wiki.example/runbooks/{alert.name}.md"
    assert rule["labels"] == {"severity": alert.severity}


def test_no_alert_has_anothers_name() -> None:
    assert len(BY_NAME) == len(ALERTS)


def test_every_subject_is_watched() -> None:
    assert list(groups(spec(connect={}))) == [
        "controllers",
        "metadata",
        "replicas",
        "brokers",
        "rotation",
        "volumes",
        "certificates",
        "connect",
    ]


def test_without_connect_nobody_watches_it() -> None:
    assert "connect" not in groups(spec())


def test_the_address_of_the_runbooks_is_the_descriptions() -> None:
    file = rule_file(spec(alerts={"runbooks_url": "https://wiki.example"}))
    pages = {rule["annotations"]["runbook_url"] for g in file["groups"] for rule in g["rules"]}
    assert all(page.startswith("https://wiki.example/") for page in pages)


@pytest.mark.parametrize(
    ("name", "promised"),
    [("KafkaBrokerMissing", 3), ("KafkaControllerMissing", 3), ("ConnectWorkerMissing", 3)],
)
def test_nobody_left_to_count_is_fewer_than_promised(name: str, promised: int) -> None:
    expression = BY_NAME[name].expression
    assert expression.endswith(f"or vector(0)) < {promised}")


def test_a_counter_that_a_restart_erases_is_read_as_it_stands() -> None:
    for name in ("KafkaMetadataLoadError", "KafkaMetadataApplyError"):
        assert "increase(" not in BY_NAME[name].expression
        assert BY_NAME[name].minutes == 0


def test_a_rotations_limits_are_the_descriptions_own() -> None:
    slow = {
        "nth_drain_timeout_seconds": 1200,
        "pod_grace_seconds": 901,
        "post_condition_wait_seconds": 3600,
    }
    minutes = {alert.name: alert.minutes for alert in alerts(spec(timings=slow))}
    assert minutes["KafkaRotationStuck"] == 40
    assert minutes["KafkaControlledShutdownStuck"] == 17
    assert minutes["KafkaBrokerNotBack"] == 60


def test_a_volumes_claims_are_matched_by_the_names_node_pools_give() -> None:
    (pattern,) = set(
        re.findall(r'persistentvolumeclaim=~"([^"]+)"', BY_NAME["KafkaVolumeNearlyFull"].expression)
    )
    assert re.fullmatch(pattern, "data-0-orders-broker-a-10")
    assert re.fullmatch(pattern, "data-1-orders-controller-c-2")
    assert not re.fullmatch(pattern, "data-0-other-broker-a-10")
    # Another cluster of the namespace, whose name begins as this one's.
    assert not re.fullmatch(pattern, "data-0-orders-eu-broker-a-10")
