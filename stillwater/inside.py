"""Runs what lives in the cluster from the installed package: `python -m stillwater.inside`."""

from __future__ import annotations

import runpy
import sys

from stillwater import APP

PARTS = ("gate", "probe")


def main() -> None:
    """Run one of the parts until it ends; what it refuses is a sentence and exit code 1."""
    named = sys.argv[1:]
    if len(named) != 1 or named[0] not in PARTS:
        sys.exit(f"Name one of: {', '.join(PARTS)}.")
    sys.path.insert(0, str(APP))
    from core.ground.errors import StillwaterError  # noqa: PLC0415 - it is found on that path alone

    try:
        runpy.run_module(f"handlers.{named[0]}", run_name="__main__")
    except StillwaterError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
