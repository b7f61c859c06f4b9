"""handlers.store.ledger: who only listens holds nobody up."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from aws_lambda_powertools.metrics import EphemeralMetrics
from botocore.exceptions import EndpointConnectionError

from core.ground.constants import (
    CALLING,
    INCIDENTS_LOST,
    INCIDENTS_OPENED,
    INCIDENTS_RETAINED,
    LEDGER_ERRORS,
)
from core.incidents.record import State
from handlers.adapters import metrics
from handlers.store.ledger import Ledger, Stories
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fake_queue import FakeQueue
from tests.unit.handlers.tables import REGION, TABLE
from tests.unit.handlers.test_ledger import incident


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    names: list[str] = []
    monkeypatch.setattr(metrics, "count", names.append)
    return names


def test_a_change_a_reader_would_see_is_queued_once(counted: list[str]) -> None:
    stories = FakeQueue()
    chronicle = Stories(stories).count_and_tell
    opened = replace(incident(), version=1)
    for written in (opened, replace(opened, version=2, ticked_at=9.0)):
        chronicle(written)
    assert [json.loads(body) for body, _ in stories.sent] == [{"incident_id": "i-0a", "attempt": 0}]
    chronicle(replace(opened, version=3, reason="Kafka cannot spare it."))
    assert len(stories.sent) == 2


def test_a_queue_that_fails_holds_nobody_up_and_is_asked_again(counted: list[str]) -> None:
    stories = FakeQueue()
    fail(stories, "send", EndpointConnectionError(endpoint_url="https://sqs"), times=1)
    chronicle = Stories(stories).count_and_tell
    chronicle(incident())
    chronicle(incident())
    assert [json.loads(body)["incident_id"] for body, _ in stories.sent] == ["i-0a"]


def test_without_slack_nothing_is_queued(counted: list[str]) -> None:
    Stories(None).count_and_tell(replace(incident(), version=1))
    assert counted == [INCIDENTS_OPENED]


def test_an_incident_is_counted_when_it_opens_and_when_it_ends_badly(counted: list[str]) -> None:
    chronicle = Stories(None).count_and_tell
    opened = replace(incident(), version=1)
    chronicle(opened)
    chronicle(replace(opened, version=2))
    chronicle(replace(opened, version=3, state=State.RETAINED))
    chronicle(replace(opened, version=3, state=State.LOST))
    chronicle(replace(opened, version=3, state=State.RELEASED))
    assert counted == [INCIDENTS_OPENED, INCIDENTS_RETAINED, INCIDENTS_LOST]


def test_a_ledger_tells_of_every_write_that_succeeded(aws: None, counted: list[str]) -> None:
    heard: list[int] = []
    ledger = Ledger(TABLE, "orders", REGION, written=lambda i: heard.append(i.version))
    written = ledger.put(incident())
    with pytest.raises(Exception, match="was changed"):
        ledger.put(incident())
    ledger.file(replace(written, state=State.RELEASED), None)
    assert heard == [1]


def test_a_refused_call_is_an_error_of_the_ledger_and_a_lost_race_is_none(
    aws: None, counted: list[str]
) -> None:
    ledger = Ledger(TABLE, "orders", REGION)
    ledger.put(incident())
    with pytest.raises(Exception, match="was changed"):
        ledger.put(incident())
    assert counted == []
    with pytest.raises(Exception, match="ResourceNotFound"):
        Ledger("no-such-table", "orders", REGION).get("i-0a")
    assert counted == [LEDGER_ERRORS]


def test_what_was_counted_is_one_line_of_embedded_metrics(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STILLWATER_SETTINGS", '{"prefix":"local-orders"}')
    # The real one is one for the whole process, whatever is asked for.
    monkeypatch.setattr(metrics, "Metrics", EphemeralMetrics)
    monkeypatch.setattr(metrics, "_metrics", functools.cache(metrics._metrics.__wrapped__))

    @metrics.emits_metrics
    def entry(event: object, context: object) -> str:
        metrics.count(INCIDENTS_OPENED)
        metrics.count(INCIDENTS_OPENED, 2)
        return "done"

    assert entry({}, None) == "done"
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Stillwater"
    assert directive["Dimensions"] == [["cluster"]]
    assert document["cluster"] == "local-orders"
    assert sum(document["IncidentsOpened"]) == 3
    metrics.emits_metrics(lambda *_: None)({}, None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", sorted(CALLING))
def test_what_calls_a_person_is_written_before_the_function_can_die(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "Metrics", EphemeralMetrics)
    monkeypatch.setattr(metrics, "_metrics", functools.cache(metrics._metrics.__wrapped__))
    metrics.count(name)
    assert json.loads(capsys.readouterr().out)[name] == [1]
