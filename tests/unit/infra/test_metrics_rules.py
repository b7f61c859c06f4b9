"""infra.metrics_rules: alerts over metrics that exist and pass the list, and fire for silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.metrics import CONNECT_ALLOW, KAFKA_ALLOW
from infra.metrics_rules import Alert, alerts
from tests.unit.infra.programs import spec
from tests.unit.infra.test_metrics import CONNECT, KAFKA, allowed

ROOT = Path(__file__).parents[3]
ALERTS = alerts(spec(connect={}))
BY_NAME = {alert.name: alert for alert in ALERTS}
every_alert = pytest.mark.parametrize("alert", ALERTS, ids=BY_NAME)


def metrics(alert: Alert) -> set[str]:
    return set(re.findall(r"\b(?:kafka|kubelet)_[a-z0-9_]+", alert.expression))


@every_alert
def test_an_alert_reads_what_kafka_has_and_the_list_lets_through(alert: Alert) -> None:
    assert metrics(alert)
    for name in metrics(alert):
        if name.startswith("kubelet_"):
            continue  # the kubelet's own, which every node exposes
        if name.startswith("kafka_connect_"):
            assert name in CONNECT
            assert allowed(name, CONNECT_ALLOW)
        else:
            assert name in KAFKA
            assert allowed(name, KAFKA_ALLOW)


@every_alert
def test_an_alert_has_a_sentence_and_a_page_that_says_what_to_do(alert: Alert) -> None:
    assert alert.summary.endswith(".")
    page = (ROOT / alert.runbook).read_text()
    assert page.startswith(f"# {alert.name}\n")
    assert "## Look" in page
    assert "## Do" in page


@every_alert
def test_an_alert_hears_one_cluster_and_no_pods_name(alert: Alert) -> None:
    # Strimzi's example rules match pods by a name that node pools do not give (strimzi#13163).
    assert "pod=~" not in alert.expression
    assert 'namespace="kafka"' in alert.expression
    assert 'cluster="orders' in alert.expression or "-orders-" in alert.expression


def test_every_page_is_an_alerts() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("[KC]*.md")}
    assert set(BY_NAME) <= pages
    assert {page for page in pages if page.startswith(("Kafka", "Connect"))} == set(BY_NAME)


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


def test_a_volumes_claims_are_matched_by_the_names_node_pools_give() -> None:
    (pattern,) = set(
        re.findall(r'persistentvolumeclaim=~"([^"]+)"', BY_NAME["KafkaVolumeNearlyFull"].expression)
    )
    assert re.fullmatch(pattern, "data-0-orders-broker-a-10")
    assert not re.fullmatch(pattern, "data-0-other-broker-a-10")


def test_without_connect_nobody_watches_it() -> None:
    assert not [a for a in alerts(spec()) if a.name.startswith("Connect")]
