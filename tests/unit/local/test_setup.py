"""The set-up: nothing is built without the prerequisites, and what it says is sane in a log."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from core.ground.errors import MissingPrerequisite
from infra.spec import ROOT
from local.commands import setup
from local.kafka import jars
from local.tools import build, prerequisites
from local.tools.build import Progress
from local.tools.catalogue import TOOLS

STEPS = (
    Progress("etcd", "3.6.8", "cached"),
    Progress("pulumi", "3.220.0", "waiting"),
    Progress("pulumi", "3.220.0", "building", 150),
    Progress("pulumi", "3.220.0", "built", 150, 140.4),
)
PARTS = 1 + sum(len(tool.binaries) for tool in TOOLS)
EVERYTHING = sum(binary.estimate_seconds for tool in TOOLS for binary in tool.binaries)


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """An empty cache and builders that only say what they would do."""
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(prerequisites, "own_pulumi", lambda: None)
    monkeypatch.setattr(prerequisites, "check_prerequisites", list)
    monkeypatch.setattr(jars, "are_fetched", lambda: False)
    seen: list[str] = []

    def build_all(show: Callable[[Progress], None]) -> None:
        seen.append("tools")
        for step in STEPS:
            show(step)

    monkeypatch.setattr(build, "build_all", build_all)
    monkeypatch.setattr(jars, "fetch", lambda _show: seen.append("jars"))
    return seen


def said(*, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    setup.prepare_tools(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_missing_prerequisite_ends_the_set_up_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, fetched: list[str], tmp_path: Path
) -> None:
    problems = ["Go 1.25 or newer is needed.", "Maven 3.6 or newer is needed."]
    monkeypatch.setattr(prerequisites, "check_prerequisites", lambda: problems)
    with pytest.raises(MissingPrerequisite) as raised:
        said(terminal=False)
    assert str(raised.value).splitlines() == problems
    assert not fetched
    assert not (tmp_path / "cache").exists()


def test_in_a_log_every_step_is_a_line_and_nothing_moves() -> None:
    first, *lines, last = said(terminal=False).splitlines()
    assert first.startswith("Building the twin's tools into ")
    left = setup.rough_duration(140.4 / 150 * (EVERYTHING + jars.ESTIMATE_SECONDS - 150))
    assert lines == [
        "  cached  etcd 3.6.8: in the cache",
        " waiting  pulumi 3.220.0: another build of it is under way",
        "building  pulumi 3.220.0: about 150 s",
        f"   built  pulumi 3.220.0: took 140 s (1 of {PARTS}, about {left} left)",
    ]
    assert last.startswith("Tools ready after ")


def test_on_a_terminal_what_was_built_says_how_long_it_took() -> None:
    assert "took 140 s" in said(terminal=True)


def test_the_estimate_counts_what_the_cache_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(setup.absent()) == EVERYTHING + jars.ESTIMATE_SECONDS
    monkeypatch.setattr(jars, "are_fetched", lambda: True)
    assert sum(setup.absent()) == EVERYTHING
    TOOLS[0].home.mkdir(parents=True)
    assert sum(setup.absent()) == EVERYTHING - TOOLS[0].binaries[0].estimate_seconds


def test_a_pulumi_of_the_users_own_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "own_pulumi", lambda: "/opt/pulumi")
    (pulumi,) = (tool for tool in TOOLS if tool.name == "pulumi")
    assert sum(setup.absent()) == (
        EVERYTHING + jars.ESTIMATE_SECONDS - pulumi.binaries[0].estimate_seconds
    )


def test_a_full_cache_says_nothing_and_builds_nothing(
    monkeypatch: pytest.MonkeyPatch, fetched: list[str]
) -> None:
    monkeypatch.setattr(jars, "are_fetched", lambda: True)
    for tool in TOOLS:
        tool.home.mkdir(parents=True)
    assert said(terminal=False) == ""
    assert not fetched


@pytest.mark.parametrize(
    ("seconds", "words"), [(15, "15 s"), (54, "54 s"), (58, "1 min"), (650, "11 min")]
)
def test_a_duration_is_said_as_a_person_would(seconds: float, words: str) -> None:
    assert setup.rough_duration(seconds) == words


def test_the_twins_commands_run_where_its_wheel_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from stillwater.command import twin; twin()", "-h"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for command in ("setup", "demo", "up", "preview", "destroy"):
        assert f"\n  {command} " in done.stdout


def test_what_is_left_is_told_at_the_rate_of_what_is_done() -> None:
    pace = setup.SetupPace(parts=2, estimated_seconds=300)
    assert pace.left_seconds == 300
    slow = Progress("pulumi", "3.220.0", "built", 100, 200.0)
    assert pace.take(slow) == "1 of 2, about 7 min left"
    assert pace.take(Progress("helm", "4", "built", 200, 400.0)) == "2 of 2"
