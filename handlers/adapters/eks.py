"""Requests to the API server of an EKS cluster, each under a token that STS signed.

No Kubernetes client: importing one costs a Lambda 1.7 s and 140 MB (research: local-tooling 5).
What is asked of it is handlers.adapters.kubernetes. TLS trusts the cluster's own authority alone.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
import ssl
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import boto3
import urllib3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from core.ground.errors import Conflict, StillwaterError

if TYPE_CHECKING:
    from core.settings.functions import InCluster

EXPLICIT_VERSION, UTC_TIME, LONG_FORM = 0xA0, 0x17, 0x80


def trusting(authorities_pem: str, whose: str) -> ssl.SSLContext:
    """Return a context that trusts these authorities alone, and checks the server's name.

    Raises StillwaterError when there is no certificate in them; `whose` starts that sentence.
    """
    # Not Python's default context: from 3.13 on that one wants an authority key identifier, which
    # EKS leaves out of its certificates (kubernetes-client/python#2394).
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=authorities_pem)
    except (ssl.SSLError, ValueError) as error:
        raise StillwaterError(
            f"{whose} certificate authority is not a PEM certificate: {error}."
        ) from None
    return context


def certificate_ends_at(certificate_pem: str) -> dt.datetime | None:
    """Return when the first certificate of a PEM text ends; None where it cannot be read.

    Read from its DER (RFC 5280, 4.1): the standard library tells it of a connection's peer alone.
    """
    _, _, rest = certificate_pem.partition("-----BEGIN CERTIFICATE-----")
    body, found, _ = rest.partition("-----END CERTIFICATE-----")
    if not found:
        return None
    try:
        certificate = _tls_content(base64.b64decode("".join(body.split()), validate=True))
        fields = _elements(_tls_content(certificate))
        # An explicit version comes before serial number, algorithm and issuer.
        validity = fields[4 if fields[0][0] == EXPLICIT_VERSION else 3]
        tag, end = _elements(validity[1])[1]
        said = end.decode()
        if tag == UTC_TIME:  # two digits of the year, of the half century they are nearer to
            said = ("19" if said >= "50" else "20") + said
        return dt.datetime.strptime(said, "%Y%m%d%H%M%S%z")
    except (ValueError, IndexError):
        return None


def _tls_content(der: bytes) -> bytes:
    """Return what is inside the first element."""
    return _elements(der)[0][1]


def _elements(der: bytes) -> list[tuple[int, bytes]]:
    """Return the elements that stand one after another, each by its tag."""
    found = []
    while der:
        tag, length, start = der[0], der[1], 2
        if length > LONG_FORM:
            start += length - LONG_FORM
            length = int.from_bytes(der[2:start])
        if start + length > len(der):
            raise ValueError("The element ends behind the text.")
        found.append((tag, der[start : start + length]))
        der = der[start + length :]
    return found


Json = dict[str, Any]

# STS accepts the signature for a minute; EKS the token for 15 from then on.
TOKEN_SECONDS = 60
PAGE_SIZE = 500
_TIMEOUT = urllib3.Timeout(connect=3.0, read=10.0)


def eks_token(cluster: str, region: str, session: boto3.Session | None = None) -> str:
    """Return a bearer token: a presigned GetCallerIdentity that names the cluster.

    The host is always STS itself, whatever endpoint other clients are pointed at: the
    authenticator accepts no other.
    """
    credentials = (session or boto3.Session()).get_credentials()
    if credentials is None:
        raise StillwaterError(
            "AWS credentials to sign a token for EKS are missing; give the function a role."
        )
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    query = urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
    request = AWSRequest(
        method="GET",
        url=f"https://sts.{region}.{domain}/?{query}",
        headers={"x-k8s-aws-id": cluster},
    )
    signer = SigV4QueryAuth(
        credentials.get_frozen_credentials(), "sts", region, expires=TOKEN_SECONDS
    )
    signer.add_auth(request)
    encoded = base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")
    return f"k8s-aws-v1.{encoded}"


class EksApi:
    """Reads an EKS cluster's API server, TLS verified against the cluster's own CA."""

    def __init__(
        self,
        *,
        endpoint: str,
        ca_pem: str,
        eks_cluster: str,
        region: str,
        session: boto3.Session | None = None,
        connections: int = 1,
    ) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._ca_pem = ca_pem
        self._eks_cluster = eks_cluster
        self._region = region
        # One for all requests: making one costs more than signing does.
        self._session = session or boto3.Session()
        self._connections = connections

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        context = trusting(self._ca_pem, "The Kubernetes API's")
        return urllib3.PoolManager(
            ssl_context=context, timeout=_TIMEOUT, retries=False, maxsize=self._connections
        )

    def list(self, path: str, *, of_any_kind: bool = False, **query: str) -> Iterator[Json]:
        """Yield the items of a list, page after page.

        With `of_any_kind` a kind that the API server does not serve has no items.
        """
        following = ""
        while True:
            page = {**query, "limit": str(PAGE_SIZE), "continue": following}
            answer = self.get(path, page, missing={} if of_any_kind else None)
            yield from answer.get("items") or ()
            following = answer.get("metadata", {}).get("continue", "")
            if not following:
                return

    def get(self, path: str, query: Mapping[str, str], missing: Json | None = None) -> Json:
        sent = urlencode({k: v for k, v in query.items() if v})
        return self._send("GET", f"{path}?{sent}", missing=missing)

    def find(self, path: str) -> Json | None:
        """Return one object, or None where there is none."""
        return self._send("GET", path, missing={}) or None

    def merge(self, path: str, body: Json) -> None:
        """Merge a change into an object; one that is gone is left alone.

        Raises Conflict when the change names a version that is no longer the object's.
        """
        self._send("PATCH", path, body=body, missing={})

    def delete(self, path: str, uid: str) -> None:
        """Delete this very object; one that is gone, or another of its name, is left alone."""
        body = {"preconditions": {"uid": uid}}
        with contextlib.suppress(Conflict):
            self._send("DELETE", path, body=body, kind="json", missing={})

    def ask(self, path: str, body: Json) -> str | None:
        """Post what may be refused for now; return the refusal's words, None where it is done.

        429 is a disruption budget's refusal, or an admission webhook's that has the asker come
        back; other webhooks answer with a status of their own and say that they deny. What the
        request is about may be gone, or another by now: then nothing is left to ask for.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        answer = self._request("POST", path, headers, body=json.dumps(body).encode())
        if answer.status in {200, 201, 404, 409}:
            return None
        said = answer.data[:600].decode(errors="replace")
        if answer.status == 429 or "denied the request" in said:
            return _message(answer.data) or said
        _eks_content(answer, "POST", path)
        return None

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        """Apply an object's fields as their manager, whoever had them before.

        Raises Conflict when the object is given in a version that is no longer its own.
        """
        query = urlencode({"fieldManager": manager, "force": "true"})
        return self._send("PATCH", f"{path}?{query}", body=body, kind="apply-patch+yaml")

    def text(self, path: str, timeout_seconds: float) -> str:
        """Return what is answered as text, within a bound of its own: a pod behind the proxy."""
        timeout = urllib3.Timeout(total=timeout_seconds)
        answer = self._request("GET", path, {"Accept": "text/plain"}, timeout=timeout)
        return _eks_content(answer, "GET", path).decode(errors="replace")

    def relay(self, path: str, seconds: float) -> urllib3.BaseHTTPResponse:
        """Return what a pod answers through the API server, unread, or the API server's own word.

        Raises urllib3's errors: to whom a pod's answer matters, so does why there is none.
        """
        timeout = urllib3.Timeout(connect=_TIMEOUT.connect_timeout, read=seconds)
        headers = {"Accept": "*/*"}
        return self._response("GET", path, headers, timeout=timeout, preload_content=False)

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        kind: str = "merge-patch+json",
        missing: Json | None = None,
    ) -> Json:
        """Return the decoded answer; `missing` is what an object that is not there answers."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = f"application/{kind}"
        sent = None if body is None else json.dumps(body).encode()
        answer = self._request(method, path, headers, body=sent)
        if answer.status == 404 and missing is not None:
            return missing
        decoded: Json = json.loads(_eks_content(answer, method, path))
        return decoded

    def _request(
        self, method: str, path: str, headers: Json, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._response(method, path, headers, **options)
        except urllib3.exceptions.HTTPError as error:
            raise StillwaterError(
                f"The Kubernetes API at {self._endpoint} did not answer "
                f"{_request_name(method, path)}: {error}"
            ) from None

    def _response(
        self, method: str, path: str, headers: Json, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        # A token costs one signature, no call, so each request carries a fresh one.
        token = eks_token(self._eks_cluster, self._region, self._session)
        return self._pool.request(
            method,
            f"{self._endpoint}{path}",
            headers={"Authorization": f"Bearer {token}", **headers},
            **options,
        )


def open_api(settings: InCluster, connections: int = 1) -> EksApi:
    """Return the cluster's API server; as many requests at a time as there are `connections`."""
    return EksApi(
        endpoint=settings.api.endpoint,
        ca_pem=settings.api.ca_pem,
        eks_cluster=settings.api.eks_cluster,
        region=settings.region,
        connections=connections,
    )


def _message(answered: bytes) -> str:
    """Return the message of a Status of Kubernetes'."""
    try:
        return str(json.loads(answered).get("message") or "")
    except (ValueError, AttributeError):
        return ""


def _request_name(method: str, path: str) -> str:
    return f"{method} {path.partition('?')[0]}"


def _eks_content(answer: urllib3.BaseHTTPResponse, method: str, path: str) -> bytes:
    """Return what was answered; raises StillwaterError, or Conflict, for all but 200."""
    asked = _request_name(method, path)
    if answer.status == 409:
        raise Conflict(f"The object of {asked} was changed meanwhile.")
    if answer.status != 200:
        said = answer.data[:300].decode(errors="replace")
        raise StillwaterError(f"The Kubernetes API answered {answer.status} to {asked}: {said}")
    return answer.data
