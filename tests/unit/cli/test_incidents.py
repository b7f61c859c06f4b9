"""cli.incidents: what people read of the ledger, and what they may wish."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from rich.console import Console

from cli import incidents as command
from cli.target import Cluster, readable_ledger
from cli.terminal import moment_of, seconds_of
from cli.watching import Pace
from core.ground.errors import Conflict, InvalidInput, StillwaterError
from core.incidents.record import Incident, State
from tests.unit.core.slack.test_incident_thread import AT, incident
from tests.unit.handlers.tables import REGION, TABLE, make_table
from tests.unit.infra.programs import spec


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        boto3.client("sqs", region_name=REGION).create_queue(QueueName="local-orders-ticks")
        described = spec(environment="local")
        assert f"{described.prefix}-incidents" == TABLE
        desk = Cluster(described, boto3.Session(region_name=REGION))
        monkeypatch.setattr(Cluster, "named", lambda _environment: desk)
        yield desk


def said(width: int = 200) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width), out


def ticks(desk: Cluster) -> list[dict[str, object]]:
    sqs = desk.client("sqs")
    url = sqs.get_queue_url(QueueName="local-orders-ticks")["QueueUrl"]
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


def test_open_incidents_are_listed_and_closed_ones_on_demand(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    desk.ledger.put(incident(id="i-0b", instance_id="i-0b"))
    for closed, expected in ((False, {"i-0a"}), (True, {"i-0a", "i-0b"})):
        console, out = said()
        command.show_all("local", console, closed=closed, watch=False, as_json=False)
        assert {name for name in ("i-0a", "i-0b") if name in out.getvalue()} == expected


class Enough(Exception):
    """Whoever watches has seen enough."""


def test_a_watch_shows_what_opens_and_outlasts_a_ledger_that_cannot_be_read(
    desk: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=True)
    naps: list[float] = []

    def pause(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 1:
            desk.ledger.put(incident(id="i-0b", instance_id="i-0b"))
        elif len(naps) == 2:
            monkeypatch.setattr(Cluster, "incidents", refused)
        else:
            raise Enough

    def refused(_desk: Cluster, *, closed: bool) -> list[Incident]:
        raise StillwaterError("The ledger says nothing.")

    pace = Pace(seconds=7.0, now=lambda: AT, pause=pause)
    with pytest.raises(Enough):
        command.show_all("local", console, closed=True, watch=True, as_json=False, pace=pace)
    shown = [out.getvalue().index(s) for s in ("No incident.", "i-0b", "The ledger says nothing.")]
    assert shown == sorted(shown)
    assert naps == [7.0] * 3


def test_a_watch_of_what_cannot_be_read_at_all_ends_with_the_sentence(desk: Cluster) -> None:
    desk.client("dynamodb").delete_table(TableName=TABLE)
    with pytest.raises(StillwaterError, match="could not be read"):
        command.show_all("local", Console(), closed=False, watch=True, as_json=False)


def test_json_is_one_object_a_line_without_tokens(desk: Cluster) -> None:
    desk.ledger.put(incident(3, hooks={"drain": "secret-token"}, drain_event="secret-body"))
    console, out = said(40)
    command.show_all("local", console, closed=False, watch=False, as_json=True)
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["hooks"] == ["drain"]
    assert "secret" not in line
    console, out = said(40)
    command.show_one("local", json.loads(line)["instance_id"], console, as_json=True)
    assert out.getvalue().splitlines() == [line]


def test_an_incident_shows_its_whole_history(desk: Cluster) -> None:
    desk.ledger.put(incident())
    console, out = said()
    command.show_one("local", "i-0a", console)
    text = out.getvalue()
    assert text.index("A replacement is on its way.") < text.index("back in every ISR")
    assert "draining: 55 s" in text
    assert "2026-11-20 10:01:35" in text


def test_an_instance_without_incident_is_a_sentence(desk: Cluster) -> None:
    with pytest.raises(InvalidInput, match="knows no instance i-0z; `stillwater incidents local"):
        command.show_one("local", "i-0z", said()[0])


def test_of_an_instances_rounds_the_last_is_meant(desk: Cluster) -> None:
    desk.ledger.put(incident(state=State.RETAINED))
    desk.ledger.put(incident(2, id="i-0a.2"))
    assert desk.latest("i-0a").id == "i-0a.2"


def test_a_hold_is_written_with_who_asked_and_looked_at_at_once(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    sentence = command.hold_instance(desk, "i-0a", "2h")
    held = desk.latest("i-0a")
    assert held.held_until is not None
    assert held.notes[-1].actor == desk.actor
    assert ticks(desk) == [{"incident_id": "i-0a", "version": held.version}]
    assert "i-0a" in sentence


def test_a_release_and_an_ignore_are_wishes_too(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    command.release_instance(desk, "i-0a")
    release = desk.latest("i-0a").release
    assert release is not None
    assert release.by == desk.actor
    command.ignore_incident(desk, "i-0a", "a drill")
    assert "a drill" in desk.latest("i-0a").notes[-1].reason


def test_a_retained_instance_is_released_in_another_round(desk: Cluster) -> None:
    desk.ledger.put(incident(state=State.RETAINED))
    command.release_instance(desk, "i-0a")
    assert desk.latest("i-0a").id == "i-0a.2"


def test_a_wish_about_what_is_over_is_refused(desk: Cluster) -> None:
    desk.ledger.put(incident())
    with pytest.raises(Conflict, match="over"):
        command.hold_instance(desk, "i-0a", "2h")
    assert ticks(desk) == []


def test_a_wish_that_loses_a_race_is_written_over_the_newer_version(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    raced: list[int] = []

    def change(current: object) -> object:
        known = desk.latest("i-0a")
        if not raced:
            raced.append(desk.ledger.put(replace(known, ticked_at=5.0)).version)
        return replace(known, held_until=9.0)

    written = desk.wish("i-0a", change)  # type: ignore[arg-type]
    assert (written.ticked_at, written.held_until) == (5.0, 9.0)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90min", AT + 5400),
        ("+2h", AT + 7200),
        ("1d", AT + 86_400),
        ("2026-11-20T12:00", AT + 7200),
        ("2026-11-20T13:00+01:00", AT + 7200),
    ],
)
def test_a_moment_is_a_time_or_a_span(text: str, moment: float) -> None:
    assert moment_of(text, AT) == moment


@pytest.mark.parametrize("text", ["", "tomorrow", "2 weeks", "-1h"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no time"):
        moment_of(text, AT)


@pytest.mark.parametrize("text", ["2026-11-20T18:00", "soon"])
def test_a_duration_is_no_moment(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--deadline .* is no duration; write 90min"):
        seconds_of(text, "--deadline")


def test_a_ledger_out_of_reach_is_told_with_what_to_look_at() -> None:
    with (
        pytest.raises(StillwaterError, match=r"Is the environment up in this account.* no route"),
        readable_ledger(),
    ):
        raise ClientError({"Error": {"Code": "X", "Message": "no route"}}, "Query")
