"""Building the twin's tools: whatever ends the builder, no compiler stays behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local.processes import start_time_ticks
from tests.integration.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).resolve().parents[2]
BUILDER = """
from local.tools import build
from local.tools.catalogue import BINARIES
build.build(BINARIES["etcd"], lambda progress: print(progress.state, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["crash", "ctrl-c"])
def test_a_build_that_ends_early_takes_its_compiler_with_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    # Caches of its own, Go's too: with a warm one the build could be over before the signal.
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILDER],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "STILLWATER_CACHE": str(tmp_path),
            "STILLWATER_BUILD": "now",
            "GOCACHE": str(tmp_path / "go"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert builder.stdout is not None
    assert builder.stdout.readline() == b"building\n"
    # The `go build` that the builder has recorded for its warden.
    recorded = until(lambda: [*tmp_path.glob("tools/.*/*/pids/*")], "a compiler is started")
    compiler = int(recorded[0].name)
    builder.send_signal(number)
    builder.wait(PATIENCE_SECONDS)
    builder.stdout.close()
    until(lambda: start_time_ticks(compiler) is None, "the compiler ends with its builder")
    assert not [path for path in (tmp_path / "tools").iterdir() if (path / "bin").is_dir()] or (
        number is signal.SIGKILL  # what it left is cleared by the next builder
    )
