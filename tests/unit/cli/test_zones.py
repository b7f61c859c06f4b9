"""cli.zones: what people read of the zones' incidents, and freeze and thaw themselves."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws
from rich.console import Console
from typer.testing import CliRunner

from cli import zones as command
from cli.main import app
from cli.target import Cluster
from core.ground.errors import InvalidInput
from core.zones.incident import LostZone
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_MESSAGE
from handlers.store.table import Records
from tests.unit.handlers.tables import REGION, make_table
from tests.unit.infra.programs import spec


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        boto3.client("sqs", region_name=REGION).create_queue(QueueName="local-orders-ticks")
        desk = Cluster(spec(environment="local"), boto3.Session(region_name=REGION))
        monkeypatch.setattr(Cluster, "named", lambda _environment: desk)
        yield desk


def freezes(desk: Cluster) -> Freezes:
    return Freezes(Records(desk.table, REGION, client=desk.client("dynamodb")), desk.spec.name)


def said() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=200), out


def ids(desk: Cluster) -> dict[str, str]:
    answer = desk.client("ec2").describe_availability_zones()
    return {z["ZoneName"]: z["ZoneId"] for z in answer["AvailabilityZones"]}


def test_a_zone_is_frozen_by_name_or_id_until_a_moment_and_a_turn_asked_for(desk: Cluster) -> None:
    zone = min(command.pool_zones(desk.spec))
    console, out = said()
    for named in (zone, ids(desk)[zone].upper()):
        command.freeze("local", named, "4h", "clients time out", console)
    (freeze,) = freezes(desk).current(time.time())
    assert (freeze.zone, freeze.source) == (zone, "person")
    assert freeze.until is not None
    assert 0 < freeze.until - time.time() <= 4 * 3600
    assert "is frozen until" in out.getvalue()
    sqs = desk.client("sqs")
    url = sqs.get_queue_url(QueueName="local-orders-ticks")["QueueUrl"]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert {message["Body"] for message in messages} == {SHIFT_MESSAGE}


def test_a_thaw_ends_whatever_keeps_the_zone_frozen_and_names_who_did(desk: Cluster) -> None:
    zone = min(command.pool_zones(desk.spec))
    shift = LostZone(ids(desk)[zone], zone, source="autoshift", occurred_at=time.time())
    freezes(desk).note(shift, time.time())
    console, out = said()
    command.thaw("local", zone, "our nodes are fine", console)
    assert freezes(desk).current(time.time()) == ()
    (incident,) = freezes(desk).incidents()
    assert incident.owner == desk.actor
    assert incident.reason.endswith("our nodes are fine.")
    assert "is thawed: 1 ended." in out.getvalue()


def test_the_last_zone_cannot_be_frozen(desk: Cluster) -> None:
    *others, last = sorted(command.pool_zones(desk.spec))
    console, _ = said()
    for zone in others:
        command.freeze("local", zone, "1h", "", console)
    with pytest.raises(InvalidInput, match="is the last zone"):
        command.freeze("local", last, "1h", "", console)


@pytest.mark.parametrize(
    ("zone", "until", "sentence"),
    [
        ("us-east-1z", "4h", "is no zone of"),
        ("mars", "4h", "is no zone of"),
        ("us-east-1a", "tomorrow", "is no time"),
        ("us-east-1a", "30d", "is not within 7 days"),
        ("us-east-1a", "2020-01-01T00:00", "is not within 7 days"),
        ("us-east-1a", "0001-01-01T00:00+23:59", "is no"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(
    desk: Cluster, zone: str, until: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        command.freeze("local", zone, until, "", said()[0])


def test_a_thaw_of_what_is_not_frozen_says_so(desk: Cluster) -> None:
    with pytest.raises(InvalidInput, match="nothing to do"):
        command.thaw("local", min(command.pool_zones(desk.spec)), "", said()[0])


def test_zones_are_listed_without_a_word_for_it(desk: Cluster) -> None:
    zone = min(command.pool_zones(desk.spec))
    command.freeze("local", zone, "4h", "drill", said()[0])
    result = CliRunner().invoke(app, ["zones", "local", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["zone"] == zone
    assert zone in CliRunner().invoke(app, ["zones", "list", "local"]).stdout
