"""Names what carries a function's settings: two variables, and an item of the ledger's table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.errors import InvalidInput
from core.fields import part

SETTINGS = "STILLWATER_SETTINGS"
# The key of the item that holds what is too long for the environment.
KEPT = "STILLWATER_KEPT"
CONTENT = "settings"
REMEDY = "the operations stack renders it, so run `pulumi up` on it again."


def read_settings_text(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings as far as the environment holds them; raises InvalidInput without any."""
    text = environment.get(SETTINGS, "")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput([f"{SETTINGS} is {text[:80]!r}, and must be a JSON object; {REMEDY}"])
    return found


def setting_text(environment: Mapping[str, str], name: str) -> str | None:
    """Return one text of the settings as far as the environment holds them; never raises.

    For those who must answer though the settings cannot be read.
    """
    try:
        told: Any = json.loads(environment.get(SETTINGS, ""))
    except ValueError:
        return None
    found = part(told).get(name)
    return found if isinstance(found, str) else None
