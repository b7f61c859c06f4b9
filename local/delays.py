"""Sets how long the twin's machines take, where somebody wants them slower or faster."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long EC2 and Auto Scaling take in the twin; on AWS it is half a minute and more."""

    boot_seconds: float = 2.0
    shutdown_seconds: float = 1.0
    health_check_seconds: float = 2.0
    launch_retry_seconds: float = 10.0

    @staticmethod
    def from_env() -> Delays:
        """Read STILLWATER_BOOT_SECONDS and its siblings where they are set."""
        given = {
            field.name: float(value)
            for field in fields(Delays)
            if (value := os.environ.get(f"STILLWATER_{field.name.upper()}"))
        }
        return Delays(**given)
