"""Answers a presigned GetCallerIdentity as STS does, behind a proxy that ends TLS for STS alone.

EKS verifies a token by sending the presigned GetCallerIdentity inside it to STS. moto cannot
answer that call (it routes a presigned GET to S3 and checks no signature), so the authenticator,
unpatched, is led here by HTTPS_PROXY. The secret of an access key comes from moto. An authenticator
that believed an STS which answers anybody would prove nothing: the Signature Version 4 is checked
as AWS does, so a wrong secret, a changed header or an old token is refused.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import urllib3

from core.ground.errors import StillwaterError
from local.kubernetes.pki import Authority
from local.place import Place

# STS honours a presigned GetCallerIdentity for 15 minutes, whatever X-Amz-Expires says.
VALID_SECONDS = 900
CLOCK_SKEW_SECONDS = 300
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
EMPTY_BODY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """An access key as AWS knows it, and who it belongs to."""

    secret: str
    arn: str
    account: str
    user_id: str
    session_token: str | None = None


AccessKeys = Callable[[str], KeyOwner | None]


class RefusalError(StillwaterError):
    """STS's no, with the status and code AWS gives it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code = status, code
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        return {"Error": {"Code": self.code, "Message": str(self), "Type": "Sender"}}


def _invalid_token() -> RefusalError:
    message = "The security token included in the request is invalid."
    return RefusalError(403, "InvalidClientTokenId", message)


def _mismatch() -> RefusalError:
    message = "The request signature we calculated does not match the signature you provided."
    return RefusalError(403, "SignatureDoesNotMatch", message)


@dataclass(frozen=True, slots=True)
class PresignedRequest:
    """A presigned GET as it arrived; header names are lower case."""

    host: str
    path: str
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]

    @classmethod
    def read(cls, host: str, target: str, headers: Mapping[str, str]) -> PresignedRequest:
        url = urlsplit(target)
        lowered = {name.lower(): value for name, value in headers.items()}
        query = parse_qsl(url.query, keep_blank_values=True)
        return cls(host, url.path or "/", query, {**lowered, "host": host})

    def parameter(self, name: str) -> str:
        return dict(self.query).get(name, "")

    @property
    def signed_headers(self) -> list[str]:
        return self.parameter("X-Amz-SignedHeaders").split(";")

    def signature(self, secret: str) -> str:
        """Return the Signature Version 4 this request has under a secret."""
        scope = self.parameter("X-Amz-Credential").partition("/")[2]
        query = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(self.query)
            if name != "X-Amz-Signature"
        )
        signed = self.signed_headers
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in signed)
        parts = ("GET", self.path, query, headers, ";".join(signed), EMPTY_BODY_SHA256)
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        message = "\n".join((ALGORITHM, self.parameter("X-Amz-Date"), scope, digest))
        key = f"AWS4{secret}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def caller_identity(
    request: PresignedRequest, access_keys: AccessKeys, now: dt.datetime
) -> dict[str, Any]:
    """Return STS's answer to a presigned GetCallerIdentity, or raise its refusal."""
    action = request.parameter("Action")
    if action != "GetCallerIdentity":
        raise RefusalError(400, "InvalidAction", f"The twin's STS has no action {action!r} here.")
    principal = access_keys(request.parameter("X-Amz-Credential").partition("/")[0])
    if principal is None:
        raise _invalid_token()
    if principal.session_token not in (None, request.parameter("X-Amz-Security-Token")):
        raise _invalid_token()
    _check_age(request.parameter("X-Amz-Date"), now)
    if "host" not in request.signed_headers or not set(request.signed_headers) <= set(
        request.headers
    ):
        raise _mismatch()
    expected = request.signature(principal.secret)
    if not hmac.compare_digest(expected, request.parameter("X-Amz-Signature")):
        raise _mismatch()
    result = {"Account": principal.account, "Arn": principal.arn, "UserId": principal.user_id}
    return {
        "GetCallerIdentityResponse": {
            "GetCallerIdentityResult": result,
            "ResponseMetadata": {"RequestId": hashlib.sha256(expected.encode()).hexdigest()[:32]},
        }
    }


def _check_age(timestamp: str, now: dt.datetime) -> None:
    try:
        signed_at = dt.datetime.strptime(timestamp, TIMESTAMP_FORMAT).replace(tzinfo=dt.UTC)
    except ValueError:
        raise RefusalError(400, "IncompleteSignature", "X-Amz-Date is not a date.") from None
    age_seconds = (now - signed_at).total_seconds()
    if not -CLOCK_SKEW_SECONDS <= age_seconds <= VALID_SECONDS:
        raise RefusalError(403, "ExpiredToken", f"A signature of {timestamp} is not valid now.")


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
