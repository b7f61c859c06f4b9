"""cli.incidents and zones: what people read of the ledger and wish, held to the rules."""

import io
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError
from rich.console import Console
from typer.testing import CliRunner

from cli import incidents as command
from cli import zones as zones_command
from cli.incidents import RULES, breaks, verify
from cli.main import app
from cli.target import Cluster, readable_ledger
from cli.terminal import moment_of, seconds_of
from cli.watching import Pace
from core.ground.errors import Conflict, InvalidInput, StillwaterError
from core.incidents.record import Forwarding, Incident, State, Transition
from core.zones.incident import LostZone
from handlers.incidents.broom import archive_line
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_MESSAGE
from handlers.store.table import Records
from tests.explorer.scenarios import TWO
from tests.explorer.search import play
from tests.explorer.stage import explored
from tests.unit.core.slack.test_incident_thread import AT, incident
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.tables import REGION, TABLE, make_table
from tests.unit.handlers.walks import announce
from tests.unit.infra.programs import spec


@pytest.fixture
def desk(aws: None, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    make_table()
    boto3.client("sqs", region_name=REGION).create_queue(QueueName="local-orders-ticks")
    described = spec(environment="local")
    assert f"{described.prefix}-incidents" == TABLE
    desk = Cluster(described, boto3.Session(region_name=REGION))
    monkeypatch.setattr(Cluster, "named", lambda _environment: desk)
    return desk


def said(width: int = 200) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width), out


def messages(desk: Cluster) -> list[str]:
    sqs = desk.client("sqs")
    url = sqs.get_queue_url(QueueName="local-orders-ticks")["QueueUrl"]
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", [])]


def test_open_incidents_are_listed_and_closed_ones_on_demand(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    desk.ledger.put(incident(id="i-0b", instance_id="i-0b"))
    for closed, expected in ((False, {"i-0a"}), (True, {"i-0a", "i-0b"})):
        console, out = said()
        command.show_all("local", console, closed=closed, watch=False, as_json=False)
        assert {name for name in ("i-0a", "i-0b") if name in out.getvalue()} == expected


class Enough(Exception):
    """Whoever watches has seen enough."""


def test_a_watch_outlasts_an_unread_ledger(desk: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_hold_is_written_with_who_asked_and_looked_at_at_once(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    sentence = command.hold_instance(desk, "i-0a", "2h")
    held = desk.latest("i-0a")
    assert held.held_until is not None
    assert held.notes[-1].actor == desk.actor
    (tick,) = messages(desk)
    assert json.loads(tick) == {"incident_id": "i-0a", "version": held.version}
    assert "i-0a" in sentence


def test_a_release_and_an_ignore_are_wishes_too(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    command.release_instance(desk, "i-0a")
    assert desk.latest("i-0a").release.by == desk.actor
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
    assert messages(desk) == []


def test_a_wish_that_loses_a_race_is_written_over_the_newer_version(desk: Cluster) -> None:
    desk.ledger.put(incident(3))
    raced: list[int] = []

    def change(current: object) -> object:
        known = desk.latest("i-0a")
        if not raced:
            raced.append(desk.ledger.put(replace(known, ticked_at=5.0)).version)
        return replace(known, held_until=9.0)

    written = desk.wish("i-0a", change)
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
    with pytest.raises(InvalidInput, match="is not a time"):
        moment_of(text, AT)


@pytest.mark.parametrize("text", ["2026-11-20T18:00", "soon"])
def test_a_duration_is_no_moment(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--deadline .* is not a duration; write 90min"):
        seconds_of(text, "--deadline")


def test_a_ledger_out_of_reach_is_told_with_what_to_look_at() -> None:
    with (
        pytest.raises(StillwaterError, match=r"Is the environment up in this account.* no route"),
        readable_ledger(),
    ):
        raise ClientError({"Error": {"Code": "X", "Message": "no route"}}, "Query")


@pytest.fixture
def closed() -> Incident:
    """An incident that was kept, with its page."""
    station = Station()
    announce(station)
    station.now += station.policy.hold_limit_seconds + 1
    station.tick()
    found = station.incident(OLD)
    assert found.state is State.RETAINED
    return found


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "closed_on=2026-11-20" / "i-0a.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_whole_archive_is_counted_and_its_rules_named(
    tmp_path: Path, closed: Incident, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, archive_line(closed, "local-orders"))
    verify(str(tmp_path), Console(width=200))
    assert "1 incidents keep all 8 rules" in capsys.readouterr().out


def test_the_first_step_that_breaks_a_rule_is_named(tmp_path: Path, closed: Incident) -> None:
    line = json.loads(archive_line(closed, "local-orders")) | {"pages": []}
    path = written(tmp_path, json.dumps(line))
    with pytest.raises(StillwaterError, match="i-0a: The instance is retained, and no page was"):
        verify(str(path), Console())


def test_clusters_of_one_archive_are_judged_apart(tmp_path: Path, closed: Incident) -> None:
    opened = Transition(closed.opened_at, State.OPENED, "interruption", "x")
    assert closed.transitions[0].state is opened.state
    lines = (archive_line(closed, name) for name in ("local-orders", "local-payments"))
    verify(str(written(tmp_path, *lines)), Console())


@pytest.mark.parametrize("line", ["{not json", "[]", '{"kind": "x"}', "7"])
def test_a_line_that_is_no_incident_is_a_sentence(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(InvalidInput, match="line 1, is not an archived incident"):
        verify(str(path), Console())


def test_an_empty_folder_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no archived incidents"):
        verify(str(tmp_path), Console())


def test_an_environment_beats_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ledger:
        spec = SimpleNamespace(gate=None)

        def incidents(self, *, closed: bool) -> list[Incident]:
            assert closed
            return []

    monkeypatch.chdir(tmp_path)
    Path("local").mkdir()
    monkeypatch.setattr(Cluster, "named", lambda environment: {"local": Ledger()}[environment])
    verify("local", Console())
    with pytest.raises(InvalidInput, match="local holds no archived"):
        verify("./local", Console())
    with pytest.raises(InvalidInput, match="cannot be read"):
        verify("./gone", Console())


@pytest.fixture(scope="module")
def two() -> tuple[Incident, Incident]:
    with explored() as stage:
        world, _ = play(stage, TWO, {})
    first, second = world.incidents.values()
    return first, second


def test_what_the_functions_recorded_keeps_every_rule(two: tuple[Incident, Incident]) -> None:
    """Of two that leave; of every other course tests/unit/explorer says so."""
    assert breaks(two) == []


def retimed(incident: Incident, seconds: float) -> Incident:
    """Return an incident that happened earlier."""
    ready, sent = incident.replacement, incident.forwarded
    return replace(
        incident,
        opened_at=incident.opened_at - seconds,
        transitions=tuple(replace(t, at=t.at - seconds) for t in incident.transitions),
        forwarded=sent and replace(sent, first_at=sent.first_at - seconds),
        replacement=ready and replace(ready, ready_at=ready.ready_at - seconds),
        broker_back_at=(incident.broker_back_at or 0.0) - seconds,
    )


def skipped(incident: Incident) -> Incident:
    drained = {State.DRAINING, State.GATING}
    kept = tuple(t for t in incident.transitions if t.state not in drained)
    return replace(incident, transitions=kept)


def backwards(incident: Incident) -> Incident:
    *before, last = incident.transitions
    return replace(incident, transitions=(*before, replace(last, at=last.at - 4000)))


def kept_unheard(incident: Incident) -> Incident:
    *before, last = incident.transitions
    ended = Transition(last.at, State.RETAINED, "tick", "kept")
    return replace(incident, state=State.RETAINED, transitions=(*before, ended), pages=())


def drained_early(incident: Incident) -> Incident:
    at = incident.opened_at - 500
    return replace(incident, forwarded=Forwarding(first_at=at, last_at=at))


BROKEN: dict[str, tuple[str, Callable[[Incident], Incident]]] = {
    "a step is left out": ("steps", skipped),
    "it ends elsewhere": ("steps", lambda i: replace(i, state=State.LOST)),
    "time runs back": ("order", backwards),
    "before its turn": ("turn", drained_early),
    "no replacement": ("replacement", lambda i: replace(i, replacement=None)),
    "never back": ("gate", lambda i: replace(i, broker_back_at=None)),
    "nobody was called": ("paged", kept_unheard),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_names_its_rule(name: str, two: tuple[Incident, Incident]) -> None:
    rule, broken = BROKEN[name]
    found = breaks([broken(two[1])])
    assert rule in {b.rule for b in found}
    assert {b.incident_id for b in found} == {two[1].id}
    assert {b.rule for b in found} <= set(RULES)


def test_two_drains_at_a_time_name_the_second(two: tuple[Incident, Incident]) -> None:
    first, second = two
    (found,) = breaks([first, retimed(second, 300)])
    assert (found.rule, found.incident_id) == ("one out", second.id)
    assert f"is drained while node {first.node_id} of incident {first.id} is out" in str(found)


def test_members_of_one_party_may_be_out_together(two: tuple[Incident, Incident]) -> None:
    first, second = (replace(i, party="run/us-east-1a") for i in two)
    assert breaks([first, retimed(second, 300)]) == []


def test_an_instance_that_is_gone_has_no_further_round(two: tuple[Incident, Incident]) -> None:
    again = replace(retimed(two[0], -9000), id=f"{two[0].id}.2")
    assert [b.rule for b in breaks([two[0], again])] == ["rounds"]


def test_the_first_break_comes_first(two: tuple[Incident, Incident]) -> None:
    found = breaks([kept_unheard(two[0]), backwards(two[1])])
    assert [b.at for b in found] == sorted(b.at for b in found)


def test_where_ready_is_enough_the_isr_need_not_be_seen(two: tuple[Incident, Incident]) -> None:
    unseen = replace(two[0], broker_back_at=None)
    assert [b.rule for b in breaks([unseen])] == ["gate"]
    assert breaks([unseen], gate="ready") == []


def freezes(desk: Cluster) -> Freezes:
    return Freezes(Records(desk.table, REGION, client=desk.client("dynamodb")), desk.spec.name)


def ids(desk: Cluster) -> dict[str, str]:
    answer = desk.client("ec2").describe_availability_zones()
    return {z["ZoneName"]: z["ZoneId"] for z in answer["AvailabilityZones"]}


def test_a_zone_is_frozen_by_name_or_id_and_a_turn_asked_for(desk: Cluster) -> None:
    zone = min(zones_command.pool_zones(desk.spec))
    console, out = said()
    for named in (zone, ids(desk)[zone].upper()):
        zones_command.freeze("local", named, "4h", "clients time out", console)
    (freeze,) = freezes(desk).current(time.time())
    assert (freeze.zone, freeze.source) == (zone, "person")
    assert freeze.until is not None
    assert 0 < freeze.until - time.time() <= 4 * 3600
    assert "is frozen until" in out.getvalue()
    assert {*messages(desk)} == {SHIFT_MESSAGE}


def test_a_thaw_ends_whatever_keeps_the_zone_frozen_and_names_who_did(desk: Cluster) -> None:
    zone = min(zones_command.pool_zones(desk.spec))
    shift = LostZone(ids(desk)[zone], zone, source="autoshift", occurred_at=time.time())
    freezes(desk).note(shift, time.time())
    console, out = said()
    zones_command.thaw("local", zone, "our nodes are fine", console)
    assert freezes(desk).current(time.time()) == ()
    (incident,) = freezes(desk).incidents()
    assert incident.owner == desk.actor
    assert incident.reason.endswith("our nodes are fine.")
    assert "is thawed: 1 ended." in out.getvalue()


def test_the_last_zone_cannot_be_frozen(desk: Cluster) -> None:
    *others, last = sorted(zones_command.pool_zones(desk.spec))
    console, _ = said()
    for zone in others:
        zones_command.freeze("local", zone, "1h", "", console)
    with pytest.raises(InvalidInput, match="is the last zone"):
        zones_command.freeze("local", last, "1h", "", console)


@pytest.mark.parametrize(
    ("zone", "until", "sentence"),
    [
        ("us-east-1z", "4h", "is not a zone of"),
        ("mars", "4h", "is not a zone of"),
        ("us-east-1a", "tomorrow", "is not a time"),
        ("us-east-1a", "30d", "is not within 7 days"),
        ("us-east-1a", "2020-01-01T00:00", "is not within 7 days"),
        ("us-east-1a", "0001-01-01T00:00+23:59", "is no"),
    ],
)
def test_what_cannot_be_meant_is_said(desk: Cluster, zone: str, until: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        zones_command.freeze("local", zone, until, "", said()[0])


def test_a_thaw_of_what_is_not_frozen_says_so(desk: Cluster) -> None:
    with pytest.raises(InvalidInput, match="nothing to do"):
        zones_command.thaw("local", min(zones_command.pool_zones(desk.spec)), "", said()[0])


def test_zones_are_listed_without_a_word_for_it(desk: Cluster) -> None:
    zone = min(zones_command.pool_zones(desk.spec))
    zones_command.freeze("local", zone, "4h", "drill", said()[0])
    result = CliRunner().invoke(app, ["zones", "local", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["zone"] == zone
    assert zone in CliRunner().invoke(app, ["zones", "list", "local"]).stdout
