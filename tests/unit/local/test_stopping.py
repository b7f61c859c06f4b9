"""A signal ends a block once, lets it clean up, and never for ever."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local.processes import Stopping

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
