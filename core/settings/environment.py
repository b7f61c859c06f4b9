"""Names what carries a function's settings: two variables, and an item of the ledger's table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from core.errors import InvalidInput
from core.fields import part

SETTINGS = "STILLWATER_SETTINGS"
# The key of the item that holds what is too long for the environment.
KEPT = "STILLWATER_KEPT"
CONTENT = "settings"
_HASH_CHARACTERS = 32
REMEDY = "the operations stack renders it, so run `pulumi up` on it again."


def kept_key(role: str, content: str) -> str:
    """Return the key of the item that holds this content: its hash, so that no other passes."""
    return f"settings#{role}-{_digest(content)[:_HASH_CHARACTERS]}"


def is_kept_under(key: str, content: str) -> bool:
    """Say whether content is what a key was made of.

    Keys of earlier releases hold half as much of the hash: while a function is replaced, its new
    code reads what its old environment names.
    """
    named = key.rpartition("-")[2]
    return len(named) >= _HASH_CHARACTERS // 2 and _digest(content).startswith(named)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


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
