"""The messages on the ticks queue that name no incident."""

from __future__ import annotations

import json

# Asks λ tick to bring leaders and scale-in protection to what is frozen
# (handlers.incidents.shifts).
SHIFT_MESSAGE = json.dumps({"shift": True})
# Who was in the way of leaders' giving back, a start or another invocation, is out of it by then.
# The sweep would ask within a minute, and a run waits for it.
SHIFT_AFTER_SECONDS = 5.0
# Asks λ tick to take labels off pods that nobody lets leave (handlers.incidents.budgets).
STRAYS_MESSAGE = json.dumps({"strays": True})


def rotation_message(version: int) -> str:
    """Ask λ tick for a turn of the run; stale once the run has another version."""
    return json.dumps({"rotation": version})
