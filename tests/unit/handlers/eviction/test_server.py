"""The web application answers in time, whatever the gate does."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, MutableMapping
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from core.gate import PATH, GateAnswer, RemovalRequest
from handlers.eviction.server import LONGEST_BYTES, Counts, application, collecting
from tests.unit.core.gate.test_asked import review

TOKEN = "the-api-servers"
ASKED = f"{PATH}/{TOKEN}"


class Says:
    def __init__(self, answer: Callable[[], GateAnswer]) -> None:
        self._answer = answer

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        del asked, deadline
        return self._answer()


def served(answer: Callable[[], GateAnswer], seconds: float = 8) -> Starlette:
    return application(Says(answer), Counts(), lambda token: token == TOKEN, seconds=seconds)


def ask(app: Starlette, path: str, body: bytes | None = None) -> tuple[int, str]:
    """Send one request, as the web server hands it over."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "headers": [],
        "query_string": b"",
    }
    anyio.run(app, scope, receive, send)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent).decode()


def answered(app: Starlette) -> dict[str, Any]:
    status, text = ask(app, ASKED, json.dumps(review()).encode())
    assert status == 200
    response: dict[str, Any] = json.loads(text)["response"]
    return response


def yes() -> GateAnswer:
    return GateAnswer(allowed=True, reason="It may go.")


def fails() -> GateAnswer:
    raise RuntimeError("a fault of ours")


def test_an_answer_is_written_for_the_request_that_asked() -> None:
    app = served(yes)
    assert answered(app) == {"uid": "7d2e", "allowed": True}
    assert 'answer="allowed"} 1' in ask(app, "/metrics")[1]
    assert ask(app, "/readyz") == ask(app, "/healthz") == (200, "ok\n")


def test_a_gate_that_hangs_is_a_no_in_time() -> None:
    forever = threading.Event()

    def hangs() -> GateAnswer:
        forever.wait(10)
        return yes()

    def unblock() -> None:
        forever.set()

    threading.Timer(0.5, unblock).start()
    response = answered(served(hangs, seconds=0.05))
    assert not response["allowed"]
    assert "Nothing could be told within" in response["status"]["message"]


def test_a_fault_of_ours_is_a_no_and_never_a_yes() -> None:
    assert not answered(served(fails))["allowed"]


@pytest.mark.parametrize("path", [PATH, f"{PATH}/", f"{PATH}/another", f"{ASKED}/", f"{ASKED}x"])
def test_who_does_not_know_the_token_is_not_even_read(path: str) -> None:
    def asked() -> GateAnswer:
        raise AssertionError("the gate was asked")

    app = served(asked)
    invented = review() | {"padding": "x" * LONGEST_BYTES}
    assert ask(app, path, json.dumps(invented).encode()) in {
        (404, ""),
        (404, "Not Found"),
        (307, ""),
    }
    assert 'answer="allowed"} 0' in ask(app, "/metrics")[1]


def test_a_body_that_never_ends_is_given_up() -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        await anyio.sleep(10)
        return {"type": "http.request", "body": b"", "more_body": True}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": ASKED,
        "headers": [],
        "query_string": b"",
    }
    anyio.run(served(yes, seconds=0.05), scope, receive, send)
    assert sent[0]["status"] == 408


@pytest.mark.parametrize("body", [b"no", b"{}", b" " * (LONGEST_BYTES + 1)])
def test_what_is_no_review_is_refused_in_a_sentence(body: bytes) -> None:
    status, text = ask(served(yes), ASKED, body)
    assert status == 400
    assert text.startswith("The request is no AdmissionReview: ")


def test_the_whole_memory_is_looked_through_between_answers_alone() -> None:
    tests, usual, whole = gc.get_threshold(), (700, 10, 10), list[str]()

    def seen(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            whole.append(phase)

    async def served_for_a_while() -> None:
        limiter = anyio.CapacityLimiter(1)
        async with collecting(limiter, 0.01):
            async with limiter:
                whole.clear()
                # As a reading does: more than Python would let pass without a look at all of it.
                kept = [[number] for number in range(1_000_000)]
                await anyio.sleep(0.2)
                assert whole == []
                assert len(kept) == 1_000_000
            with anyio.fail_after(10):
                while not whole:
                    await anyio.sleep(0.01)

    # What pytest holds is no part of it: Python looks at all once a quarter of it is new.
    gc.freeze()
    gc.collect()
    gc.set_threshold(*usual)
    gc.callbacks.append(seen)
    try:
        anyio.run(served_for_a_while)
    finally:
        gc.callbacks.remove(seen)
        after = gc.get_threshold()
        gc.set_threshold(*tests)
    assert after == usual
