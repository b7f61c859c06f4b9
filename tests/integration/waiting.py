"""Waits for what comes by itself, and says what was awaited when it does not come."""

import time
from collections.abc import Callable
from typing import TypeVar

from core.ground.errors import StillwaterError

T = TypeVar("T")

# Not how long a thing may take: how long before it is said never to come. A wait that is met costs
# nothing, and two loaded cores are ten times slower than one idle one.
PATIENCE_SECONDS = 120.0


def until(
    look: Callable[[], T | None],
    what: str,
    seconds: float = PATIENCE_SECONDS,
    alive: Callable[[], None] = lambda: None,
) -> T:
    """Return the first truthy thing seen; fail with what was awaited after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        alive()
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}; saw {seen!r}"
        time.sleep(0.05)


def until_read(read: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Return the first reading that holds; one that cannot be taken yet is taken again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    seen: object = None
    while time.monotonic() < deadline:
        try:
            found = read()
        except StillwaterError as error:
            seen = error
        else:
            seen = found
            if holds(found):
                return found
        time.sleep(0.3)
    raise AssertionError(f"it never held; last seen: {seen}")
