"""Says in a sentence that somebody answered in a shape this release does not read.

What AWS, Kubernetes and Kafka answer grows. An answer that cannot be read is none: whoever asked
treats it as silence, keeps what it has and calls a person, where a traceback would end the turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import StillwaterError

LONGEST_SHOWN = 120


@contextmanager
def known_shape(who: str) -> Iterator[None]:
    """Raise StillwaterError for what cannot be read of an answer; as a decorator, too."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StillwaterError(
            f"{who} answered in a shape that this release cannot read "
            f"({type(error).__name__}: {str(error)[:LONGEST_SHOWN]}); see whether a newer one can."
        ) from error
