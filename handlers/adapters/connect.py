"""Asks one Connect worker how it does, in a bounded time: GET /health, or the rule before it.

A worker in a cluster is asked through the API server's proxy: a function then needs no way to the
pods' network, and may GET one port of named pods and nothing else of them. A process on this
network is asked directly. Both see the same answers; core.health.connect judges them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from urllib.parse import quote

import urllib3

from core.constants import CONNECT_REST_PORT
from core.errors import StillwaterError
from core.health.connect import Failure, RestResponse, next_path
from handlers.adapters.eks import EksApi

CONNECT_SECONDS = 3.0
# A worker's answers are one line; whatever else listens there is not read to its end.
LARGEST_ANSWER_BYTES = 64 * 1024

Fetch = Callable[[str, float], RestResponse]


def ask(fetch: Fetch, seconds: float) -> tuple[RestResponse, ...]:
    """Return a worker's answers, as many as a verdict needs, within `seconds` in all."""
    until = time.monotonic() + seconds
    answers: list[RestResponse] = []
    while (path := next_path(answers)) is not None:
        # A second question follows only an answer that came at once.
        answers.append(fetch(path, max(until - time.monotonic(), 1.0)))
    return tuple(answers)


def directly(host: str, port: int = CONNECT_REST_PORT) -> Fetch:
    """Return a way to ask a worker on this network."""

    def fetch(path: str, seconds: float) -> RestResponse:
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, seconds), read=seconds)
        with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
            return _timed_answer(
                path,
                lambda: pool.request("GET", f"http://{host}:{port}{path}", preload_content=False),
            )

    return fetch


def through(api: EksApi, namespace: str, pod: str, port: int = CONNECT_REST_PORT) -> Fetch:
    """Return a way to ask a worker's pod through the API server."""
    proxy = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}:{port}/proxy"

    def fetch(path: str, seconds: float) -> RestResponse:
        return _relayed_answer(_timed_answer(path, lambda: api.relay(f"{proxy}{path}", seconds)))

    return fetch


def _timed_answer(path: str, request: Callable[[], urllib3.BaseHTTPResponse]) -> RestResponse:
    started = time.monotonic()

    def failed(failure: Failure, error: Exception) -> RestResponse:
        seconds = time.monotonic() - started
        return RestResponse(path=path, seconds=seconds, failure=failure, detail=str(error))

    try:
        response = request()
        with contextlib.closing(response):
            body = response.read(LARGEST_ANSWER_BYTES)
    except urllib3.exceptions.ReadTimeoutError as error:
        return failed(Failure.TIMEOUT, error)
    except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ProtocolError) as error:
        return failed(_why_unconnected(error), error)
    except (urllib3.exceptions.HTTPError, StillwaterError) as error:
        return failed(Failure.UNREACHABLE, error)
    return RestResponse(
        path=path,
        seconds=time.monotonic() - started,
        status=response.status,
        content_type=response.headers.get("content-type", ""),
        body=body.decode(errors="replace"),
    )


def _why_unconnected(error: Exception) -> Failure:
    """Tell a port where nobody listens, or no longer, from a host that cannot be reached."""
    cause = error.__cause__ or error.__context__
    return Failure.REFUSED if isinstance(cause, ConnectionError) else Failure.UNREACHABLE


def _relayed_answer(answer: RestResponse) -> RestResponse:
    """Tell the API server's own word, a Status object, from what the pod answered."""
    said = answer.document if answer.status is not None else None
    if said is None or said.get("kind") != "Status":
        return answer
    detail = str(said.get("message") or json.dumps(said))
    refused = "connection refused" in detail.lower()
    return RestResponse(
        path=answer.path,
        seconds=answer.seconds,
        failure=Failure.REFUSED if refused else Failure.UNREACHABLE,
        detail=f"The Kubernetes API answered {answer.status}: {detail}",
    )
