"""Every query of every dashboard, in front of Prometheus's own parser and on real series."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.cost.pricing import book
from infra.alerts.dashboards import dashboards
from tests.integration.conftest import Promtool
from tests.integration.test_alert_rules import (
    BROKERS,
    CONTROLLERS,
    claim_name,
    constant,
    pod_info,
    series,
)
from tests.unit.infra.programs import spec

pytestmark = pytest.mark.integration
SPEC = spec(connect={})
DASHBOARDS = dashboards(SPEC)
# What Grafana puts in place of its variables before Prometheus is asked.
FILLED = {"$__rate_interval": "5m", "$pod": ".+"}


def expressions(dashboard: Mapping[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            if "expr" in target:
                expression = target["expr"]
                for variable, value in FILLED.items():
                    expression = expression.replace(variable, value)
                yield expression


@pytest.mark.parametrize("name", DASHBOARDS)
def test_prometheus_understands_every_query(name: str, promtool: Promtool, tmp_path: Path) -> None:
    rules = [
        {"record": f"dashboard:query:{number}", "expr": expression}
        for number, expression in enumerate(expressions(DASHBOARDS[name]))
    ]
    assert rules
    assert not [rule for rule in rules if "$" in rule["expr"]]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": name, "rules": rules}]}))
    promtool("check", "rules", file)


def test_the_cost_of_an_hour_is_what_the_price_book_says_of_what_runs(
    promtool: Promtool, tmp_path: Path
) -> None:
    asked = "kube_persistentvolumeclaim_resource_requests_storage_bytes"
    gib = 1024**3
    held = {pod_info(node_id): constant(1) for node_id in (*BROKERS, *CONTROLLERS)}
    held |= {
        series(asked, namespace="kafka", persistentvolumeclaim=claim_name(node_id)): (
            constant(100 * gib)
        )
        for node_id in BROKERS
    }
    prices = book("us-east-1")
    nodes = 3 * sum(prices.instance_hour(pool.instance_type).usd for pool in SPEC.pools)
    # The first volume of each broker; the second one is not there, and must not cost anything.
    (_, brokers) = SPEC.pools
    first = brokers.volumes[0]
    month = 3 * (
        100 * prices.price("gp3_gib_month").usd
        + (first.iops - 3000) * prices.price("gp3_iops_month").usd
        + (first.throughput_mib_per_s - 125) * prices.price("gp3_gibps_month").usd / 1024
    )
    fixed = prices.price("eks_cluster_hour").usd + prices.price("nlb_hour").usd
    now = next(expressions(DASHBOARDS["cost"]))
    expected = float(nodes + month / 730 + fixed)
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": value} for key, value in held.items()],
        "promql_expr_test": [
            {
                "expr": f"round({now}, 0.0001)",
                "eval_time": "10m",
                "exp_samples": [{"labels": "{}", "value": round(expected, 4)}],
            }
        ],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(json.dumps({"rule_files": [], "tests": [test]}))
    promtool("test", "rules", file)
