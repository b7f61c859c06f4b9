"""handlers.webhook and settings: who may come in, and what a function is told at start."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from core.ground.errors import Conflict, InvalidInput
from core.incidents.record import Incident
from core.settings import codec
from core.settings.codec import kept_key, setting_text
from core.settings.functions import ApiServer, SweepSettings, late_seconds
from handlers import webhook
from handlers.store.table import read_settings
from handlers.webhook import LARGEST_BODY_BYTES, TOKEN_HEADER, Door
from tests.unit.core.incidents.test_record import draining, posted
from tests.unit.handlers.failing import fail
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


def test_a_report_is_noted_and_the_incident_looked_at_at_once(entrance: Entrance) -> None:
    assert entrance.call(request()) == 202
    (note,) = entrance.incident.notes
    assert note.actor == "nth"
    ((tick, delay),) = entrance.ticks.sent
    assert json.loads(tick) == {"incident_id": "i-0a", "version": entrance.incident.version}
    assert delay == 0


def test_the_same_report_again_changes_nothing(entrance: Entrance) -> None:
    entrance.call(request())
    before = entrance.incident
    assert entrance.call(request()) == 202
    assert entrance.incident == before
    assert len(entrance.ticks.sent) == 1


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


def test_a_report_that_loses_a_race_is_noted_over_the_newer_version(
    entrance: Entrance, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, races = entrance.ledger.put, []

    def racing(incident: Incident) -> Incident:
        if not races:
            races.append(put(replace(entrance.incident, ticked_at=5.0)))
        return put(incident)

    monkeypatch.setattr(entrance.ledger, "put", racing)
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


def test_the_entry_answers_by_its_door(entrance: Entrance, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(entrance.ledger, entrance.ticks, entrance.token)
    monkeypatch.setattr(webhook, "_door", lambda: door)
    assert webhook.handler(request(), None)["statusCode"] == 202


API = ApiServer(eks_cluster="local-orders", endpoint="https://api:6443", ca_pem="PEM")
SETTINGS = SweepSettings(
    prefix="local-orders",
    cluster="orders",
    region="us-east-1",
    ledger_table="incidents",
    ticks_queue_url="http://sqs/ticks",
    namespace="kafka",
    api=API,
    archive_bucket="archive",
    tick_interval_seconds=20,
)
DOCUMENT: dict[str, Any] = codec.document(SETTINGS)
KEPT = {"api": DOCUMENT["api"]}
SHORT = {name: value for name, value in DOCUMENT.items() if name not in KEPT}


def named(kept: dict[str, Any]) -> dict[str, str]:
    """Return the environment that names an item of this content."""
    key = kept_key("loop", json.dumps(kept))
    return {"STILLWATER_SETTINGS": json.dumps(SHORT), "STILLWATER_KEPT": key}


NAMED = named(KEPT)


class OneItem:
    """DynamoDB with one item, or none."""

    def __init__(self, kept: dict[str, Any] | None) -> None:
        self.kept = kept
        self.asked: list[Any] = []

    def get_item(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked["Key"])
        return {} if self.kept is None else {"Item": {"settings": {"S": json.dumps(self.kept)}}}


def read(environment: dict[str, str], client: Any) -> SweepSettings:
    return read_settings(SweepSettings, environment, client=client)


def test_what_is_kept_joins_the_environment() -> None:
    table = OneItem(KEPT)
    assert read(NAMED, table) == SETTINGS
    assert table.asked == [{"pk": {"S": NAMED["STILLWATER_KEPT"]}}]
    assert SETTINGS.whose.marks == ({"aws-node-termination-handler/local-orders": ()},)


def test_an_item_for_several_functions_holds_what_another_one_reads() -> None:
    both = {**KEPT, "kafka_bootstrap": ["kafka.example:9094"]}
    assert read(named(both), OneItem(both)) == SETTINGS


def test_an_item_that_somebody_else_has_written_is_refused() -> None:
    """A forged endpoint would be sent the function's token for EKS."""
    forged = {"api": {**DOCUMENT["api"], "endpoint": "https://attacker.example"}}
    with pytest.raises(InvalidInput, match="holds other settings than were written"):
        read(NAMED, OneItem(forged))
    for key in ("settings#loop-", "settings#loop-0", "settings"):
        with pytest.raises(InvalidInput, match="holds other settings"):
            read({**NAMED, "STILLWATER_KEPT": key}, OneItem(forged))


def test_the_key_of_an_earlier_release_is_half_as_long_and_holds() -> None:
    before = {**NAMED, "STILLWATER_KEPT": NAMED["STILLWATER_KEPT"][:-16]}
    assert read(before, OneItem(KEPT)) == SETTINGS


def test_what_nobody_knows_in_the_environment_is_told() -> None:
    odd = {**NAMED, "STILLWATER_SETTINGS": json.dumps({**SHORT, "kafka_bootstrap": []})}
    with pytest.raises(InvalidInput, match="kafka_bootstrap is unknown"):
        read(odd, OneItem(KEPT))


def test_what_a_person_sets_on_the_function_holds() -> None:
    mine = {**DOCUMENT, "api": {**DOCUMENT["api"], "endpoint": "https://mine"}}
    by_hand = {**NAMED, "STILLWATER_SETTINGS": json.dumps(mine)}
    assert read(by_hand, OneItem(KEPT)).api.endpoint == "https://mine"


def test_an_environment_that_names_no_item_asks_nobody() -> None:
    table = OneItem(None)
    assert read({"STILLWATER_SETTINGS": json.dumps(DOCUMENT)}, table) == SETTINGS
    assert table.asked == []


def test_an_item_that_is_gone_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"incidents has no item settings#loop-.*pulumi up"):
        read(NAMED, OneItem(None))


@pytest.mark.parametrize("text", ["", "[]", "{", '"held"'])
def test_settings_that_nobody_rendered_are_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be a JSON object; .* run `pulumi up`"):
        read({"STILLWATER_SETTINGS": text}, OneItem(None))


def test_every_problem_is_a_sentence_with_the_remedy() -> None:
    wrong = {**DOCUMENT, "tick_interval_seconds": "soon"}
    del wrong["archive_bucket"]
    with pytest.raises(InvalidInput) as raised:
        read({"STILLWATER_SETTINGS": json.dumps(wrong)}, OneItem(None))
    missing, interval = sorted(raised.value.problems)
    assert missing.startswith("STILLWATER_SETTINGS is wrong: archive_bucket is missing; ")
    assert "tick_interval_seconds is 'soon', and must be a number" in interval
    assert all(problem.endswith("run `pulumi up` on it again.") for problem in (missing, interval))


def test_a_tick_is_never_late_before_the_longest_tick_is_over() -> None:
    assert (late_seconds(20), late_seconds(2)) == (60, 45)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"prefix": 3}'])
def test_a_name_that_cannot_be_read_is_no_name(text: str) -> None:
    assert setting_text({"STILLWATER_SETTINGS": text}, "prefix") is None
