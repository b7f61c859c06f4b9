"""Prometheus's HTTP API as it is asked, and what becomes of its answers and its refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from core.ground.errors import StillwaterError
from core.settings.prometheus import (
    PrometheusService,
    PrometheusWorkspace,
    parse_prometheus_address,
)
from handlers.adapters.prometheus import Prometheus, Signed, ThroughApiServer, route
from handlers.adapters.volumes import PrometheusVolumes

NOW, GIB = 1_800_000_000.0, 1024**3
CLAIM = "data-0-orders-broker-a-10"


class Said:
    """A route that answers by a function of the query, and remembers what it was asked."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self._answer = answer
        self.asked: list[tuple[str, dict[str, str], float]] = []

    def get(self, path: str, seconds: float) -> str:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, query, seconds))
        answer = self._answer(query["query"])
        return answer if isinstance(answer, str) else json.dumps(answer)


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [NOW, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def matrix(labels: dict[str, str], *values: tuple[float, str]) -> dict[str, Any]:
    result = [{"metric": labels, "values": [list(each) for each in values]}]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_an_instant_query_is_a_get_at_a_moment_within_a_bound() -> None:
    way = Said(lambda _: vector(({"a": "b"}, "1.5")))
    (series,) = Prometheus(way, seconds=3).instant("up", NOW)
    assert (series.labels, series.points) == ({"a": "b"}, {NOW: 1.5})
    path, query, seconds = way.asked[0]
    assert (path, seconds) == ("/api/v1/query", 3)
    assert query == {"query": "up", "timeout": "3s", "time": "1800000000.000"}


def test_a_range_has_its_begin_end_and_step() -> None:
    way = Said(lambda _: matrix({}, (NOW - 60, "1"), (NOW, "2")))
    (series,) = Prometheus(way).query_range("up", NOW - 60, NOW, 60)
    assert series.points == {NOW - 60: 1.0, NOW: 2.0}
    assert way.asked[0][1]["step"] == "60"


def test_a_value_that_is_none_is_left_out() -> None:
    way = Said(lambda _: matrix({}, (NOW - 60, "NaN"), (NOW, "+Inf")))
    assert Prometheus(way).query_range("up", NOW - 60, NOW, 60) == ()


def test_a_range_of_too_many_values_is_refused_before_it_is_asked() -> None:
    way = Said(lambda _: vector())
    with pytest.raises(StillwaterError, match="make the step longer"):
        Prometheus(way).query_range("up", NOW - 1e6, NOW, 60)
    assert way.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "error", "error": "query timed out"}, "query timed out"),
        ("<html>log in</html>", "no Prometheus"),
        ({"status": "success"}, "no Prometheus"),
    ],
)
def test_what_is_no_answer_is_a_sentence(answer: Any, words: str) -> None:
    with pytest.raises(StillwaterError, match=words):
        Prometheus(Said(lambda _: answer)).instant("up", NOW)


def test_a_service_is_asked_through_the_api_servers_proxy() -> None:
    class Api:
        def text(self, path: str, seconds: float) -> str:
            return f"{path} within {seconds}"

    address = parse_prometheus_address("https://thanos.metrics.svc:10902/query")
    assert isinstance(address, PrometheusService)
    said = ThroughApiServer(Api(), address).get("/api/v1/query?query=up", 3)  # type: ignore[arg-type]
    assert said == (
        "/api/v1/namespaces/metrics/services/https:thanos:10902/proxy/query/api/v1/query?query=up"
        " within 3"
    )


def test_a_workspace_is_asked_under_a_signature_for_its_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = parse_prometheus_address(
        "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-0a1b2c3d"
    )
    assert isinstance(address, PrometheusWorkspace)
    assert isinstance(route(address, None), Signed)  # type: ignore[arg-type]
    way = Signed(address, boto3.Session("AKIDEXAMPLE", "secret", "token"))
    sent: dict[str, Any] = {}

    class Answer:
        status, data = 200, b"{}"

    def request(method: str, url: str, **options: Any) -> Answer:
        sent.update(method=method, url=url, **options)
        return Answer()

    monkeypatch.setattr(way._pool, "request", request)
    assert way.get("/api/v1/query?query=up%20%3E%200", 3) == "{}"
    assert (sent["method"], sent["url"]) == (
        "GET",
        f"{address.url}/api/v1/query?query=up%20%3E%200",
    )
    assert "/eu-west-1/aps/aws4_request" in sent["headers"]["Authorization"]
    assert "secret" not in str(sent["headers"])


def of_room(capacity: float | None, available: float | None) -> Said:
    def answer(query: str) -> Any:
        value = capacity if "capacity" in query else available
        labels = {"persistentvolumeclaim": CLAIM}
        return vector(*([] if value is None else [(labels, repr(value))]))

    return Said(answer)


def volumes(way: Said) -> PrometheusVolumes:
    return PrometheusVolumes(Prometheus(way), "kafka", "orders", {"cluster": "prod"})


def test_a_claims_fill_is_the_file_systems() -> None:
    way = of_room(99.0 * GIB, 40.0 * GIB)
    told = volumes(way).fills([CLAIM], NOW)
    # What the file system keeps for itself is gone as well.
    assert told.found[CLAIM].used_bytes(100 * GIB) == 60 * GIB
    assert told.gaps == ()
    assert all('cluster="prod"' in query["query"] for _, query, _ in way.asked)


def test_a_claim_without_a_series_is_unknown_and_named_not_empty() -> None:
    told = volumes(of_room(99.0 * GIB, None)).fills([CLAIM], NOW)
    assert told.found == {}
    (gap,) = told.gaps
    assert gap.startswith(f"Prometheus has no kubelet_volume_stats_available_bytes of {CLAIM}; ")


def test_many_volumes_are_asked_in_queries_of_a_hundred() -> None:
    way = Said(lambda _: {"status": "success", "data": {"resultType": "matrix", "result": []}})
    volumes(way).loads([f"vol-{n}" for n in range(250)], NOW)
    assert len(way.asked) == 8 * 3
    assert max(len(query["query"]) for _, query, _ in way.asked) < 2000
