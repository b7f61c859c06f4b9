"""Runs the `stillwater` command, and the twin's where that is installed."""

from __future__ import annotations

import os
import sys

from stillwater import APP


def main(*, module: str = "cli.main") -> None:
    """Put the project's packages on the path of this process and of its children, and run."""
    sys.path.insert(0, str(APP))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(APP), *([before] if before else [])])
    from cli.__main__ import main as run  # noqa: PLC0415 - found only now

    run(module=module)


def twin() -> None:
    """Run the twin's commands."""
    main(module="local.commands.app")
