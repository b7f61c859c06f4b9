"""The gate's server answers in time, from one reading within its age, under its own certificate.

A certificate is renewed in time, trusted before it is shown, and one for both replicas.
"""

import base64
import datetime as dt
import gc
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from cryptography import x509
from starlette.applications import Starlette

from core.gate import EVICTIONS, KNOWN, PATH, GateAnswer, RemovalRequest
from core.ground.errors import Conflict, StillwaterError
from handlers.eviction.certificate import (
    NAMED_EVERY,
    RENEWED_BEFORE,
    VALID,
    WEBHOOKS,
    Keeper,
    is_due,
    issue,
)
from handlers.eviction.gate import Recent
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
    with pytest.raises(ValueError, match="no"):
        recent.get("x", _fails)
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


def _fails() -> int:
    raise ValueError("no")


NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
HOSTS = ["stillwater-gate.kube-system.svc"]
SECRET = "/api/v1/namespaces/kube-system/secrets/stillwater-gate"
WEBHOOK = f"{WEBHOOKS}/stillwater-gate"


class Server:
    """Two objects of an API server; a change of another version is refused."""

    def __init__(self) -> None:
        asking = [{"name": name, "clientConfig": {}} for name in (EVICTIONS, "nodes")]
        self.objects: dict[str, dict[str, Any]] = {
            SECRET: {"metadata": {"resourceVersion": "1"}},
            WEBHOOK: {"metadata": {"name": "stillwater-gate"}, "webhooks": asking},
        }
        self.before_merge = lambda: None

    def find(self, path: str) -> dict[str, Any] | None:
        return self.objects.get(path)

    def merge(self, path: str, body: dict[str, Any]) -> None:
        self.before_merge()
        known = self.objects[path]["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != known:
            raise Conflict("changed")
        data = {**self.objects[path].get("data", {}), **body["data"]}
        changed = {"metadata": {"resourceVersion": str(int(known) + 1)}, "data": data}
        self.objects[path] = changed

    def apply(self, path: str, body: dict[str, Any], *, manager: str) -> dict[str, Any]:
        del manager
        self.objects[path] = {**self.objects[path], "webhooks": body["webhooks"]}
        return self.objects[path]

    def stored(self, name: str) -> bytes:
        return base64.b64decode(self.objects[SECRET]["data"][name])

    def trusted(self) -> bytes:
        told = {each["clientConfig"]["caBundle"] for each in self.objects[WEBHOOK]["webhooks"]}
        (bundle,) = told
        return base64.b64decode(bundle)

    def tokens(self) -> list[str]:
        return self.stored("tokens").decode().split()

    def asked_with(self) -> str:
        """Return the token of the path that each webhook asks at."""
        told = {e["clientConfig"]["service"]["path"] for e in self.objects[WEBHOOK]["webhooks"]}
        (path,) = told
        prefix, _, token = path.rpartition("/")
        assert prefix == PATH
        return str(token)

    def known(self) -> list[Any]:
        """Return what the gate has added to each webhook."""
        return [each.get("matchConditions") for each in self.objects[WEBHOOK]["webhooks"]]


def keeper(server: Server, pods: Callable[[], Iterable[str]] | None = None) -> Keeper:
    return Keeper(server, secret_path=SECRET, webhook="stillwater-gate", hosts=HOSTS, pods=pods)


def test_a_certificate_is_due_a_month_before_its_end_and_for_another_name() -> None:
    made = issue(HOSTS, NOW).certificate
    last = NOW + VALID - RENEWED_BEFORE
    assert not is_due(made, HOSTS, last - dt.timedelta(hours=1))
    assert is_due(made, HOSTS, last)
    assert is_due(made, ["another.svc"], NOW)
    assert is_due(b"", HOSTS, NOW)


def test_what_is_renewed_is_trusted_first_and_shown_next() -> None:
    server = Server()
    held = keeper(server)
    context = held.context(NOW)
    first = server.stored("tls.crt")
    later = NOW + VALID - RENEWED_BEFORE
    shown: list[str] = []
    held._show = lambda _, issued: shown.append(issued.certificate.decode())
    held.refresh(context, later)
    renewed = server.stored("tls.crt")
    assert renewed != first
    assert len(x509.load_pem_x509_certificates(server.trusted())) == 2
    assert shown == []
    held.refresh(context, later)
    assert shown == [renewed.decode()]


def test_two_replicas_that_renew_at_once_show_the_same() -> None:
    server = Server()
    other = keeper(server)

    def meanwhile() -> None:
        server.before_merge = lambda: None
        other.context(NOW)

    server.before_merge = meanwhile
    assert isinstance(keeper(server).context(NOW), ssl.SSLContext)
    trusted = x509.load_pem_x509_certificates(server.trusted())[0]
    stored = x509.load_pem_x509_certificate(server.stored("tls.crt"))
    stored.verify_directly_issued_by(trusted)


def test_the_api_server_asks_at_a_path_that_is_told_to_it_alone() -> None:
    server = Server()
    held = keeper(server)
    held.context(NOW)
    token = server.asked_with()
    # The API server takes no other letters in a path.
    assert re.fullmatch("[0-9a-f]{48}", token)
    assert held.admits(token)
    assert not any(held.admits(other) for other in ("", token[:-1], token + "x", "é" + token))


def test_each_replica_knows_a_path_before_the_api_server_asks_there() -> None:
    server = Server()
    held, beside = keeper(server), keeper(server)
    context = held.context(NOW)
    beside.context(NOW)
    first = server.asked_with()
    seen = {first}
    for turn in range(1, 4):
        before = server.asked_with()
        held.refresh(context, NOW + turn * VALID)
        # The other replica has not looked at the Secret since.
        assert beside.admits(server.asked_with())
        assert held.admits(before)
        beside.refresh(context, NOW + turn * VALID)
        seen.add(server.asked_with())
    assert len(seen) == 4
    assert not held.admits(first)


def test_a_certificate_of_before_the_tokens_is_replaced_with_them() -> None:
    server = Server()
    keeper(server).context(NOW)
    del server.objects[SECRET]["data"]["tokens"]
    held = keeper(server)
    held.refresh(held.context(NOW), NOW)
    assert held.admits(server.asked_with())
    assert len(server.tokens()) == 3


def test_a_secret_that_is_missing_is_said() -> None:
    server = Server()
    del server.objects[SECRET]
    with pytest.raises(StillwaterError, match="A Secret is missing"):
        keeper(server).context(NOW)


def named(*pools: str) -> list[Any]:
    expression = f"request.name.matches('^({'|'.join(pools)})-[0-9]+$')"
    return [[{"name": KNOWN, "expression": expression}], None]


def test_of_a_kafka_that_exists_the_pools_that_there_are_are_asked_about_and_no_more() -> None:
    server, pods = Server(), ["orders-a-0", "orders-a-1"]
    held = keeper(server, lambda: pods)
    context = held.context(NOW)
    assert server.known() == named("orders-a")
    pods.append("orders-b-2")
    held.refresh(context, NOW + NAMED_EVERY / 2)
    assert server.known() == named("orders-a")
    held.refresh(context, NOW + NAMED_EVERY)
    assert server.known() == named("orders-a", "orders-b")
    assert server.trusted()


def test_where_the_pools_cannot_be_read_what_was_known_is_kept() -> None:
    server = Server()

    def unread() -> list[str]:
        raise StillwaterError("The Kubernetes API answered 403.")

    keeper(server, unread).context(NOW)
    assert server.known() == [None, None]  # nothing is known: every name that fits is asked about
    keeper(server, lambda: ["orders-a-0"]).context(NOW)
    for nothing in (unread, list):
        later = keeper(server, nothing)
        context = later.context(NOW)
        later.refresh(context, NOW + VALID)  # a renewed certificate writes the webhook
        assert server.known() == named("orders-a")


def test_a_webhook_that_names_its_pools_already_is_left_as_it_is() -> None:
    server = Server()
    keeper(server).context(NOW)
    assert server.known() == [None, None]
