"""Requests to one API server, for commands and the twin: plain JSON over TLS, under one identity.

Kubernetes objects stay the dictionaries the API speaks: whoever asks reads a handful of fields, and
gains nothing from a generated model. The Lambdas have a client of their own
(handlers.adapters.eks), which signs a token per request.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from core.ground.errors import StillwaterError, one_line
from core.ground.fields import part

Object = dict[str, Any]
# None: the client's certificate says who it is.
Token = str | Callable[[], str] | None

METADATA_ALONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = METADATA_ALONE.replace("Metadata;", "MetadataList;")
CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 30.0
# What priority and fairness turns away (429), or a server that starts (503), is asked again, after
# what its Retry-After says: https://kubernetes.io/docs/concepts/cluster-administration/flow-control
BUSY = frozenset({429, 503})
TRIES, LONGEST_PAUSE_SECONDS = 6, 10.0
# The server ends a watch by itself after this long.
WATCH_SECONDS = 240


class ApiError(StillwaterError):
    """An answer with a status of 400 or more, or a page for one, or 0 for no answer."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


def _error(method: str, path: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    try:
        status = part(json.loads(response.data))
    except ValueError:
        text = response.data.decode(errors="replace").strip()
        status = {"message": text[:500]}
    message = status.get("message") or f"{response.status} without a message"
    reason = str(status.get("reason") or "")
    return ApiError(
        response.status,
        reason,
        f"{method} {path} was refused ({response.status}): {one_line(message) or 'a page'}",
    )


class Api:
    """Requests to one API server with one identity; safe to share between threads."""

    _pause = staticmethod(time.sleep)

    def __init__(
        self,
        server: str,
        token: Token,
        ca_file: Path | None = None,
        *,
        ca_pem: str | None = None,
        certificate: tuple[Path, Path] | None = None,
        server_name: str | None = None,
        connections: int = 16,
    ) -> None:
        """Trust exactly the authorities given, as a file or as PEM text; without any, the system's.

        `token` may be a function, for tokens that expire while the client lives; `certificate` is
        the client's own with its key, which may be gone when this returns.
        """
        self.server = server.rstrip("/")
        self._token = token
        context = ssl.create_default_context(cafile=ca_file, cadata=ca_pem)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        named: dict[str, Any] = {} if server_name is None else {"server_hostname": server_name}
        self._pool = urllib3.PoolManager(
            maxsize=connections,
            # What was sent is not sent again: the server may have acted on it.
            retries=urllib3.Retry(
                total=2,
                read=0,
                other=0,
                redirect=0,
                backoff_factor=0.1,
                # Reading alone is asked again, below.
                respect_retry_after_header=False,
            ),
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=READ_TIMEOUT_SECONDS),
            ssl_context=context,
            **named,
        )

    def get(self, path: str, **query: object) -> Object:
        return self._request("GET", path, None, query)

    def metadata(self, path: str) -> Object:
        """Return an object's metadata alone: what a Secret holds does not leave the server."""
        return self._request("GET", path, None, {}, accept=METADATA_ALONE)

    def metadata_list(self, path: str, **query: object) -> Object:
        """Return the metadata alone of what a listing holds, for the same reason."""
        return self._request("GET", path, None, query, accept=METADATA_LIST)

    def post(self, path: str, body: Mapping[str, Any], **query: object) -> Object:
        return self._request("POST", path, body, query)

    def put(self, path: str, body: Mapping[str, Any], **query: object) -> Object:
        return self._request("PUT", path, body, query)

    def delete(self, path: str, body: Mapping[str, Any] | None = None, **query: object) -> Object:
        return self._request("DELETE", path, body, query)

    def merge(self, path: str, body: Mapping[str, Any]) -> Object:
        """Patch with RFC 7396 semantics: null removes, lists are replaced."""
        return self._request("PATCH", path, body, {}, "application/merge-patch+json")

    def strategic(self, path: str, body: Mapping[str, Any]) -> Object:
        """Patch with Kubernetes' own semantics: lists of built-in types merge by their keys."""
        return self._request("PATCH", path, body, {}, "application/strategic-merge-patch+json")

    def apply(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        field_manager: str,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Create or change an object by server-side apply, taking over contested fields.

        Strict refuses unknown and duplicate fields, which are dropped in silence otherwise.
        """
        query: dict[str, object] = {"fieldManager": field_manager, "force": True}
        if dry_run:
            query["dryRun"] = "All"
        if strict:
            query["fieldValidation"] = "Strict"
        # JSON is YAML, and the content type must say YAML.
        return self._request("PATCH", path, body, query, "application/apply-patch+yaml")

    def ready(self) -> bool:
        """Say whether the API server answers /readyz with 200."""
        with suppress(urllib3.exceptions.HTTPError):
            response = self._pool.request(
                "GET", self.server + "/readyz", headers=self._headers(), retries=False, timeout=2.0
            )
            return response.status == 200
        return False

    @contextmanager
    def watch(self, path: str, **query: object) -> Iterator[urllib3.BaseHTTPResponse]:
        """Open a watch; every line of the response is one event."""
        response = self._pool.request(
            "GET",
            self.server + path,
            fields=_query({"watch": True, "timeoutSeconds": WATCH_SECONDS, **query}),
            headers=self._headers(),
            preload_content=False,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=WATCH_SECONDS + 30),
        )
        try:
            if response.status >= 400:
                raise _error("WATCH", path, response)
            yield response
        finally:
            response.close()

    def _headers(self) -> dict[str, str]:
        token = self._token() if callable(self._token) else self._token
        authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        return {**authorization, "Accept": "application/json"}

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, object],
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        url = self.server + path
        if query:
            url += "?" + urlencode(_query(query))
        headers = {**self._headers(), "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = self._response(
                method, url, body=None if body is None else json.dumps(body), headers=headers
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(
                0,
                "Unreachable",
                f"The API server {self.server} did not answer {method} {path}: {one_line(error)}",
            ) from error
        # A login's page comes with 200.
        if response.status >= 400 or not response.data.lstrip().startswith(b"{"):
            raise _error(method, path, response)
        answer: Object = json.loads(response.data)
        return answer

    def _response(self, method: str, url: str, **given: Any) -> urllib3.BaseHTTPResponse:
        """Return an answer; reading, which changes nothing, is asked again while all is busy."""
        response = self._pool.request(method, url, **given)
        for _ in range(TRIES - 1):
            wait = _retry_after(response) if method == "GET" else None
            if wait is None:
                break
            self._pause(wait)
            response = self._pool.request(method, url, **given)
        return response


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    """Return how long a busy server wants to be left alone; None: it does not say that it is."""
    written = str(response.headers.get("Retry-After") or "")
    if response.status not in BUSY or not written.isdecimal():
        return None
    return min(float(written), LONGEST_PAUSE_SECONDS)


def _query(query: Mapping[str, object]) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in query.items()
    }
