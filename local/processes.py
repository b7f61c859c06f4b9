"""Starts the twin's processes, makes sure that none outlives it, and ends what signals end.

Each child leads its own session, is recorded as a file named after its pid, and carries the twin's
directory in its environment, from where its own children inherit it. A warden, started first, holds
the read end of a pipe whose write end only the twin holds: when the twin ends, however it ends, the
pipe closes and the warden kills whatever is still recorded or carries the mark. The mark finds what
no record can: a child whose parent was killed between starting and recording it.

A block ends on Ctrl-C, SIGTERM or SIGHUP, with time to clean up, but not for ever. The first signal
becomes a KeyboardInterrupt. Those after it are ignored, as is any once the clean-up has begun; if
the block has not ended some seconds later, because something swallowed the KeyboardInterrupt or
hangs, the process exits and its warden cleans up instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from core.ground.errors import StillwaterError
from local.place import PLACE_VARIABLE

# Where `python -m` finds the twin's programs.
REPOSITORY = Path(__file__).resolve().parents[1]
GIVES_WAY = "STILLWATER_GIVES_WAY"
POLL_SECONDS = 0.05
CLOSE_SECONDS = 2.0
# How long to look for what is left; only a process stuck in the kernel takes that long to die.
CLEAR_SECONDS = 10.0
LOOK_SECONDS = 0.05
T = TypeVar("T")


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


def give_way(pid: int, niceness: int | None = None) -> bool:
    """Let others go first where a session wants the processor; say whether it does so now.

    Here functions and all nodes share one machine's processors. On machines of their own neither a
    function nor a broker that starts takes anything from the brokers that serve: a bench of what
    clients see sets STILLWATER_GIVES_WAY to a niceness of 5 or so. Without it nobody gives way.
    Linux weighs sessions (autogroup); a process's own niceness counts within its session alone.
    """
    if niceness is None:
        niceness = int(os.environ.get(GIVES_WAY, "0"))
        if niceness == 0:
            return False
    with contextlib.suppress(OSError):
        Path("/proc", str(pid), "autogroup").write_text(str(niceness))
        return niceness > 0
    return False


def forget(directory: Path, pid: int) -> None:
    (directory / str(pid)).unlink(missing_ok=True)


def kill_group(leader: int) -> bool:
    """Kill a session leader's process group; say whether there was one of ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
        return True
    return False


def kill_recorded(directory: Path) -> list[int]:
    """Kill every process group still recorded; return the pids that were alive."""
    killed = []
    for entry in sorted(directory.glob("[0-9]*")):
        pid = int(entry.name)
        # Whoever recorded it may forget it at this moment.
        with contextlib.suppress(FileNotFoundError):
            if start_time_ticks(pid) == entry.read_text() and kill_group(pid):
                killed.append(pid)
        entry.unlink(missing_ok=True)
    return killed


def kill_marked(directory: Path) -> list[int]:
    """Kill every process that carries a twin's directory in its environment; return their pids."""
    mark = f"{PLACE_VARIABLE}={directory}".encode()
    killed = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        # Gone by now, or another user's: neither is ours to kill.
        with contextlib.suppress(OSError):
            if pid != os.getpid() and mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
    return killed


def kill_left(pids: Path) -> None:
    """Kill what a twin left until two looks in a row find nothing more."""
    until = time.monotonic() + CLEAR_SECONDS
    quiet_looks = 0
    while quiet_looks < 2 and time.monotonic() < until:
        found = kill_recorded(pids) + kill_marked(pids.parent)
        quiet_looks = 0 if found else quiet_looks + 1
        time.sleep(LOOK_SECONDS)


def until(look: Callable[[], T], within_seconds: float, every_seconds: float = POLL_SECONDS) -> T:
    """Return the first true answer, or the last one where none came in time."""
    deadline = time.monotonic() + within_seconds
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(every_seconds)
    return seen


def listens(host: str, port: int, within_seconds: float = 1.0) -> bool:
    """Say whether somebody takes connections at an address."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), within_seconds):
        return True
    return False


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
    """The children of one twin; none of them outlives it.

    They are recorded in `pids`, a folder of the twin's directory. The warden keeps the files `held`
    open until it is done, and removes the directory `cleared` last.
    """

    def __init__(
        self, pids: Path, logs: Path, *, held: Sequence[int] = (), cleared: Path | None = None
    ) -> None:
        self.pids = pids.absolute()
        self.logs = logs.absolute()
        self._children: list[Child] = []
        self.pids.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        kill_recorded(self.pids)
        self._warden, self._lifeline = self._start_warden(held, cleared)

    @property
    def children(self) -> tuple[Child, ...]:
        return tuple(self._children)

    def _start_warden(
        self, held: Sequence[int], cleared: Path | None
    ) -> tuple[subprocess.Popen[bytes], int]:
        read_end, write_end = os.pipe()
        warden = subprocess.Popen(
            [
                *(sys.executable, "-m", "local.processes", str(read_end), str(self.pids)),
                *([str(cleared.absolute())] if cleared else []),
            ],
            pass_fds=[read_end, *held],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            # Without the mark: a warden must not kill itself.
            env={name: value for name, value in os.environ.items() if name != PLACE_VARIABLE},
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
        """Start a child in its own session, marked, its output in logs/<name>.log."""
        marked = {
            **(os.environ if environment is None else environment),
            PLACE_VARIABLE: str(self.pids.parent),
        }
        log = self.logs / f"{name}.log"
        with log.open("ab") as sink:
            popen = subprocess.Popen(
                list(command),
                env=marked,
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
        kill_group(child.popen.pid)
        child.popen.wait()
        forget(self.pids, child.popen.pid)
        if child in self._children:
            self._children.remove(child)

    def stop_all(self) -> None:
        """Stop every child at once, and kill what is left of them."""
        for child in reversed(self._children):
            with contextlib.suppress(ProcessLookupError):
                child.popen.terminate()
        until = time.monotonic() + CLOSE_SECONDS
        for child in reversed(self._children):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.popen.wait(max(0.0, until - time.monotonic()))
        kill_left(self.pids)
        for child in self._children:
            child.popen.wait(CLEAR_SECONDS)
        self._children.clear()

    def close(self) -> None:
        """Stop every child, then let the warden end; it finds nothing more to kill."""
        self.stop_all()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warden.wait(CLEAR_SECONDS)


def _watch(lifeline: int, pids: Path, cleared: Path | None) -> None:
    """Block until the twin is gone, then kill what it left and remove its directory."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    while os.read(lifeline, 1):
        pass
    kill_left(pids)
    if cleared is not None:
        shutil.rmtree(cleared, ignore_errors=True)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT_SECONDS = 15.0


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


class Stopping:
    """The block that signals end; on a thread other than the main one it changes nothing."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._limit_seconds = limit_seconds
        self._previous: dict[int, Any] = {}
        self._asked: int | None = None
        self._holding = False
        self._over = threading.Event()
        self._ask = threading.Event()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Started now, since a signal handler must not start threads.
            threading.Thread(target=self._insist, daemon=True, name="stopping").start()
            for number in SIGNALS:
                # Ignored by whoever started us, as nohup does, a signal stays ignored.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._ask.set()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._asked is not None and not isinstance(error, KeyboardInterrupt):
            # It came during the clean-up, or somebody made another error of it.
            signal.raise_signal(self._asked)

    def hold(self) -> None:
        """From here on, let signals wait until the block has ended."""
        self._holding = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._asked is not None:
            return
        self._asked = number
        self._ask.set()
        if self._holding:
            return
        previous = self._previous[number]
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt(signal.Signals(number).name)

    def _insist(self) -> None:
        self._ask.wait()
        if self._over.wait(self._limit_seconds) or self._asked is None:
            return
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("Stopped while something hung; the warden ends the rest.\n")
            sys.stderr.flush()
        os._exit(128 + self._asked)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None)
