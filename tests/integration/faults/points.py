"""Where a function may be cut off: its effects, told apart by what they are an effect of.

Two ticks that take the same decision in the same state write the same twice; being killed after one
or the other is the same event. A point is a function, the state its incident is in, the effect, and
its place in the invocation.
"""

from collections.abc import Callable

from tests.integration.faults.taps import Call

Point = tuple[str, str, int, str]


class Places:
    """Names the point of each effect in turn."""

    def __init__(self) -> None:
        self._invocation, self._place, self._state = 0, 0, ""

    def of(self, call: Call) -> Point:
        if call.invocation != self._invocation:
            self._invocation, self._place, self._state = call.invocation, 0, ""
        self._place += 1
        if call.name == "ledger.put":
            self._state = str(call.arguments[0].state)
        return call.function, self._state, self._place, call.name


def first_times() -> Callable[[Call], bool]:
    """Return a question that is answered yes the first time an effect is met at its point."""
    places, seen = Places(), set[Point]()

    def first(call: Call) -> bool:
        if not call.effect:
            return False
        point = places.of(call)
        known = point in seen
        seen.add(point)
        return not known

    return first
