"""Rotations from the command line: following one, and what a plan and a run say."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.parsers import ResponseParserError
from rich.console import Console
from typer.testing import CliRunner

from cli import rotate as command
from cli.commands.act import rotate
from cli.rotate import Rotations, plan_page, render_plan, run_page
from cli.target import Cluster
from cli.terminal import write_page
from cli.watching import Pace
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.words import span
from core.rotation.run_record import Options, Phase, Run, RunState, open_run
from tests.every_case import every_case
from tests.unit.core.availability.clusters import turn_of
from tests.unit.handlers.tables import REGION
from tests.unit.infra.programs import spec

STARTED = 1_795_168_800.0


class Ledger(Rotations):
    """The runs of a cluster as a test says: one reading after the other."""

    def __init__(self, *readings: Run | Exception | None) -> None:
        super().__init__(Cluster(spec(environment="local"), boto3.Session(region_name=REGION)))
        object.__setattr__(self, "_readings", list(readings))

    def run(self) -> Run | None:
        readings: list[Run | Exception | None] = self._readings
        found = readings.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def a_run() -> Run:
    return open_run([turn_of(10), turn_of(20)], Options(), "ada", STARTED)


def moved(run: Run, node_id: int, phase: Phase, state: RunState = RunState.RUNNING) -> Run:
    turn = replace(run.turn_of(node_id), phase=phase, began_at=STARTED)
    return replace(run.replace_turn(turn), state=state)


def clock(at: float) -> tuple[Pace, list[float]]:
    """Return a pace whose clock goes on by as much as is waited, and what was."""
    passed: list[float] = []
    return Pace(seconds=2.0, now=lambda: at + sum(passed), pause=passed.append), passed


def page() -> tuple[Console, Callable[[], str]]:
    out = io.StringIO()
    return Console(file=out, width=160, force_terminal=True), out.getvalue


def test_a_watch_follows_a_run_until_it_is_done() -> None:
    run = a_run()
    leaving = moved(run, 10, Phase.LEAVING)
    done = moved(moved(run, 10, Phase.DONE), 20, Phase.DONE, RunState.DONE)
    console, said = page()
    pace, passed = clock(STARTED + 60)
    command.watch_run(Ledger(run, leaving, replace(done, ended_at=STARTED + 90)), console, pace)
    assert passed == [2.0, 2.0]
    pages = [
        said().index(f"{words}, ") for words in ("running, 0 of 2 nodes", "done, 2 of 2 nodes")
    ]
    assert pages == sorted(pages)
    # Times go on with the clock, and stop with the run.
    assert all(f"nodes, {span(seconds)}" in said() for seconds in (60, 62, 90))
    assert said().rindex("\x1b[?25h") > said().rindex("\x1b[?25l")


def test_a_reading_that_fails_is_said_and_no_end() -> None:
    lost = EndpointConnectionError(endpoint_url="https://dynamodb")
    odd = ResponseParserError("invalid XML received: b'<html>'")
    console, said = page()
    pace, passed = clock(STARTED)
    paused = replace(a_run(), state=RunState.PAUSED)
    command.watch_run(Ledger(a_run(), lost, odd, paused), console, pace)
    assert "Could not connect to the endpoint URL" in said()
    assert "invalid XML received" in said()
    assert len(passed) == 3


def test_a_run_that_stops_ends_the_watch_with_its_reason() -> None:
    stopped = replace(a_run(), state=RunState.STOPPED, reason="Node 10 is not back.")
    with pytest.raises(StillwaterError, match="The run stopped: Node 10 is not back"):
        command.watch_run(Ledger(stopped), page()[0], clock(STARTED)[0])


def test_a_run_that_nobody_has_started_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rotations, "named", lambda _: Ledger(None))
    console, said = page()
    command.show("prod", console, watch=False, as_json=True)
    assert json.loads(said()) is None


@dataclass
class Answering:
    """λ rotate, as it answers whatever it is asked."""

    payload: bytes

    def client(self, service: str, **_settings: object) -> Answering:
        assert service == "lambda"
        return self

    def invoke(self, **_asked: object) -> dict[str, object]:
        return {"Payload": io.BytesIO(self.payload)}


class Adas(Cluster):
    """A desk that asks nobody who sits at it."""

    @property
    def actor(self) -> str:
        return "ada"


def asked(payload: object, command: str = "plan") -> Mapping[str, object]:
    written = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    desk = Adas(spec(environment="local"), Answering(written))
    return Rotations(desk).ask(command)


NODE: dict[str, object] = {
    "node_id": 10,
    "role": "broker",
    "zone": "us-east-1a",
    "instance_id": "i-0a",
    "why": "by hand",
    "seconds": 330.0,
    "resync_bytes": None,
    "batch": 1,
    "objections": [],
}
PLAN: dict[str, object] = {
    "nodes": [NODE],
    "seconds": 1.0,
    "notes": [],
    "too_long": [],
    "unavailable": [],
}
ODD: dict[str, object] = {
    "no JSON": b"<html>",
    "nothing": None,
    "a list": [],
    "no word": {"plan": PLAN},
    "no plan": {"said": "So."},
    "a plan that is none": {"said": "So.", "plan": []},
    **{f"without {key}": {"said": "So.", "plan": {**PLAN, key: None}} for key in PLAN},
    **{
        f"a node without {key}": {
            "said": "So.",
            "plan": {**PLAN, "nodes": [{k: v for k, v in NODE.items() if k != key}]},
        }
        for key in NODE
    },
    "a node that is none": {"said": "So.", "plan": {**PLAN, "nodes": [10]}},
}


@every_case("payload", ODD.values(), ids=ODD.keys())
def test_an_answer_of_another_release_is_one_sentence(payload: object) -> None:
    with pytest.raises(StillwaterError, match="in a form that this release cannot read"):
        asked(payload)


def test_an_answer_that_is_whole_is_taken_and_a_problem_is_said() -> None:
    assert asked({"said": "So.", "plan": PLAN})["said"] == "So."
    assert asked({"said": "Paused."}, "pause")["said"] == "Paused."
    with pytest.raises(InvalidInput, match="Node 10 is gone"):
        asked({"problems": ["Node 10 is gone."]})


def test_a_plan_numbers_those_that_go_together_once() -> None:
    batches = [(10, 1), (11, 1), (20, 2)]
    document = PLAN | {
        "nodes": [{**NODE, "node_id": id_, "batch": batch} for id_, batch in batches],
        "seconds": 660.0,
        "interval_seconds": [600.0, 720.0],
        "notes": ["Replication at 38.2 MB/s was measured in rotation-1, by 1 broker."],
    }
    console, said = page()
    console.print(render_plan(document))
    rows = {
        f"broker {id_}": line
        for id_, _ in batches
        for line in said().splitlines()
        if f"broker {id_}" in line
    }
    assert ["1" in rows["broker 10"][:6], "1" in rows["broker 11"][:6]] == [True, False]
    assert "2" in rows["broker 20"][:6]
    assert "measured in rotation-1" in said()
    assert "About 11 min altogether, between 10 min and 12 min by what nodes took" in said()


def test_a_plan_names_what_fits_into_no_maintenance_window() -> None:
    sentence = "Broker 10 is expected to take 3 h, and no maintenance window stays open as long."
    console, said = page()
    console.print(render_plan({**PLAN, "nodes": [], "too_long": [sentence]}))
    assert sentence in said()
    assert "needs --any-time" in said()


@pytest.mark.parametrize(("given", "asked"), [([], None), (["--at-once", "3"], 3)])
def test_a_resume_leaves_how_many_go_together_unless_it_is_told(
    monkeypatch: pytest.MonkeyPatch, given: list[str], asked: int | None
) -> None:
    heard: list[dict[str, object]] = []

    class Asked(Ledger):
        def ask(self, command: str, **said: object) -> dict[str, object]:
            heard.append({"command": command, **said})
            return {"said": "ada resumes the run."}

    monkeypatch.setattr(command.Rotations, "named", lambda _environment: Asked())
    result = CliRunner().invoke(rotate, ["resume", "local", *given])
    assert result.exit_code == 0, result.output
    assert [(one["command"], one["at_once"]) for one in heard] == [("resume", asked)]


BAR = re.compile(r'class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%"')


def bars(page: str) -> list[tuple[str, float, float]]:
    return [(kind, float(left), float(wide)) for kind, left, wide in BAR.findall(page)]


def plan_of(*batches: int) -> dict[str, object]:
    nodes = [
        {"node_id": 10 + n, "role": "broker", "zone": "us-east-1<a>", "seconds": 280.0, "batch": b}
        for n, b in enumerate(batches)
    ]
    return {
        "nodes": nodes,
        "seconds": 650.0,
        "interval_seconds": [600.0, 720.0],
        "notes": ["With --at-once zone & more."],
    }


def test_a_plan_shows_parties_one_after_another_and_who_stops_later_in_one() -> None:
    page = plan_page(plan_of(1, 1, 2))
    assert bars(page) == [
        ("takes", 0.0, pytest.approx(100 * 280 / 650, abs=0.01)),
        ("takes", 0.0, pytest.approx(100 * 370 / 650, abs=0.01)),
        ("takes", pytest.approx(100 * 370 / 650, abs=0.01), pytest.approx(43.08, abs=0.01)),
    ]
    assert "us-east-1&lt;a&gt;" in page
    assert "With --at-once zone &amp; more." in page
    assert "Between 10 min and 12 min" in page


def test_a_run_shows_where_the_time_of_each_node_went() -> None:
    run = open_run([turn_of(10), turn_of(20), turn_of(30)], Options(), "ada", 1000.0)
    times = {"machine_at": 1020.0, "released_at": 1060.0, "back_since": 1080.0, "done_at": 1100.0}
    first = replace(run.turn_of(10), phase=Phase.DONE, began_at=1000.0, **times)
    # Its machine was ready before its turn.
    second = replace(run.turn_of(20), phase=Phase.LEAVING, began_at=1100.0, machine_at=1090.0)
    page = run_page(run.replace_turn(first).replace_turn(second), 1200.0)
    assert bars(page) == [
        ("machine", 0.0, 10.0),
        ("leaving", 10.0, 20.0),
        ("returning", 30.0, 10.0),
        ("holding", 40.0, 10.0),
        ("leaving", 50.0, 50.0),
    ]
    assert "<small>waits</small>" in page


def test_nobody_watches_for_less_than_no_time() -> None:
    assert CliRunner().invoke(rotate, ["plan", "prod", "--sample", "-1"]).exit_code == 2


def test_an_empty_plan_is_a_page_too() -> None:
    assert bars(plan_page({**plan_of(), "interval_seconds": None})) == []


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    # A name of a file that is no UTF-8 is one all the same.
    write_page(tmp_path / "plan.html", "caf\udce9")
    assert (tmp_path / "plan.html").read_text() == "caf?"
    with pytest.raises(StillwaterError, match="cannot be written: No such file or directory"):
        write_page(tmp_path / "nowhere" / "plan.html", "")
