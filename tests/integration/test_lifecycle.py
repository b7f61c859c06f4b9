"""Whatever ends a demo, and whenever: no process, no port and no directory of its twin is left."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.ground.errors import Conflict
from local import place as places
from local.place import PLACE_VARIABLE, Place, cache_directory, check_addresses
from tests.integration.waiting import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).resolve().parents[2]
# Not STILLWATER_...: the twin hides those from its children.
TOKEN = "LIFECYCLE_TEST"
DEMO = ("-m", "local", "demo", "--output", "out")
# A twin without a cluster on it, which lives until its input ends.
TWIN = """
import sys
from local import twin
with twin.running(print) as running:
    print(f"number {running.place.number}.", flush=True)
    sys.stdin.read()
    running.check_alive()
    print("all alive", flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with the user's tools in it, and no twin."""
    made = tmp_path / "cache"
    made.mkdir()
    for shared in ("tools", "kafka", "functions"):
        (cache_directory() / shared).mkdir(exist_ok=True)
        (made / shared).symlink_to(cache_directory() / shared)
    return made


@dataclass
class Run:
    """A command that runs a twin, in a session of its own as under a terminal."""

    popen: subprocess.Popen[bytes]
    cache: Path
    log: Path
    token: str

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, words: str) -> None:
        until(lambda: words in self.said, f"{words!r} is said", 240, self._check_alive)

    def _check_alive(self) -> None:
        assert self.popen.poll() is None, self.said

    def interrupt(self, number: signal.Signals) -> int:
        """Send a signal as a terminal does, to the whole foreground group; return the exit code."""
        os.killpg(self.popen.pid, number)
        return self.popen.wait(PATIENCE_SECONDS)

    def homes(self) -> list[Path]:
        """Return the directories of this run's twins."""
        return [path for path in self.cache.glob("twins/*") if path.is_dir()]

    def processes(self) -> list[str]:
        """Return the command lines of all that this run started and that still runs."""
        marks = (
            f"{TOKEN}={self.token}".encode(),
            f"{PLACE_VARIABLE}={self.cache}/twins/".encode(),
            f"HOME={self.cache}/twins/".encode(),  # a function's child sees what Lambda would show
        )
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if any(variable.startswith(marks) for variable in variables):
                found.append(command)
        return found


def listeners(number: int) -> list[str]:
    """Return the addresses below 127.N on which anybody listens."""
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, state = line.split()[1], line.split()[3]
        octets = bytes.fromhex(address.partition(":")[0])[::-1]
        if state == "0A" and octets[:2] == bytes([127, number]):
            found.append(f"{socket.inet_ntoa(octets)}:{int(address.partition(':')[2], 16)}")
    return found


@pytest.fixture
def start(cache: Path, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(*arguments: str) -> Run:
        token = uuid.uuid4().hex
        directory = tmp_path / token
        directory.mkdir()
        log = directory / "log"
        with log.open("wb") as sink:
            popen = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=directory,
                env={
                    **os.environ,
                    "PYTHONPATH": str(REPOSITORY),
                    "PYTHONUNBUFFERED": "1",
                    "STILLWATER_CACHE": str(cache),
                    TOKEN: token,
                },
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        runs.append(Run(popen, cache, log, token))
        return runs[-1]

    yield begin
    for run in runs:
        if run.popen.poll() is None:
            run.popen.kill()
        run.popen.communicate()


def check_nothing_is_left(run: Run, homes: list[Path]) -> None:
    """Wait until nothing of a run and of its twins is left; fail with what is."""
    numbers = [int(home.name) for home in homes]
    with contextlib.suppress(AssertionError):
        until(lambda: not run.processes() and not run.homes(), "they are gone")
    assert run.processes() == []
    assert [address for number in numbers for address in listeners(number)] == []
    assert run.homes() == []


STARTING = "The twin: AWS, Kubernetes"
PROVISIONING = "foundation:"  # said after the first layer; the engine is at the second


@pytest.mark.long
@pytest.mark.parametrize("words", [STARTING, PROVISIONING], ids=["starting", "provisioning"])
def test_ctrl_c_ends_a_demo_with_a_sentence_and_leaves_nothing(
    start: Callable[..., Run], words: str
) -> None:
    demo = start(*DEMO)
    demo.wait_for(words)
    homes = until(demo.homes, "the twin has its directory")
    assert demo.interrupt(signal.SIGINT) == 128 + signal.SIGINT
    assert demo.said.endswith("Stopped; nothing was left running on this machine.\n")
    assert "Traceback" not in demo.said
    check_nothing_is_left(demo, homes)


@pytest.mark.long
def test_a_demo_that_is_killed_leaves_nothing(start: Callable[..., Run]) -> None:
    demo = start(*DEMO)
    demo.wait_for(PROVISIONING)
    homes = demo.homes()
    assert len(demo.processes()) > 8  # the twin's programs, the engine, its plugins
    assert demo.interrupt(signal.SIGKILL) == -signal.SIGKILL
    check_nothing_is_left(demo, homes)


@pytest.mark.long
def test_two_twins_at_once_do_not_collide(start: Callable[..., Run]) -> None:
    first, second = start("-c", TWIN), start("-c", TWIN)
    first.wait_for("number ")
    second.wait_for("number ")
    numbers = {run.said.partition("number ")[2].partition(".")[0] for run in (first, second)}
    assert len(numbers) == 2
    homes = first.homes()
    assert len(homes) == 2
    second.interrupt(signal.SIGTERM)
    first.popen.communicate()
    assert first.popen.returncode == 0, first.said
    assert "all alive" in first.said
    check_nothing_is_left(first, homes)
    check_nothing_is_left(second, homes)


def test_a_foreign_listener_is_named_with_the_way_to_find_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = Place(places.LAST_NUMBER, tmp_path)
    with socket.create_server(("0.0.0.0", 0)) as listener:  # noqa: S104 - as a developer's etcd may
        port = listener.getsockname()[1]
        monkeypatch.setattr(places, "SERVICES", {"etcd": (3, port)})
        with pytest.raises(Conflict, match=rf"etcd needs 127\.90\.250\.3:{port}.*ss -ltnp"):
            check_addresses(place)
    check_addresses(place)
