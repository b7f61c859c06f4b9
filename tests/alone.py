"""Keeps which integration tests failed, and runs few of them once more, alone: -m tests.alone

Two twins share two cores in `make test`, and a machine that stands still for seconds fails a test
that waits in real time. Such a test is a flaw and both outcomes are printed; a defect fails twice.
More failures than a few are no bad luck, and are not looked at again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# pytest writes it by tests/integration/conftest.py.
LIST = Path(__file__).resolve().parents[1] / "out" / "integration" / "failed.txt"
FEW = 3


def main() -> int:
    """Return pytest's exit code for the tests run again, or 1 where that would say nothing."""
    before = failed()
    if not before or len(before) > FEW:
        return 1
    _say("Failed beside others, run again, alone", before)
    code = subprocess.run([sys.executable, "-m", "pytest", *before], check=False).returncode
    again = failed() if code else []
    _say("Failed beside others and alone", again)
    if code in (0, 1):
        passed = [test for test in before if test not in again]
        _say("Passed only when alone: it waits for the clock somewhere, mend that", passed)
    return code


def forget() -> None:
    """Begin a run: nothing has failed."""
    LIST.unlink(missing_ok=True)


def add(test: str) -> None:
    """Keep a test's id, once."""
    if test not in failed():
        LIST.parent.mkdir(parents=True, exist_ok=True)
        with LIST.open("a") as kept:
            kept.write(f"{test}\n")


def failed() -> list[str]:
    """Return the ids of what failed, in the order in which it failed."""
    return LIST.read_text().splitlines() if LIST.exists() else []


def _say(outcome: str, tests: Sequence[str]) -> None:
    if tests:
        sys.stdout.write(f"{outcome}: {', '.join(tests)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
