"""`stillwater incidents verify` on files of the archive."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cli.incidents import verify
from cli.target import Cluster
from core.ground.errors import InvalidInput, StillwaterError
from core.incidents.record import Incident, State, Transition
from handlers.incidents.broom import archive_line
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce


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
    with pytest.raises(StillwaterError, match="i-0a: The instance is retained, and nobody was"):
        verify(str(path), Console())


def test_clusters_of_one_archive_are_judged_apart(tmp_path: Path, closed: Incident) -> None:
    opened = Transition(closed.opened_at, State.OPENED, "interruption", "x")
    assert closed.transitions[0].state is opened.state
    lines = (archive_line(closed, name) for name in ("local-orders", "local-payments"))
    verify(str(written(tmp_path, *lines)), Console())


@pytest.mark.parametrize("line", ["{not json", "[]", '{"kind": "x"}', "7"])
def test_a_line_that_is_no_incident_is_a_sentence(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(InvalidInput, match="line 1, is no archived incident"):
        verify(str(path), Console())


def test_an_empty_folder_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no archived incidents"):
        verify(str(tmp_path), Console())


def test_an_environment_is_one_whatever_folder_is_called_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
