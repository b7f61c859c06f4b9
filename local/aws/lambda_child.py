"""Runs AWS's Lambda runtime client on a deployed zip, blind to the repository it lies in.

Started as a file by local.aws.runtime, never imported. The virtual environment knows this
repository through an editable install; a function must import `core` and `handlers` from its zip
or not at all, as it would on Lambda.
"""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def hide_repository() -> None:
    """Take the repository off the module search path, however it got there."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != REPOSITORY]
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not getattr(finder, "__module__", "").startswith("__editable__")
    ]


if __name__ == "__main__":
    hide_repository()
    from awslambdaric.__main__ import main

    main(sys.argv)
