"""handlers.adapters.pods: what a worker's answer, an API server's and none at all look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from core.ground.errors import StillwaterError
from core.health.connect import CONNECTOR_PATH, HEALTH_PATH, Failure, RestResponse
from handlers.adapters import pods
from handlers.adapters.pods import LARGEST_ANSWER_BYTES, ask, through
from tests.every_case import every_case

POOL = urllib3.HTTPConnectionPool("127.0.0.1")


class FakeApi:
    """An API server that relays one answer, or fails."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, float]] = []

    def relay(self, path: str, seconds: float) -> Any:
        self.asked.append((path, seconds))
        return self.answer()


class Response:
    def __init__(self, status: int, body: str, content_type: str = "application/json") -> None:
        self.status, self.body = status, body.encode()
        self.headers = {"content-type": content_type}
        self.closed = False

    def read(self, most: int) -> bytes:
        return self.body[:most]

    def close(self) -> None:
        self.closed = True


def relayed(answer: Callable[[], Any]) -> RestResponse:
    api: Any = FakeApi(answer)
    return through(api, "kafka", "orders-connect-connect-0")(HEALTH_PATH, 12)


def status_of_api(code: int, message: str) -> Callable[[], Response]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message}
    return lambda: Response(code, json.dumps(body))


def test_a_pod_is_asked_by_name_and_port_through_the_api_server() -> None:
    api: Any = FakeApi(lambda: Response(200, "{}"))
    through(api, "kafka", "orders-connect-connect-0")(HEALTH_PATH, 12)
    assert api.asked == [
        ("/api/v1/namespaces/kafka/pods/orders-connect-connect-0:8083/proxy/health", 12)
    ]


def test_what_the_worker_says_is_kept_as_it_came() -> None:
    response = Response(503, '{"status":"starting"}')
    answer = relayed(lambda: response)
    assert (answer.status, answer.document) == (503, {"status": "starting"})
    assert (answer.failure, response.closed) == (None, True)


def test_nobody_reads_more_than_a_worker_would_ever_say() -> None:
    answer = relayed(lambda: Response(200, "x" * 10 * LARGEST_ANSWER_BYTES, "text/html"))
    assert len(answer.body) == LARGEST_ANSWER_BYTES


@pytest.mark.parametrize(
    ("code", "message", "failure"),
    [
        (503, "error trying to reach service: dial tcp 10.0.0.1:8083: connect: connection refused",
         Failure.REFUSED),
        (503, "error trying to reach service: dial tcp 10.0.0.1:8083: i/o timeout",
         Failure.UNREACHABLE),
        (403, 'pods "orders-connect-connect-0:8083" is forbidden', Failure.UNREACHABLE),
        (404, 'pods "orders-connect-connect-0" not found', Failure.UNREACHABLE),
    ],
)  # fmt: skip
def test_the_api_servers_own_word_is_not_taken_for_the_workers(
    code: int, message: str, failure: Failure
) -> None:
    answer = relayed(status_of_api(code, message))
    assert (answer.status, answer.failure) == (None, failure)
    assert message in answer.detail


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ReadTimeoutError(POOL, "/", "read timed out"), Failure.TIMEOUT),
        (ConnectTimeoutError(None, "connect timed out"), Failure.UNREACHABLE),
        (StillwaterError("There are no AWS credentials."), Failure.UNREACHABLE),
    ],
)
def test_why_there_is_no_answer_is_told_apart(error: Exception, failure: Failure) -> None:
    def failing() -> Any:
        raise error

    answer = relayed(failing)
    assert (answer.failure, answer.detail) == (failure, str(error))


@every_case(
    ("cause", "failure"),
    [
        (ConnectionRefusedError(111, "refused"), Failure.REFUSED),
        (ConnectionResetError(104, "reset"), Failure.REFUSED),
        (OSError(113, "no route to host"), Failure.UNREACHABLE),
    ],
)
@every_case("kind", [NewConnectionError, ProtocolError])
def test_a_port_nobody_listens_on_is_no_host_that_is_away(
    kind: type[Exception], cause: OSError, failure: Failure
) -> None:
    def failing() -> Any:
        error = NewConnectionError(POOL, "x") if kind is NewConnectionError else ProtocolError("x")
        raise error from cause

    assert pods._timed_answer(HEALTH_PATH, failing).failure is failure


def test_a_worker_that_knows_no_health_is_asked_again_in_the_time_that_is_left() -> None:
    asked: list[tuple[str, float]] = []

    def fetch(path: str, seconds: float) -> RestResponse:
        asked.append((path, seconds))
        return RestResponse(path=path, seconds=0.0, status=404, body='{"error_code":404}')

    assert [answer.path for answer in ask(fetch, 12)] == [HEALTH_PATH, CONNECTOR_PATH]
    assert 11 < asked[1][1] <= asked[0][1] <= 12
