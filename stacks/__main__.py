"""Starts the layer of this stack's name; the engine runs it (Pulumi.yaml: main)."""

from __future__ import annotations

import pulumi

from core.ground.errors import StillwaterError
from stacks.program import main

try:
    main()
except StillwaterError as error:
    # A RunError is shown as its message alone: the user's mistake, not our traceback.
    raise pulumi.RunError(str(error)) from None
