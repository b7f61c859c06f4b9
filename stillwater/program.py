"""What a user's own Pulumi project runs: the layers of this release."""

from __future__ import annotations

import runpy
import sys

from stillwater import APP


def main() -> None:
    """Build the layer that the stack's name chooses."""
    sys.path.insert(0, str(APP))
    runpy.run_module("stacks", run_name="__main__")
