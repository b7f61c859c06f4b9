"""Defines where Prometheus is, and the clients' probe whose series it keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.ground.errors import InvalidInput

# Where the Secrets of its Deployment are mounted.
AUTHORITY_DIRECTORY = "/var/run/stillwater/authority"
USER_DIRECTORY = "/var/run/stillwater/user"
PORT = 8080
ATTEMPTS = "stillwater_probe_attempts_total"
FAILED = "stillwater_probe_failed_total"
SECONDS = "stillwater_probe_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBudget:
    """What one rotation may spend of the clients' error budget, and who counts it."""

    # Where Prometheus is (core.settings.functions), and which series there are ours.
    address: str
    labels: Mapping[str, str]
    objective_percent: float
    # Of the budget of 30 days, since a person last said that the run may go on.
    rotation_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """Settings of `handlers.probe`."""

    bootstrap: tuple[str, ...]
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    user: str
    topic: str
    replication_factor: int
    # An attempt that is not read back within this has failed.
    latency_seconds: float
    authority_directory: str = AUTHORITY_DIRECTORY
    user_directory: str = USER_DIRECTORY
    host: str = "0.0.0.0"  # noqa: S104 - a pod's own address, which Prometheus asks
    port: int = PORT


_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SERVICE = re.compile(
    rf"(?P<scheme>https?)://(?P<name>{_LABEL})\.(?P<namespace>{_LABEL})\.svc"
    r"(?:\.cluster\.local)?:(?P<port>\d{1,5})(?P<prefix>(?:/\w[\w.-]*)*)/?"
)


_WORKSPACE = re.compile(
    r"https://aps-workspaces\.(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?"
    r"/workspaces/(?P<id>ws-[0-9a-f-]{8,40})/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusService:
    """A Kubernetes Service, and the path below which its Prometheus serves."""

    namespace: str
    name: str
    port: int
    scheme: str
    prefix: str

    @property
    def resource_name(self) -> str:
        """The name under which the proxy and RBAC know it; a Service that speaks TLS says so."""
        tls = "https:" if self.scheme == "https" else ""
        return f"{tls}{self.name}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusWorkspace:
    """A workspace of Amazon Managed Service for Prometheus."""

    region: str
    id: str
    url: str


Address = PrometheusService | PrometheusWorkspace


def parse_prometheus_address(address: str) -> Address:
    """Read an address; raises InvalidInput with the two forms there are.

    >>> parse_prometheus_address("http://prometheus-operated.monitoring.svc:9090").resource_name
    'prometheus-operated:9090'
    """
    service, workspace = _SERVICE.fullmatch(address), _WORKSPACE.fullmatch(address)
    if service is not None and 0 < int(service["port"]) < 65_536:
        return PrometheusService(
            namespace=service["namespace"],
            name=service["name"],
            port=int(service["port"]),
            scheme=service["scheme"],
            prefix=service["prefix"],
        )
    if workspace is not None:
        return PrometheusWorkspace(
            region=workspace["region"], id=workspace["id"], url=address.rstrip("/")
        )
    problem = (
        f"{address} is no address a function can ask; name a Service as "
        f"http://NAME.NAMESPACE.svc:PORT, or a workspace of Amazon Managed Service for Prometheus "
        f"as https://aps-workspaces.REGION.amazonaws.com/workspaces/ws-ID"
    )
    raise InvalidInput([problem])
