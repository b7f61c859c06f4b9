"""Announcements as AWS sends them, one per file: its documentation's samples, and captures.

Ids and names are this test suite's own where a sample has placeholders.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BODIES = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.json"))}


def load(name: str) -> dict[str, Any]:
    """Return one announcement, free to be changed."""
    event: dict[str, Any] = json.loads(BODIES[name])
    return event
