"""What the engine runs (Pulumi.yaml: main)."""

from __future__ import annotations

import sys
from pathlib import Path

import pulumi

# The engine puts this folder on the path, where platform.py and kafka.py would hide the modules of
# that name; what belongs there is the repository that this folder is a package of.
_here = Path(__file__).resolve().parent
sys.path[:] = [str(_here.parent), *(p for p in sys.path if Path(p).resolve() != _here)]

from core.errors import StillwaterError  # noqa: E402 - the path comes first
from stacks.program import main  # noqa: E402 - likewise

try:
    main()
except StillwaterError as error:
    # A RunError is shown as its message alone: the user's mistake, not our traceback.
    raise pulumi.RunError(str(error)) from None
