"""Starts the twin's processes and makes sure that none outlives it.

Each child leads its own session and is recorded as a file named after its pid. A warden, started
first, holds the read end of a pipe whose write end only the twin holds: when the twin ends, however
it ends, the pipe closes and the warden kills whatever is still recorded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import StillwaterError

POLL_SECONDS = 0.05


def start_time_ticks(pid: int) -> str | None:
    """Return the kernel's start time of a process, or None when it is gone.

    A pid alone may have been given to somebody else since it was recorded.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state_and_rest = stat.rpartition(")")[2].split()
    return None if state_and_rest[0] in "ZX" else state_and_rest[19]


def record(directory: Path, pid: int) -> None:
    """Record a session leader so that the warden kills its group if the twin dies first."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / str(pid)).write_text(start_time_ticks(pid) or "")


def forget(directory: Path, pid: int) -> None:
    (directory / str(pid)).unlink(missing_ok=True)


def kill_recorded(directory: Path) -> list[int]:
    """Kill every process group still recorded; return the pids that were alive."""
    killed = []
    for entry in sorted(directory.glob("[0-9]*")):
        pid = int(entry.name)
        if start_time_ticks(pid) == entry.read_text():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
                killed.append(pid)
        entry.unlink(missing_ok=True)
    return killed


@dataclass
class Child:
    """One started process and where it writes."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def tail(self, lines: int = 15) -> str:
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


class Processes:
    """The children of one twin, stopped in the reverse order of their start."""

    def __init__(self, pids: Path, logs: Path) -> None:
        self.pids = pids
        self.logs = logs
        self._children: list[Child] = []
        self.pids.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        kill_recorded(self.pids)
        self._warden, self._lifeline = self._start_warden()

    @property
    def children(self) -> tuple[Child, ...]:
        return tuple(self._children)

    def _start_warden(self) -> tuple[subprocess.Popen[bytes], int]:
        read_end, write_end = os.pipe()
        warden = subprocess.Popen(
            [sys.executable, "-m", "local.processes", str(self.pids), str(read_end)],
            pass_fds=[read_end],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[1],
        )
        os.close(read_end)
        return warden, write_end

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Child:
        """Start a child in its own session, its output in logs/<name>.log."""
        log = self.logs / f"{name}.log"
        with log.open("ab") as sink:
            popen = subprocess.Popen(
                list(command),
                env=None if environment is None else dict(environment),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        record(self.pids, popen.pid)
        child = Child(name, popen, log)
        self._children.append(child)
        return child

    def wait_until(
        self, child: Child, ready: Callable[[], bool], *, within_seconds: float, what: str
    ) -> float:
        """Wait until a child is ready; return the seconds it took."""
        started = time.monotonic()
        while time.monotonic() - started < within_seconds:
            if not child.alive:
                raise StillwaterError(
                    f"{child.name} ended with exit code {child.popen.returncode} before {what}; "
                    f"its last lines:\n{child.tail()}"
                )
            if ready():
                return time.monotonic() - started
            time.sleep(POLL_SECONDS)
        raise StillwaterError(
            f"{child.name} did not reach: {what}, within {within_seconds:.0f} s; "
            f"its last lines:\n{child.tail()}"
        )

    def stop(self, child: Child, *, grace_seconds: float = 10.0) -> None:
        """Ask a child to end, then kill its whole group."""
        with contextlib.suppress(ProcessLookupError):
            child.popen.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.popen.wait(grace_seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.popen.pid, signal.SIGKILL)
        child.popen.wait()
        forget(self.pids, child.popen.pid)
        if child in self._children:
            self._children.remove(child)

    def close(self) -> None:
        """Stop every child, last started first, then let the warden end."""
        for child in reversed(list(self._children)):
            self.stop(child, grace_seconds=5.0)
        kill_recorded(self.pids)
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warden.wait(5)


def _watch(pids: Path, lifeline: int) -> None:
    """Block until the twin is gone, then kill what it left; twice, for what was being started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(lifeline, 1):
        pass
    for _ in range(2):
        kill_recorded(pids)
        time.sleep(0.5)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), int(sys.argv[2]))
