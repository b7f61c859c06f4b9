"""core.settings: what is written is read again, and where a Prometheus may be."""

import json
from decimal import Decimal
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from core.ground.window import Window
from core.settings import codec
from core.settings.prometheus import PrometheusService, parse_prometheus_address
from core.settings.volumes import PoolSettings, PrometheusSettings, VolumeSettings
from core.volumes.sizing import Gp3, Performance, Policy
from tests.every_case import every_case
from tests.tables import changed
from tests.unit.policies import policy_with

VOLUMES = VolumeSettings(
    applies=True,
    frozen=False,
    budget_usd=Decimal("50.5"),
    pools={"broker-a": PoolSettings(Policy(apply=True), (Gp3(500, Performance(4000, 140)),))},
    prometheus=PrometheusSettings("http://prometheus.monitoring.svc:9090", {"cluster": "prod"}),
)
WINDOW = Window(days=frozenset({"sat", "sun"}), start_minute=180, duration_minutes=120)


WRITTEN = [VOLUMES, policy_with(), policy_with(maintenance=WINDOW)]


@every_case("settings", WRITTEN, ids=["volumes", "policy", "window"])
def test_what_is_written_is_read_again(settings: Any) -> None:
    told = json.loads(codec.write(codec.document(settings)))
    assert codec.read(type(settings), told) == settings


@every_case(
    ("path", "value", "said"),
    [
        ("applies", 1, "applies is 1, and must be true or false"),
        ("budget_usd", "-1", "budget_usd is '-1', and must be an amount"),
        ("budget_usd", "plenty", "budget_usd is 'plenty', and must be an amount"),
        ("pools", [], "pools is [], and must be a list or an object"),
        ("pools.broker-a", None, "pools.broker-a is None, and must be an object"),
        ("pools.broker-a.policy.step_gib", 2.5, "must be a whole number"),
        ("pools.broker-a.policy.act_days", float("inf"), "must be a number"),
        ("pools.broker-a.policy.act_days", True, "must be a number"),
        ("pools.broker-a.volumes.0.size", 1, "pools.broker-a.volumes[0].size is unknown"),
        ("prometheus.address", "", "prometheus.address is '', and must be text"),
    ],
)
def test_a_wrong_value_is_one_clause_that_says_where(path: str, value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        codec.read(VolumeSettings, changed(codec.document(VOLUMES), {path: value}))
    (problem,) = raised.value.problems
    assert said in problem


def test_a_word_is_one_of_those_there_are() -> None:
    told = {**codec.document(policy_with()), "drain_route": "sideways"}
    with pytest.raises(InvalidInput, match="drain_route is 'sideways', and must be held or direct"):
        codec.read(type(policy_with()), told)


@pytest.mark.parametrize(
    ("address", "resource_name", "prefix"),
    [
        ("http://prometheus-operated.monitoring.svc:9090", "prometheus-operated:9090", ""),
        ("http://prometheus.monitoring.svc.cluster.local:80/", "prometheus:80", ""),
        ("https://thanos.metrics.svc:10902/query", "https:thanos:10902", "/query"),
    ],
)
def test_services_are_known_by_name_and_port(address: str, resource_name: str, prefix: str) -> None:
    found = parse_prometheus_address(address)
    assert isinstance(found, PrometheusService)
    assert (found.resource_name, found.prefix) == (resource_name, prefix)


@every_case(
    "address",
    [
        "prometheus:9090",
        "http://10.0.0.1:9090",
        "http://prometheus.monitoring.svc",
        "http://prometheus.monitoring.svc:0",
        "http://prometheus.monitoring.svc:99999",
        "http://prometheus.monitoring.svc:9090/../../secrets",
        "http://prometheus.monitoring.svc:9090/a?b=c",
        "https://example.com/workspaces/ws-0a1b2c3d",
    ],
)
def test_another_address_is_refused_with_the_two_forms_there_are(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"http://NAME\.NAMESPACE\.svc:PORT"):
        parse_prometheus_address(address)
