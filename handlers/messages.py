"""The one message on the ticks queue that names no incident."""

from __future__ import annotations

import json

# Asks λ tick to bring leaders and scale-in protection to what is frozen (handlers.shifts).
SHIFT_MESSAGE = json.dumps({"shift": True})
