"""Names what carries a function's settings: two variables, and an item of the ledger's table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SETTINGS = "STILLWATER_SETTINGS"
# The key of the item that holds what is too long for the environment.
KEPT = "STILLWATER_KEPT"
CONTENT = "settings"


def named(environment: Mapping[str, str], name: str) -> str | None:
    """Return one text of the settings as far as the environment holds them; never raises.

    For those who must answer though the settings cannot be read.
    """
    try:
        told: Any = json.loads(environment.get(SETTINGS, ""))
    except ValueError:
        return None
    found = told.get(name) if isinstance(told, dict) else None
    return found if isinstance(found, str) else None
