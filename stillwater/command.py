"""Runs the `stillwater` command."""

from __future__ import annotations

import os
import sys

from stillwater import APP


def main() -> None:
    """Put the project's packages on the path of this process and of its children, and run."""
    sys.path.insert(0, str(APP))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(APP), *([before] if before else [])])
    from cli.__main__ import main as run  # noqa: PLC0415 - found only now

    run()
