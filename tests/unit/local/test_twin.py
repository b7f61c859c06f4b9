"""What a twin leaves behind, however it ends: nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.ground.errors import StillwaterError
from local import place as places
from local import twin
from local.kafka import jars
from local.place import PLACE_VARIABLE, Place
from local.processes import Processes, start_time_ticks
from local.tools import build


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache whose tools are there, and claims of the test's own."""
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(places, "CLAIM", f"stillwater-test-{os.getpid()}-")
    monkeypatch.setattr(twin, "check_addresses", lambda _place: None)
    monkeypatch.setattr(build, "tool_path", lambda name: tmp_path / name)
    monkeypatch.setattr(jars, "directory", lambda: tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Place, int]]:
    """Let a twin consist of one process that sleeps; return where its place and pid appear."""
    seen: list[tuple[Place, int]] = []

    def start(processes: Processes, place: Place, *_: object) -> str:
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        seen.append((place, processes.start("sleeper", sleeper).popen.pid))
        return "the twin"

    monkeypatch.setattr(twin, "_start", start)
    monkeypatch.setattr(twin, "_start_machines", lambda _twin: None)
    return seen


def nothing_is_left(started: list[tuple[Place, int]]) -> bool:
    ((place, pid),) = started
    return start_time_ticks(pid) is None and not place.directory.exists()


def test_a_twin_that_ends_well_leaves_its_logs_where_they_were_asked_for(
    started: list[tuple[Place, int]], tmp_path: Path
) -> None:
    with twin.running(print, keep_logs=tmp_path / "logs"):
        ((place, _),) = started
        place.path("events.jsonl").write_text("{}\n")
        place.path("logs", "kubelet.log").write_text("a line\n")
    assert nothing_is_left(started)
    assert (tmp_path / "logs" / "kubelet.log").read_text() == "a line\n"
    assert (tmp_path / "logs" / "events.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_twin_that_is_interrupted_leaves_nothing(
    started: list[tuple[Place, int]], number: signal.Signals
) -> None:
    with pytest.raises(KeyboardInterrupt), twin.running(print):
        signal.raise_signal(number)
    assert nothing_is_left(started)


def test_a_twin_whose_start_fails_leaves_nothing(
    started: list[tuple[Place, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = twin._start

    def fail(*arguments: object) -> None:
        start(*arguments)  # type: ignore[arg-type]
        raise StillwaterError("The API server did not start.")

    monkeypatch.setattr(twin, "_start", fail)
    with pytest.raises(StillwaterError, match="did not start"), twin.running(print):
        pass
    assert nothing_is_left(started)


def test_a_tool_that_is_missing_ends_the_twin_before_it_starts(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Path:
        raise StillwaterError(f"{name} has not been built yet.")

    monkeypatch.setattr(build, "tool_path", missing)
    with pytest.raises(StillwaterError, match="has not been built"), twin.running(print):
        pass
    assert not [path for path in (cache / "twins").iterdir() if path.is_dir()]


def test_what_a_crashed_twin_left_is_cleared(tmp_path: Path) -> None:
    place = Place(11, tmp_path / "twin")
    place.path("volumes", "vol-1").mkdir(parents=True)
    with twin.prepared_directory(place):
        assert not place.path("volumes", "vol-1").exists()
        assert Place.load(place.directory) == place
    assert not place.directory.exists()


def test_what_this_process_starts_by_itself_ends_with_the_twin(
    started: list[tuple[Place, int]],
) -> None:
    with twin.running(print):
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        forgotten = subprocess.Popen(sleeper, start_new_session=True)
    assert forgotten.wait(10) == -signal.SIGKILL
    assert PLACE_VARIABLE not in os.environ
    assert nothing_is_left(started)


def test_logs_that_cannot_be_kept_do_not_hide_how_the_run_ended(
    started: list[tuple[Place, int]], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StillwaterError, match="lost"),
        twin.running(print, keep_logs=tmp_path / "file" / "logs"),
    ):
        raise StillwaterError("3 records were lost.")
    assert nothing_is_left(started)
