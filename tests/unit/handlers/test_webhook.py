"""handlers.webhook: who may come in, and what a report changes."""

import base64
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from core.ground.errors import Conflict
from core.incidents.record import Incident
from handlers import webhook
from handlers.webhook import LARGEST_BODY_BYTES, TOKEN_HEADER, Door
from tests.unit.core.incidents.test_record import draining, posted
from tests.unit.handlers.failing import fail, meanwhile
from tests.unit.handlers.in_memory import FakeQueue, MemoryLedger

TOKEN = "correct-horse"


@dataclass
class FakeToken:
    known: str = TOKEN
    stored: str = TOKEN
    read: int = 0

    def value(self) -> str:
        return self.known

    def renew(self) -> str:
        self.read += 1
        self.known = self.stored
        return self.known


@dataclass
class Entrance:
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    ticks: FakeQueue = field(default_factory=FakeQueue)
    token: FakeToken = field(default_factory=FakeToken)

    def call(self, request: dict[str, Any]) -> int:
        door = Door(self.ledger, self.ticks, self.token)
        return int(door.answer(request, 10.0)["statusCode"])

    @property
    def incident(self) -> Incident:
        found = self.ledger.get("i-0a")
        assert found is not None
        return found


@pytest.fixture
def entrance() -> Entrance:
    opened = Entrance()
    opened.ledger.put(draining())
    return opened


def request(
    body: str | None = None, token: str | None = TOKEN, method: str = "POST"
) -> dict[str, Any]:
    return {
        "version": "2.0",
        "headers": {} if token is None else {TOKEN_HEADER: token},
        "requestContext": {"http": {"method": method}},
        "body": posted() if body is None else body,
        "isBase64Encoded": False,
    }


def test_a_report_is_noted_once_and_the_incident_looked_at_at_once(entrance: Entrance) -> None:
    assert entrance.call(request()) == 202
    noted = entrance.incident
    assert [note.actor for note in noted.notes] == ["nth"]
    assert entrance.call(request()) == 202
    assert entrance.incident == noted
    ((tick, delay),) = entrance.ticks.sent
    assert json.loads(tick) == {"incident_id": "i-0a", "version": noted.version}
    assert delay == 0


def test_a_body_may_come_as_base64(entrance: Entrance) -> None:
    encoded = base64.b64encode(posted().encode()).decode()
    assert entrance.call({**request(encoded), "isBase64Encoded": True}) == 202
    assert len(entrance.incident.notes) == 1


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], f"{TOKEN} ", "tökén", "\ud800"])
def test_without_the_token_nothing_is_read_or_said(entrance: Entrance, token: str | None) -> None:
    before = entrance.incident
    assert entrance.call(request("{no json", token)) == 401
    assert entrance.incident == before


def test_a_token_that_was_replaced_is_read_again(entrance: Entrance) -> None:
    entrance.token.stored = "another"
    assert entrance.call(request(token="another")) == 202
    assert entrance.token.read == 1


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"body": "x" * (LARGEST_BODY_BYTES * 2)}, 413),
        ({"body": "ä" * (LARGEST_BODY_BYTES // 2 + 1)}, 413),
        ({"body": None}, 400),
        ({"body": "{"}, 400),
        ({"body": "not base64!", "isBase64Encoded": True}, 400),
        ({"body": base64.b64encode(b"\xff").decode(), "isBase64Encoded": True}, 400),
        ({"requestContext": {"http": {"method": "GET"}}}, 405),
        ({"requestContext": None}, 405),
    ],
)
def test_what_is_too_large_or_misshapen_is_turned_away(
    entrance: Entrance, changed: dict[str, Any], status: int
) -> None:
    before = entrance.incident
    assert entrance.call({**request(), **changed}) == status
    assert entrance.incident == before


def test_a_body_too_large_is_turned_away_before_its_token_is_looked_at(entrance: Entrance) -> None:
    assert entrance.call(request("x" * 200_000, token=None)) == 413
    assert entrance.token.read == 0


def test_a_report_nobody_forwarded_is_kept_and_changes_nothing(entrance: Entrance) -> None:
    before = entrance.incident
    assert entrance.call(request(posted("another-event"))) == 202
    assert entrance.incident == before
    assert len(entrance.ledger.ignored) == 1


def test_a_report_that_loses_a_race_is_noted_over_the_newer_version(entrance: Entrance) -> None:
    def overtake() -> None:
        entrance.ledger.put(replace(entrance.incident, ticked_at=5.0))

    meanwhile(entrance.ledger, "put", overtake)
    assert entrance.call(request()) == 202
    assert entrance.incident.ticked_at == 5.0
    assert len(entrance.incident.notes) == 1


def test_an_incident_that_keeps_changing_is_said_to_be_busy(entrance: Entrance) -> None:
    fail(entrance.ledger, "put", Conflict("changed"))
    assert entrance.call(request()) == 503


def test_no_log_or_answer_holds_the_token_or_the_body(
    entrance: Entrance, caplog: pytest.LogCaptureFixture
) -> None:
    secret_body = posted(NodeLabels={"password": "hunter2"})
    for token in (TOKEN, "a-wrong-guess"):
        answer = Door(entrance.ledger, entrance.ticks, entrance.token).answer(
            request(secret_body, token), 10.0
        )
        assert answer["body"] == ""
    said = " ".join(str(record.__dict__) for record in caplog.records)
    assert "no valid token" in said
    for hidden in (TOKEN, "a-wrong-guess", "hunter2"):
        assert hidden not in said


def test_the_entry_answers_through_its_door(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door(entrance.ledger, entrance.ticks, entrance.token)
    monkeypatch.setattr(webhook, "_door", lambda: door)
    assert webhook.handler(request(), None)["statusCode"] == 202
