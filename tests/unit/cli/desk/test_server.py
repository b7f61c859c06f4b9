"""cli.desk.server: who is refused, and what the one with the token may ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from cli.desk.reading import DeskCluster, DeskReading, DeskSource, LastAnswer, LedgerSeen
from cli.desk.server import HEADERS, PAGES, TOKEN_HEADER, WISHES, DeskWatch, application, fulfil
from core.ground.errors import Conflict, InvalidInput, StillwaterError
from tests.every_case import every_case

PORT = 4321
TOKEN = "a" * 43
OURS = {"Host": f"127.0.0.1:{PORT}", TOKEN_HEADER: TOKEN}
CLUSTER = DeskCluster("prod", "prod-orders", "us-east-1", 14_400.0)


@dataclass
class Desk:
    """The application, with what it was asked to do; no socket."""

    refusal: Exception | None = None
    wished: list[tuple[str, object]] = field(default_factory=list)
    asked: list[DeskSource] = field(default_factory=list)

    def fulfil(self, name: str, said: object) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.wished.append((name, said))
        return "Done."

    def ask(self, source: DeskSource) -> LastAnswer:
        self.asked.append(source)
        return (
            LastAnswer(LedgerSeen(), 5.0)
            if source is DeskSource.LEDGER
            else LastAnswer(failed="no")
        )

    def get(self, path: str, headers: Mapping[str, str] = OURS) -> tuple[int, dict[str, str], str]:
        return self.request("GET", path, headers)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] = OURS, body: object = None
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body; a stream is left when every source was asked."""
        return asyncio.run(self._request(method, path, headers, json.dumps(body).encode()))

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], str]:
        app = application(
            DeskWatch(DeskReading(CLUSTER), self.ask, lambda: 5.0), self.fulfil, TOKEN, PORT
        )
        told: list[Mapping[str, Any]] = []
        gone = asyncio.Event()
        bodies = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if bodies:
                return bodies.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            told.append(message)
            if set(self.asked) == set(DeskSource):
                gone.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
        await app(scope, receive, send)
        start = told[0]
        said = {k.decode(): v.decode() for k, v in start["headers"]}
        return start["status"], said, b"".join(m.get("body", b"") for m in told).decode()


@every_case(
    ("headers", "status"),
    [
        ({TOKEN_HEADER: ""}, 401),
        ({TOKEN_HEADER: "b" * 43}, 401),
        ({"Host": f"rebound.example:{PORT}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=["no token", "wrong token", "another name", "another port", "another site", "no site"],
)
@every_case(("method", "path"), [("GET", "/events"), ("POST", "/wishes/resume")])
def test_who_is_not_ours_sees_and_does_nothing(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    desk = Desk()
    answered, _, body = desk.request(method, path, {**OURS, **headers}, {})
    assert answered == status
    assert set(json.loads(body)) == {"refused"}
    assert TOKEN not in body
    assert (desk.wished, desk.asked) == ([], [])


@every_case("path", list(PAGES))
def test_the_page_is_open_says_nothing_and_may_load_only_its_own(path: str) -> None:
    status, headers, body = Desk().get(path, {"Host": f"localhost:{PORT}"})
    assert status == 200
    assert {k.lower(): v for k, v in HEADERS.items()}.items() <= headers.items()
    assert "https://" not in body
    assert CLUSTER.name not in body


def test_a_wish_is_no_get_and_a_page_no_post() -> None:
    desk = Desk()
    assert desk.get("/wishes/resume")[0] == 405
    assert desk.request("POST", "/", OURS)[0] == 405
    assert desk.wished == []


def test_a_wish_is_done_and_the_ledger_read_anew() -> None:
    desk = Desk()
    status, _, body = desk.request("POST", "/wishes/hold", OURS, {"instance": "i-0a"})
    assert (status, json.loads(body)) == (200, {"said": "Done."})
    assert desk.wished == [("hold", {"instance": "i-0a"})]
    assert desk.asked == [DeskSource.LEDGER]


@pytest.mark.parametrize(
    ("refusal", "status"),
    [(InvalidInput(["No."]), 409), (Conflict("No."), 409), (StillwaterError("No."), 502)],
)
def test_what_is_refused_is_a_sentence(refusal: Exception, status: int) -> None:
    answered, _, body = Desk(refusal).request("POST", "/wishes/resume", OURS, {})
    assert (answered, json.loads(body)) == (status, {"refused": "No."})


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/wishes/obey", {}, 404), ("/wishes/hold", "x" * 9000, 400)],
    ids=["unknown", "too long"],
)
def test_an_unknown_or_too_long_wish_is_refused(path: str, body: object, status: int) -> None:
    desk = Desk()
    assert desk.request("POST", path, OURS, body)[0] == status
    assert desk.wished == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hold", []),
        ("hold", {"instance": "i-0a"}),
        ("hold", {"instance": "i-0a", "until": 5}),
        ("resume", {"more": "x"}),
        ("pause", {"because": "x" * 501, "until": ""}),
    ],
)
def test_a_wish_of_another_shape_is_refused_before_any_call(name: str, said: object) -> None:
    with pytest.raises(InvalidInput):
        fulfil(None, name, said)  # type: ignore[arg-type]
    assert name in WISHES


def test_a_stream_begins_at_once_and_tells_what_was_read() -> None:
    desk = Desk()
    status, headers, body = desk.get("/events")
    events = [json.loads(e.removeprefix("data: ")) for e in body.split("\n\n") if e]
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert events[0]["verdict"]["tone"] == "unknown"
    assert set(desk.asked) == set(DeskSource)
