"""Leads the authenticator's STS calls to the twin's accounts: a proxy that ends TLS for STS alone.

EKS verifies a token by sending the presigned GetCallerIdentity inside it to STS. moto cannot
answer that call (it routes a presigned GET to S3 and checks no signature), so the authenticator,
unpatched, is led here by HTTPS_PROXY. The secret of an access key comes from moto, the verdict
from local.kubernetes.sts.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import socketserver
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import urllib3

from core.ground.errors import StillwaterError
from local.kubernetes.pki import Authority
from local.kubernetes.sts import (
    AccessKeys,
    KeyOwner,
    PresignedRequest,
    RefusalError,
    caller_identity,
)
from local.place import Place

# aws-iam-authenticator always opens a health port on every interface of the machine, and goes on
# without when it is taken. Holding it on the authenticator's own address keeps that door shut.
AUTHENTICATOR_HEALTH_PORT = 21363


def sts_hosts(region: str) -> tuple[str, str]:
    """Return the names of STS: the regional one and the global one."""
    return f"sts.{region}.amazonaws.com", "sts.amazonaws.com"


class MotoAccessKeys:
    """Looks access keys up in the twin's moto server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(timeout=5.0, retries=False)

    def __call__(self, access_key: str) -> KeyOwner | None:
        path = f"/stillwater/credentials/{quote(access_key, safe='')}"
        response = self._pool.request("GET", self._url + path)
        if response.status == 404:
            return None
        if response.status != 200:
            raise StillwaterError(
                f"moto answered {response.status} when asked for the access key {access_key}."
            )
        return KeyOwner(**json.loads(response.data))


class _StsHandler(BaseHTTPRequestHandler):
    """The inside of a tunnel: HTTP from the authenticator to STS."""

    protocol_version = "HTTP/1.1"
    host: str
    access_keys: AccessKeys

    def do_GET(self) -> None:
        try:
            status, body = 200, self._answer()
        except RefusalError as refusal:
            status, body = refusal.status, refusal.body
        except (StillwaterError, urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
            failure = RefusalError(503, "ServiceUnavailable", f"The twin's accounts: {error!r}")
            status, body = failure.status, failure.body
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)
        _log(f"{self.host} {status} {encoded.decode()}")

    def _answer(self) -> dict[str, Any]:
        request = PresignedRequest.read(self.host, self.path, dict(self.headers.items()))
        return caller_identity(request, self.access_keys, dt.datetime.now(dt.UTC))

    def log_request(self, *_code_and_size: object) -> None:
        """Say nothing here: the request line holds a credential."""


class _TunnelHandler(BaseHTTPRequestHandler):
    """The outside: CONNECT to STS is opened, everything else is refused."""

    server: StsProxy

    def do_CONNECT(self) -> None:
        host = self.path.rpartition(":")[0]
        if host not in self.server.hosts:
            self.send_error(403, "Only STS is reachable from the twin")
            _log(f"refused a tunnel to {self.path}")
            return
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        # staticmethod, or the function would become a method and be given the handler.
        fields = {"host": host, "access_keys": staticmethod(self.server.access_keys)}
        inside = type("Inside", (_StsHandler,), fields)
        try:
            with self.server.context.wrap_socket(self.connection, server_side=True) as tunnel:
                inside(tunnel, self.client_address, self.server)
        except OSError as error:
            _log(f"a tunnel to {host} ended: {error}")

    def log_request(self, *_code_and_size: object) -> None:
        """Say nothing: what matters is logged by its meaning."""


class StsProxy(ThreadingHTTPServer):
    """The CONNECT proxy; one thread per connection."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        hosts: Sequence[str],
        context: ssl.SSLContext,
        access_keys: AccessKeys,
    ) -> None:
        self.hosts, self.context, self.access_keys = hosts, context, access_keys
        super().__init__(address, _TunnelHandler)


class _HealthPort(socketserver.TCPServer):
    # A twin restarted at once finds the port in TIME_WAIT otherwise.
    allow_reuse_address = True


def _log(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def serving(place: Place, region: str) -> Iterator[StsProxy]:
    """Serve on a thread within the block; leaves pki/sts-ca.crt for the authenticator to trust."""
    hosts = sts_hosts(region)
    pki = place.path("pki")
    pair = Authority.create(pki, "sts-ca").issue(pki, "sts", hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    health = (place.host("authenticator"), AUTHENTICATOR_HEALTH_PORT)
    address = (place.host("sts-proxy"), place.port("sts-proxy"))
    with (
        _HealthPort(health, socketserver.BaseRequestHandler),
        StsProxy(address, hosts, context, MotoAccessKeys(place.url("moto"))) as proxy,
    ):
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
