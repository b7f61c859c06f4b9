"""How the twin's AWS ends. It takes all its state along, so this test has a server of its own."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import environment
from local.place import Place, claim_place
from local.processes import Child, Processes, start_time_ticks
from tests.integration.aws.cloud import Cloud, session_of
from tests.integration.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Place, Child]]:
    with claim_place() as claim:
        place = Place(claim.number, tmp_path)
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            child = processes.start(
                "aws",
                [sys.executable, "-m", "local.aws.server"],
                environment=environment.base(place),
                directory=REPOSITORY,
            )
            processes.wait_until(
                child,
                lambda: listens(place),
                within_seconds=PATIENCE_SECONDS,
                what="its port answers",
            )
            yield place, child
        finally:
            processes.close()


def listens(place: Place) -> bool:
    address = (place.host("moto"), place.port("moto"))
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
        return environment.credentials_file(place).exists()
    return False


def test_sigterm_ends_the_server_and_its_functions(server: tuple[Place, Child]) -> None:
    place, child = server
    cloud = Cloud(place, session_of(place), {})
    function = cloud.function("import os\ndef handler(event, context):\n    return os.getpid()\n")
    pid, _ = cloud.invoke(function)
    assert place.path("pids", str(pid)).exists()
    child.popen.terminate()
    assert child.popen.wait(PATIENCE_SECONDS) == 0
    cloud.eventually(lambda: start_time_ticks(pid) is None)
