"""Processes of a twin end with it, however it ends, and so do blocks that a signal ends."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.ground.errors import StillwaterError
from local import place as places
from local import processes as local_processes
from local.place import PLACE_VARIABLE, claim_place
from local.processes import (
    CLOSE_SECONDS,
    GIVES_WAY,
    Processes,
    Stopping,
    forget,
    give_way,
    kill_recorded,
    record,
    start_time_ticks,
)

REPOSITORY = Path(__file__).resolve().parents[3]


def program(body: str) -> subprocess.CompletedProcess[str]:
    """Run a program that stops itself; its exit code and output are the test's evidence."""
    imports = "import os, signal, time\nfrom local.processes import Stopping\n"
    return subprocess.run(
        [sys.executable, "-c", imports + body],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), Stopping():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_disturb_the_clean_up() -> None:
    cleaned = False

    def run() -> None:
        nonlocal cleaned
        with Stopping() as stopping:
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                stopping.hold()
                signal.raise_signal(signal.SIGTERM)
                cleaned = True

    with pytest.raises(KeyboardInterrupt):
        run()
    assert cleaned


def test_a_signal_during_the_clean_up_is_heard_after_it() -> None:
    cleaned = False

    def run() -> None:
        nonlocal cleaned
        with Stopping() as stopping:
            stopping.hold()
            signal.raise_signal(signal.SIGINT)
            cleaned = True

    with pytest.raises(KeyboardInterrupt):
        run()
    assert cleaned


def test_an_interruption_that_somebody_swallowed_is_heard_at_the_end() -> None:
    def run() -> None:
        with Stopping(), contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run()


def test_a_block_that_hangs_after_a_signal_is_ended_from_outside() -> None:
    done = program(
        "with Stopping(limit_seconds=0.2):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(1)\n"
        "    except KeyboardInterrupt:\n"
        "        time.sleep(600)\n"
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in done.stderr


def test_a_block_that_ends_in_time_is_not_ended_from_outside() -> None:
    done = program(
        "try:\n"
        "    with Stopping(limit_seconds=0.2):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(1)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(0.5)\n"
        "    print('cleaned')\n"
    )
    assert (done.returncode, done.stdout) == (0, "cleaned\n")


def test_a_signal_that_was_ignored_from_the_start_stays_ignored() -> None:
    done = program(
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with Stopping():\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print('still here')\n"
    )
    assert (done.returncode, done.stdout) == (0, "still here\n")


def test_on_another_thread_it_changes_no_handler() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def run() -> None:
        with Stopping():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


CRASHING_TWIN = """
import sys, time
from pathlib import Path
from local.processes import Processes

home = Path(sys.argv[1])
print(Processes(home / "pids", home / "logs", held=[int(fd) for fd in sys.argv[2].split(",") if fd],
      cleared=home).start("sleeper", sys.argv[3:]).popen.pid, flush=True)
time.sleep(600)
"""
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
# Starts a child in a session of its own, as the kubelet does, and does not record it.
PARENT = """
import subprocess, sys, time
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleeper, start_new_session=True)
with open(sys.argv[1], "w") as told:
    print(child.pid, file=told)
time.sleep(600)
"""
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as told:
    print("ready", file=told)
time.sleep(600)
"""


def eventually(condition: Callable[[], bool], within_seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def written(path: Path) -> str:
    """Wait for a whole line in a file and return it."""
    assert eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


def gone(pid: int) -> bool:
    return eventually(lambda: start_time_ticks(pid) is None)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "pids", tmp_path / "logs")
    yield started
    started.close()


def crash(home: Path, *command: str, held: tuple[int, ...] = ()) -> int:
    """Let a twin start a command, kill the twin, and return the command's pid."""
    home.mkdir(parents=True, exist_ok=True)
    files = ",".join(str(file) for file in held)
    twin = subprocess.Popen(
        [sys.executable, "-c", CRASHING_TWIN, str(home), files, *command],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        pass_fds=held,
    )
    assert twin.stdout is not None
    child = int(twin.stdout.readline())
    if PARENT in command:
        written(Path(command[-1]))
    os.kill(twin.pid, signal.SIGKILL)
    twin.wait()
    twin.stdout.close()
    return child


def test_closing_waits_once_for_all_that_ignore_sigterm(
    processes: Processes, tmp_path: Path
) -> None:
    pids = []
    for name in ("a", "b", "c"):
        pids.append(
            processes.start(name, [sys.executable, "-c", STUBBORN, str(tmp_path / name)]).popen.pid
        )
        written(tmp_path / name)
    started = time.monotonic()
    processes.close()
    assert time.monotonic() - started < len(pids) * CLOSE_SECONDS
    assert all(start_time_ticks(pid) is None for pid in pids)
    assert not list(processes.pids.iterdir())
    processes.close()


def test_closing_ends_what_a_child_started_and_nobody_recorded(
    processes: Processes, tmp_path: Path
) -> None:
    processes.start("parent", [sys.executable, "-c", PARENT, str(tmp_path / "grandchild")])
    grandchild = int(written(tmp_path / "grandchild"))
    processes.close()
    assert gone(grandchild)


def test_a_child_carries_its_twins_directory_whatever_its_environment(
    processes: Processes, tmp_path: Path
) -> None:
    tell = f"import os; print(os.environ['{PLACE_VARIABLE}'], len(os.environ))"
    child = processes.start(
        "teller", [sys.executable, "-c", tell], environment={PLACE_VARIABLE: "elsewhere"}
    )
    child.popen.wait()
    assert child.tail().split()[0] == str(tmp_path)


def test_a_child_that_ends_too_early_is_reported_with_its_last_lines(processes: Processes) -> None:
    child = processes.start("broken", [sys.executable, "-c", "print('no such disk'); exit(3)"])
    with pytest.raises(StillwaterError, match=r"(?s)exit code 3 before it answers.*no such disk"):
        processes.wait_until(child, lambda: False, within_seconds=20, what="it answers")


def test_a_child_that_is_never_ready_is_reported(processes: Processes) -> None:
    child = processes.start("slow", SLEEPER)
    with pytest.raises(StillwaterError, match=r"slow did not reach: it answers, within 0 s"):
        processes.wait_until(child, lambda: False, within_seconds=0.1, what="it answers")


def test_a_killed_twin_leaves_no_process_recorded_or_not_and_no_directory(tmp_path: Path) -> None:
    told = tmp_path / "grandchild"
    child = crash(tmp_path / "twin", sys.executable, "-c", PARENT, str(told))
    assert gone(child)
    assert gone(int(written(told)))
    assert eventually(lambda: not (tmp_path / "twin").exists())


def test_a_killed_twins_number_is_free_only_when_it_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "CLAIM", f"stillwater-test-{os.getpid()}-")
    with claim_place(tmp_path) as first:
        child = crash(first.directory, *SLEEPER, held=first.held)
        number = first.number

    def free_again() -> bool:
        with claim_place(tmp_path) as claim:
            # Whoever is given the number finds nothing of the one before.
            cleared = start_time_ticks(child) is None and not first.directory.exists()
            return claim.number == number and (cleared or pytest.fail("given out too early"))

    assert eventually(free_again)


def test_a_recorded_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(SLEEPER, start_new_session=True)
    record(tmp_path, bystander.pid)
    (tmp_path / str(bystander.pid)).write_text("1")
    assert kill_recorded(tmp_path) == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_process_that_is_forgotten_meanwhile_was_no_longer_ours_to_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, 1)
    monkeypatch.setattr(local_processes, "start_time_ticks", lambda _: forget(tmp_path, 1))
    assert kill_recorded(tmp_path) == []


def test_a_process_of_another_twin_is_left_alone(processes: Processes, tmp_path: Path) -> None:
    directory = f"{tmp_path}0"  # ours is a prefix of it
    bystander = subprocess.Popen(SLEEPER, env={**os.environ, PLACE_VARIABLE: directory})
    processes.close()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def niceness(pid: int) -> str:
    return Path("/proc", str(pid), "autogroup").read_text().split()[-1]


def test_what_does_not_serve_gives_way_where_a_bench_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
        try:
            assert not give_way(child.pid)
            monkeypatch.setenv(GIVES_WAY, "5")
            weighed = give_way(child.pid)
            # A kernel without groups of sessions has no such file.
            assert weighed == Path("/proc/self/autogroup").exists()
            if weighed:
                assert niceness(child.pid) == "5"
                assert not give_way(child.pid, 0)
                assert niceness(child.pid) == "0"
        finally:
            child.kill()
