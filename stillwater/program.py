"""Runs the layers of this release in a user's own Pulumi project."""

from __future__ import annotations

import runpy
import sys

from stillwater import APP


def main() -> None:
    """Build the layer that the stack's name chooses."""
    sys.path.insert(0, str(APP))
    runpy.run_module("stacks", run_name="__main__")
