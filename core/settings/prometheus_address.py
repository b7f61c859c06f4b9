"""Names the Prometheus to ask: a Service of the cluster's own, or an Amazon Managed workspace.

A function reaches the API server and AWS, nothing else (ADR 0012). So a Service is asked through
the API server's proxy, for which RBAC grants its name and port, and a workspace under a signature;
an address of any other kind is refused where it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.ground.errors import InvalidInput

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


def parse(address: str) -> Address:
    """Read an address; raises InvalidInput with the two forms there are.

    >>> parse("http://prometheus-operated.monitoring.svc:9090").resource_name
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
