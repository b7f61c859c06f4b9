"""What bench.resync makes of what it measured, and that its slow disk is as slow as it says."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.refill import report
from bench.refill.measuring import SLOW_DISK, Measured, RefillCase
from core.cost import resync

MB = 1e6


def measured(
    path: str, *, seconds: float, megabytes: float, disk: float | None = None, stop: str = "clean"
) -> Measured:
    return Measured(
        case=RefillCase(path=path, stop=stop, disk_bytes_per_s=disk),
        held_bytes=480 * MB,
        append_bytes_per_s=0.5 * MB,
        outage_seconds=30,
        start_seconds=4,
        seconds=seconds,
        bytes_in=megabytes * MB,
        samples=((0, 0), (1, 10 * MB), (2, 13 * MB), (11, 40 * MB), (12, 100 * MB)),
    )


def test_the_model_is_asked_with_what_was_measured() -> None:
    kept = measured("kept", seconds=6.3, megabytes=18).prediction(3 * MB)
    assert isinstance(kept, resync.CatchUp)
    assert (kept.seconds, kept.gross_bytes) == (6, 18 * MB)
    emptied = measured("emptied", seconds=190, megabytes=570).prediction(3 * MB)
    assert isinstance(emptied, resync.CatchUp)
    assert (emptied.seconds, emptied.gross_bytes) == (192, 576 * MB)


def test_the_slower_of_throttle_and_disk_decides() -> None:
    slow = measured("kept", seconds=15, megabytes=22, disk=1.5 * MB).prediction(3 * MB)
    assert isinstance(slow, resync.CatchUp)
    assert slow.seconds == 15


def test_a_rate_is_that_of_the_middle_of_a_way_back() -> None:
    assert measured("emptied", seconds=12, megabytes=100).rate_bytes_per_s == 3 * MB


def test_the_summary_is_of_the_largest_size_and_of_the_worst_error() -> None:
    rows = [
        report.row(each, 3 * MB)
        for each in (
            measured("kept", seconds=6, megabytes=18),
            measured("emptied", seconds=192, megabytes=576),
            measured("kept", seconds=6.6, megabytes=18, stop="killed"),
            measured("kept", seconds=15, megabytes=22.5, disk=1.5 * MB),
        )
    ]
    assert report.summary(rows) == {
        "bytes_ratio": 32.0,
        "time_ratio": 32.0,
        "model_error_max": 0.1,
        "sizes": 1,
    }


@pytest.mark.skipif(shutil.which("cc") is None, reason="The slow disk needs a C compiler: cc.")
def test_the_slow_disk_is_as_slow_as_it_says_for_record_logs_alone(tmp_path: Path) -> None:
    library = tmp_path / "slow_disk.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(SLOW_DISK), "-ldl"]
    subprocess.run(command, check=True)

    def seconds(name: str) -> float:
        program = f"""
import os, time
file = os.open({str(tmp_path / name)!r}, os.O_CREAT | os.O_WRONLY)
began = time.monotonic()
for _ in range(4):
    os.write(file, b"x" * 100_000)
print(time.monotonic() - began)
"""
        environment = {
            "LD_PRELOAD": str(library),
            "SLOW_DISK_UNDER": str(tmp_path),
            "SLOW_DISK_RATE": "400000",
        }
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-S", "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert time.monotonic() - began < 60
        return float(done.stdout)

    assert seconds("00000000000000000000.log") >= 1.0
    assert seconds("00000000000000000000.index") < 1.0
