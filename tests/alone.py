"""Runs the few integration tests that failed once more, alone on the machine: python -m tests.alone

Two twins share two cores in `make test`, and a machine that stands still for seconds fails a test
that waits in real time. Such a test is a flaw and both outcomes are printed; a defect fails twice.
More failures than a few are no bad luck, and are not looked at again.
"""

from __future__ import annotations

import subprocess
import sys

from tests import failures

FEW = 3


def main() -> int:
    """Return pytest's exit code for the tests run again, or 1 where that would say nothing."""
    failed = failures.names()
    if not failed or len(failed) > FEW:
        return 1
    _say(f"Failed beside others: {', '.join(failed)}. Run again, alone.")
    code = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    if code == 0:
        _say(f"Passed only when alone, so mend what they wait for: {', '.join(failed)}")
    return code


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
