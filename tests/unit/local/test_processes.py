"""No process outlives its twin: not after a stop, not after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import StillwaterError
from local.processes import Processes, kill_recorded, record, start_time_ticks

REPOSITORY = Path(__file__).resolve().parents[3]
CRASHING_TWIN = """
import sys, time
from pathlib import Path
from local.processes import Processes

home = Path(sys.argv[1])
print(Processes(home / "pids", home / "logs").start("sleeper", sys.argv[2:]).popen.pid, flush=True)
time.sleep(600)
"""
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def wait_until_gone(pid: int, within_seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        if start_time_ticks(pid) is None:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path / "pids", tmp_path / "logs")


def test_closing_stops_every_child(processes: Processes) -> None:
    pids = [processes.start(name, SLEEPER).popen.pid for name in ("a", "b")]
    processes.close()
    assert all(start_time_ticks(pid) is None for pid in pids)
    assert not list(processes.pids.iterdir())


def test_a_child_that_ends_too_early_is_reported_with_its_last_lines(
    processes: Processes,
) -> None:
    child = processes.start("broken", [sys.executable, "-c", "print('no such disk'); exit(3)"])
    with pytest.raises(StillwaterError, match=r"(?s)exit code 3 before it answers.*no such disk"):
        processes.wait_until(child, lambda: False, within_seconds=20, what="it answers")
    processes.close()


def test_a_killed_twin_leaves_no_process(tmp_path: Path) -> None:
    twin = subprocess.Popen(
        [
            sys.executable,
            "-c",
            CRASHING_TWIN,
            str(tmp_path),
            *SLEEPER,
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert twin.stdout is not None
    child = int(twin.stdout.readline())
    os.kill(twin.pid, signal.SIGKILL)
    twin.wait()
    twin.stdout.close()
    assert wait_until_gone(child)


def test_a_recorded_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(SLEEPER, start_new_session=True)
    record(tmp_path, bystander.pid)
    (tmp_path / str(bystander.pid)).write_text("1")
    assert kill_recorded(tmp_path) == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
