"""Prometheus's HTTP API: instant and range queries, read only, each within a bound of its own.

A Service of the cluster's is asked through the API server's proxy, by GET alone, which is all that
RBAC grants: what Prometheus lets be changed asks for POST or PUT. A workspace of Amazon's is asked
under the function's own signature.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import boto3
import urllib3
from aws_lambda_powertools import Logger
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from core.ground.errors import StillwaterError
from core.settings.prometheus import Address, PrometheusService, PrometheusWorkspace
from handlers.adapters.eks import EksApi

logger = Logger(service="stillwater", child=True)
# A query over an hour of a few hundred series takes milliseconds; what takes longer is overloaded,
# and the other sources are asked instead.
QUERY_SECONDS = 8.0
# Prometheus refuses a range of more points a series.
MOST_POINTS = 11_000


class PrometheusRoute(Protocol):
    """How a Prometheus is reached."""

    def get(self, path: str, seconds: float) -> str:
        """Return what is answered to a GET; raises StillwaterError."""


class ThroughApiServer:
    """A Service behind the API server's proxy."""

    def __init__(self, api: EksApi, service: PrometheusService) -> None:
        self._api = api
        self._base = (
            f"/api/v1/namespaces/{quote(service.namespace)}/services/"
            f"{quote(service.resource_name, safe=':')}/proxy{service.prefix}"
        )

    def get(self, path: str, seconds: float) -> str:
        return self._api.text(f"{self._base}{path}", seconds)


class Signed:
    """A workspace of Amazon Managed Service for Prometheus, under SigV4."""

    def __init__(
        self, workspace: PrometheusWorkspace, session: boto3.Session | None = None
    ) -> None:
        self._workspace = workspace
        self._session = session or boto3.Session()
        self._pool = urllib3.PoolManager(retries=False)

    def get(self, path: str, seconds: float) -> str:
        request = AWSRequest(method="GET", url=f"{self._workspace.url}{path}")
        credentials = self._session.get_credentials()
        if credentials is None:
            raise StillwaterError("AWS credentials for Prometheus are missing.")
        SigV4Auth(credentials.get_frozen_credentials(), "aps", self._workspace.region).add_auth(
            request
        )
        try:
            answer = self._pool.request(
                "GET",
                str(request.url),
                headers=dict(request.headers.items()),
                timeout=urllib3.Timeout(total=seconds),
            )
        except urllib3.exceptions.HTTPError as error:
            raise StillwaterError(f"{self._workspace.id} did not answer: {error}") from None
        if answer.status != 200:
            said = answer.data[:300].decode(errors="replace")
            raise StillwaterError(f"{self._workspace.id} answered {answer.status}: {said}")
        return answer.data.decode(errors="replace")


def route(address: Address, api: EksApi) -> PrometheusRoute:
    """Return the way to an address."""
    return (
        ThroughApiServer(api, address)
        if isinstance(address, PrometheusService)
        else Signed(address)
    )


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, and its values by their time."""

    labels: Mapping[str, str]
    points: Mapping[float, float]


class Prometheus:
    """Asks one Prometheus."""

    def __init__(self, way: PrometheusRoute, seconds: float = QUERY_SECONDS) -> None:
        self._way, self._seconds = way, seconds

    def instant(self, query: str, at: float) -> tuple[Series, ...]:
        """Return what a query says at a moment; raises StillwaterError."""
        return self._ask("/api/v1/query", query, {"time": f"{at:.3f}"})

    def query_range(self, query: str, begin: float, end: float, step: float) -> tuple[Series, ...]:
        """Return what a query says over a time, a value each step; raises StillwaterError."""
        if (end - begin) / step >= MOST_POINTS:
            raise StillwaterError(
                f"Prometheus gives no more than {MOST_POINTS} values of a series, and a step of "
                f"{step:.0f} s over {end - begin:.0f} s is more; make the step longer."
            )
        span = {"start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        return self._ask("/api/v1/query_range", query, span)

    def _ask(self, path: str, query: str, more: Mapping[str, str]) -> tuple[Series, ...]:
        # Prometheus gives up at the same time: what nobody waits for, it does not evaluate.
        sent = {"query": query, "timeout": f"{self._seconds:g}s", **more}
        said = self._way.get(f"{path}?{urlencode(sent, quote_via=quote)}", self._seconds)
        try:
            answer = json.loads(said)
            if answer["status"] != "success":
                raise StillwaterError(f"Prometheus refused a query: {answer.get('error', said)}")
            for warning in answer.get("warnings") or ():
                logger.warning("Prometheus warns of an answer.", warning=warning, query=query)
            return tuple(_series(answer["data"]))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StillwaterError(
                f"The answer is not from a Prometheus ({error!r}): {said[:200]}"
            ) from None


def _series(data: Mapping[str, Any]) -> Iterator[Series]:
    for each in data["result"]:
        pairs = [each["value"]] if data["resultType"] == "vector" else each["values"]
        points = {float(at): float(value) for at, value in pairs}
        finite = {at: value for at, value in points.items() if math.isfinite(value)}
        if finite:
            yield Series(each["metric"], finite)
