"""What goes wrong with a call of whatever a test is about, set on the thing itself."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

ALWAYS = 1 << 30


class Killed(BaseException):
    """The function ends here, without another word."""


def fail(
    target: Any, call: str, error: BaseException, *, times: int = ALWAYS, after: bool = False
) -> None:
    """Have the next calls fail, before or after their effect, and all after them work."""
    real, left = getattr(target, call), [times]

    def failing(*arguments: Any, **named: Any) -> Any:
        fails = left[0] > 0
        left[0] -= 1
        if fails and not after:
            raise error
        done = real(*arguments, **named)
        if fails:
            raise error
        return done

    setattr(target, call, failing)


def noted(target: Any, call: str) -> list[tuple[Any, ...]]:
    """Return what a call will have been asked with, each time."""
    real, asked = getattr(target, call), list[tuple[Any, ...]]()

    def noting(*arguments: Any, **named: Any) -> Any:
        asked.append(arguments)
        return real(*arguments, **named)

    setattr(target, call, noting)
    return asked


def meanwhile(
    target: Any, call: str, deed: Callable[[], object], *, at: int = 1, after: bool = False
) -> None:
    """Have somebody do something directly before or after a call, the n-th time."""
    real, calls = getattr(target, call), count(1)

    def late(*arguments: Any, **named: Any) -> Any:
        now = next(calls) == at
        if now and not after:
            deed()
        answer = real(*arguments, **named)
        if now and after:
            deed()
        return answer

    setattr(target, call, late)


def kill(at: int, calls: Iterable[tuple[Any, str]], *, after: bool) -> None:
    """Kill the function at the n-th of these calls, before or after it took effect."""
    left = [at]

    def mortal(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and not after:
                raise Killed
            done = real(*arguments, **named)
            if left[0] == 0:
                raise Killed
            return done

        return called

    for target, call in calls:
        setattr(target, call, mortal(getattr(target, call)))
