"""Waits for what comes by itself, for as long as a bench has patience."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.ground.errors import StillwaterError


def is_seen_within(
    seconds: float,
    holds: Callable[[], object],
    *,
    look_seconds: float = 0.2,
    alive: Callable[[], object] = lambda: None,
) -> bool:
    """Say whether something came true in so many seconds; `alive` raises where it never can."""
    deadline = time.monotonic() + seconds
    while not holds():
        alive()
        if time.monotonic() > deadline:
            return False
        time.sleep(look_seconds)
    return True


def until(
    holds: Callable[[], object],
    what: str,
    *,
    within_seconds: float = 60.0,
    look_seconds: float = 0.05,
    alive: Callable[[], object] = lambda: None,
) -> None:
    """Wait for something; raise StillwaterError when it does not come true."""
    if not is_seen_within(within_seconds, holds, look_seconds=look_seconds, alive=alive):
        raise StillwaterError(f"It did not happen within {within_seconds:.0f} s: {what}.")
