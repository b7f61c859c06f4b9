"""The gate's server answers in time, and from one reading within its age."""

import gc
import json
import threading
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from core.gate import PATH, GateAnswer
from handlers.eviction.gate import Recent
from handlers.eviction.server import LONGEST_BYTES, Counts, application, collecting
from tests.unit.core.gate.test_asked import review

TOKEN = "the-api-servers"
ASKED = f"{PATH}/{TOKEN}"


def served(answer: Callable[[], GateAnswer], seconds: float = 8) -> Starlette:
    gate: Any = SimpleNamespace(ask=lambda _asked, _deadline: answer())
    return application(gate, Counts(), lambda token: token == TOKEN, seconds=seconds)


def ask(
    app: Starlette, path: str, body: bytes | None = None, *, ends: bool = True
) -> tuple[int, str]:
    """Send one request, as the web server hands it over."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if not ends:
            await anyio.sleep(10)
        return {"type": "http.request", "body": body or b"", "more_body": not ends}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    method = "GET" if body is None else "POST"
    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
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

    threading.Timer(0.5, forever.set).start()
    response = answered(served(hangs, seconds=0.05))
    assert not response["allowed"]
    assert "No answer was found within" in response["status"]["message"]


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
    assert ask(served(yes, seconds=0.05), ASKED, b"", ends=False)[0] == 408


@pytest.mark.parametrize("body", [b"no", b"{}", b" " * (LONGEST_BYTES + 1)])
def test_what_is_no_review_is_refused_in_a_sentence(body: bytes) -> None:
    status, text = ask(served(yes), ASKED, body)
    assert status == 400
    assert text.startswith("The request is not an AdmissionReview: ")


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


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_reading_answers_for_its_age_and_no_longer() -> None:
    clock = Clock()
    recent, readings = Recent(2, clock), iter(range(10))
    asked = [recent.get("x", lambda: next(readings)) for _ in range(2)]
    clock.now += 2
    asked.append(recent.get("x", lambda: next(readings)))
    clock.now += 0.1
    asked.append(recent.get("x", lambda: next(readings)))
    assert asked == [0, 0, 0, 1]


def test_what_was_read_before_the_lease_answers_nobody_after() -> None:
    clock = Clock()
    recent, readings = Recent(60, clock), iter(range(10))
    recent.get("x", lambda: next(readings))
    clock.now += 0.1
    recent.forget()
    assert recent.get("x", lambda: next(readings)) == 1


def test_a_failure_is_not_kept() -> None:
    recent = Recent(60, Clock())
    with pytest.raises(RuntimeError, match="a fault of ours"):
        recent.get("x", fails)
    assert recent.get("x", lambda: 7) == 7


def test_many_who_ask_at_once_wait_for_one_reading() -> None:
    recent, begun, go = Recent(60), threading.Event(), threading.Event()
    readings = []

    def read() -> int:
        readings.append(1)
        begun.set()
        assert go.wait(10)
        return len(readings)

    with ThreadPoolExecutor(4) as people:
        first = people.submit(recent.get, "x", read)
        assert begun.wait(10)
        others = [people.submit(recent.get, "x", read) for _ in range(3)]
        go.set()
        assert [asked.result(10) for asked in (first, *others)] == [1, 1, 1, 1]
