"""Runs what lives in the cluster from the installed package: `python -m stillwater.inside`."""

from __future__ import annotations

import runpy
import sys

from stillwater import APP

PARTS = ("gate", "probe")


def main() -> None:
    """Run one of the parts until it ends."""
    named = sys.argv[1:]
    if len(named) != 1 or named[0] not in PARTS:
        sys.exit(f"Name one of: {', '.join(PARTS)}.")
    sys.path.insert(0, str(APP))
    runpy.run_module(f"handlers.{named[0]}", run_name="__main__")


if __name__ == "__main__":
    main()
