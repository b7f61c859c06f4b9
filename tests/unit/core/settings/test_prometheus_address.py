"""Where a Prometheus may be: a Service or a workspace, and nothing a function could not ask."""

from __future__ import annotations

import pytest

from core.ground.errors import InvalidInput
from core.settings.prometheus import (
    PrometheusService,
    PrometheusWorkspace,
    parse_prometheus_address,
)
from tests.every_case import every_case


@pytest.mark.parametrize(
    ("address", "resource_name", "prefix"),
    [
        ("http://prometheus-operated.monitoring.svc:9090", "prometheus-operated:9090", ""),
        ("http://prometheus.monitoring.svc.cluster.local:80/", "prometheus:80", ""),
        ("https://thanos.metrics.svc:10902/query", "https:thanos:10902", "/query"),
    ],
)
def test_a_service_is_known_by_its_name_and_port(
    address: str, resource_name: str, prefix: str
) -> None:
    found = parse_prometheus_address(address)
    assert isinstance(found, PrometheusService)
    assert (found.resource_name, found.prefix) == (resource_name, prefix)


def test_a_workspace_is_known_by_its_region_and_id() -> None:
    url = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-0a1b2c3d-4e5f"
    found = parse_prometheus_address(f"{url}/")
    assert isinstance(found, PrometheusWorkspace)
    assert (found.region, found.id, found.url) == ("eu-west-1", "ws-0a1b2c3d-4e5f", url)


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
