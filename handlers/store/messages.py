"""The messages on the ticks queue that name no incident."""

from __future__ import annotations

import json

# Asks λ tick to bring leaders and scale-in protection to what is frozen
# (handlers.incidents.shifts).
SHIFT_MESSAGE = json.dumps({"shift": True})
# Asks λ tick to take labels off pods that nobody lets leave (handlers.incidents.budgets).
STRAYS_MESSAGE = json.dumps({"strays": True})


def rotation_message(version: int) -> str:
    """Ask λ tick for a turn of the run; stale once the run has another version."""
    return json.dumps({"rotation": version})
