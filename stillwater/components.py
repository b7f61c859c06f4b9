"""Serves the components to programs in any language, from a folder with a PulumiPlugin.yaml."""

from __future__ import annotations

import sys

from stillwater import APP


def main() -> None:
    """Serve the components to the engine."""
    sys.path.insert(0, str(APP))
    from infra.package.host import main as serve  # noqa: PLC0415 - found only now

    serve()
