"""Every alert, in front of the real promtool: it fires when it must, says it, and else is quiet.

No twin: a rule needs series, and promtool makes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.ground import naming
from infra.alerts.dashboards import rule_file
from tests.integration.alert_case_table import CASES
from tests.integration.alert_cases import (
    ALWAYS,
    CLUSTER,
    NAMESPACE,
    Series,
    claim_name,
    constant,
    failures,
    growing,
    pending,
    pod_info,
    resource_state,
)
from tests.integration.alert_cases import series as one
from tests.integration.conftest import Promtool
from tests.unit.infra.programs import prometheus_alerts, spec

pytestmark = pytest.mark.integration
SPEC = spec(
    connect={},
    probe={"image": "registry.example/team/stillwater:1"},
    eviction_gate={"image": "registry.example/team/gate:1"},
)
ALERTS = prometheus_alerts(SPEC)
# The pattern of claims in Strimzi's example rules, until strimzi#13173.
SHIPPED_CLAIMS = "data(-[0-9]+)?-(.+)-kafka-[0-9]+"


@pytest.fixture
def check(promtool: Promtool, tmp_path: Path) -> Callable[[Mapping[str, Any], list[Any]], None]:
    """Run tests of rules; JSON is YAML."""

    def run(rules: Mapping[str, Any], tests: list[Any]) -> None:
        (tmp_path / "rules.yaml").write_text(json.dumps(rules))
        content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
        (tmp_path / "tests.yaml").write_text(json.dumps(content))
        promtool("test", "rules", tmp_path / "tests.yaml")

    return run


def shown(values: Series, *expected: tuple[str, int, list[Any]]) -> dict[str, Any]:
    """Return a test: what Prometheus holds, and which alerts fire at which minute."""
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": value} for key, value in values.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": firing}
            for name, minute, firing in expected
        ],
    }


def minutes_held(name: str) -> int:
    """Return how long an alert must hold before it fires."""
    return int(ALERTS[name]["for"].removesuffix("m"))


def firing(name: str) -> dict[str, Any]:
    case = CASES[name]
    rule = ALERTS[name]
    return {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {**rule["annotations"], "summary": case.says},
    }


def test_every_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


def test_prometheus_takes_the_rules_and_finds_nothing_to_say(
    promtool: Promtool, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(rule_file(SPEC)))
    promtool("check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml")


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_must_and_not_before(name: str, check: Callable[..., None]) -> None:
    case, minutes = CASES[name], minutes_held(name)
    expected = [(name, case.lead + minutes + 2, [firing(name)])]
    if minutes:
        expected.append((name, minutes - 1, []))
    check(rule_file(SPEC), [shown(case.fires, *expected)])


@pytest.mark.parametrize("name", CASES)
def test_an_alert_is_quiet_otherwise(name: str, check: Callable[..., None]) -> None:
    minutes = range(0, ALWAYS, 10)
    expected = [(name, minute, list[Any]()) for minute in minutes]
    check(rule_file(SPEC), [shown(CASES[name].quiet, *expected)])


def test_failures_count_where_the_state_has_changed_again_and_no_pod_waits(
    check: Callable[..., None],
) -> None:
    name = "StrimziReconciliationFails"
    failing = {failures(): growing(0.5), resource_state(): f"1x4 0x1 1x4 0x1 1x{ALWAYS}"}
    waiting = {pod_info(10): constant(1), pending(10): constant(1)}
    check(
        rule_file(SPEC),
        [
            shown(failing, (name, 60, [firing(name)])),
            shown({**failing, **waiting}, *((name, minute, []) for minute in range(0, 90, 10))),
        ],
    )


@pytest.mark.parametrize(
    "name", ["KafkaBrokerMissing", "KafkaControllerMissing", "ConnectWorkerMissing"]
)
def test_a_cluster_that_says_nothing_at_all_is_missed(
    name: str, check: Callable[..., None]
) -> None:
    test = shown({"up": constant(1)}, (name, minutes_held(name) + 2, [with_nobody(name)]))
    check(rule_file(SPEC), [test])


def with_nobody(name: str) -> dict[str, Any]:
    rule = ALERTS[name]
    summary = rule["annotations"]["summary"].replace("{{ $value }}", "0")
    return {
        "exp_labels": rule["labels"],
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }


def test_where_the_shipped_examples_stay_silent_ours_fire(check: Callable[..., None]) -> None:
    full = {
        **CASES["KafkaVolumeNearlyFull"].fires,
        # A pool that is called kafka is the one the examples know.
        one(
            "kubelet_volume_stats_available_bytes",
            namespace=NAMESPACE,
            persistentvolumeclaim=naming.claim(CLUSTER, "kafka", 0, 0),
        ): constant(0),
    }
    shipped = {
        "alert": "ShippedExample",
        "expr": "kubelet_volume_stats_available_bytes{"
        f'persistentvolumeclaim=~"{SHIPPED_CLAIMS}"}} < 50',
    }
    rules = rule_file(SPEC)
    rules = {"groups": [*rules["groups"], {"name": "shipped", "rules": [shipped]}]}
    of_pool_kafka = {
        "exp_labels": {
            "namespace": NAMESPACE,
            "persistentvolumeclaim": naming.claim(CLUSTER, "kafka", 0, 0),
        }
    }
    assert claim_name(10) == "data-0-orders-broker-a-10"
    check(
        rules,
        [
            shown(
                full,
                ("ShippedExample", 10, [of_pool_kafka]),
                ("KafkaVolumeNearlyFull", 10, [firing("KafkaVolumeNearlyFull")]),
            )
        ],
    )
