"""Runs the `stillwater` command on the packages below `app`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

APP = Path(__file__).with_name("app")


def main() -> None:
    """Put `app` on the path of this process and of the Pulumi programs it starts, and run."""
    sys.path.insert(0, str(APP))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(APP), *([before] if before else [])])
    from cli.__main__ import main as run  # noqa: PLC0415 - found only now

    run()
