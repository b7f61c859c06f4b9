"""Bounds how the handlers call others: how long they wait, how much at once, what a failure keeps.

What AWS, Kubernetes and Kafka answer grows. An answer that cannot be read is none: whoever asked
treats it as silence, keeps what it has and calls a person, where a traceback would end the turn. A
source that hangs keeps its thread, which dies with the process; nobody waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from core.ground.errors import StillwaterError
from core.ground.fields import Unknown

# AWS refuses, is not reached, or a proxy speaks in its place.
NO_ANSWER = (BotoCoreError, ClientError, ResponseParserError)


def of_aws(answer: Any) -> Any:
    """Return an answer; raises ResponseParserError for one without an id of AWS's.

    A proxy's page, read as JSON, would pass for a table without the item, or a message sent.
    """
    if "RequestId" not in answer.get("ResponseMetadata", {}):
        raise ResponseParserError("A proxy answers in the place of AWS.")
    return answer


def take_each(steps: Iterable[Callable[[], object]]) -> None:
    """Take every step; raises the first failure once all have been tried."""
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except (StillwaterError, *NO_ANSWER) as error:
            first = first or error
    if first is not None:
        raise first


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


T = TypeVar("T")
K = TypeVar("K")
LOG = logging.getLogger(__name__)


def ask_within(seconds: float, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Unknown]:
    """Return every answer that came within `seconds`, and of all others why there is none."""
    asked = {key: _ask(question) for key, question in questions.items()}
    came, _ = wait(asked.values(), seconds)
    silent = Unknown(f"It did not answer within {seconds:.0f} s.")
    return {key: answer.result() if answer in came else silent for key, answer in asked.items()}


def first_of(questions: Sequence[Callable[[], T]], *, stagger_seconds: float, seconds: float) -> T:
    """Return the first answer; each next source is asked when those before have not answered yet.

    Raises StillwaterError with what every one of them said, or did not.
    """
    until = time.monotonic() + seconds
    asked: set[Future[T | Unknown]] = set()
    refusals: list[str] = []
    for number, question in enumerate(questions, start=1):
        asked.add(_ask(question))
        last = number == len(questions)
        patience = until if last else min(time.monotonic() + stagger_seconds, until)
        # A refusal lets the next one begin at once; after the last, all are waited for.
        while asked and time.monotonic() < patience:
            came, asked = wait(asked, patience - time.monotonic(), FIRST_COMPLETED)
            for answer in (each.result() for each in came):
                if not isinstance(answer, Unknown):
                    return answer
                refusals.append(answer.why)
    if asked:
        refusals.append(f"No other source answered within {seconds:.0f} s.")
    raise StillwaterError(" ".join(refusals))


def _ask(question: Callable[[], T]) -> Future[T | Unknown]:
    """Ask in a thread of its own: an executor's would be waited for when the process ends."""
    answer: Future[T | Unknown] = Future()
    threading.Thread(target=lambda: answer.set_result(_answer(question)), daemon=True).start()
    return answer


def _answer(question: Callable[[], T]) -> T | Unknown:
    try:
        return question()
    except Exception as error:
        # Whatever ails one source, the others are heard.
        LOG.warning("A source of the health examination failed.", exc_info=True)
        return Unknown(str(error) or type(error).__name__)


# A tick comes again soon: better to fail it than to wait for the default minute.
CLIENT = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard"})
# Of whoever looks through many volumes, which takes EC2 and CloudWatch longer.
PATIENT_CLIENT = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard"})
# For what must not be asked twice: the client does not repeat what AWS may have done.
ONE_TRY = CLIENT.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
PERHAPS_DONE = (ReadTimeoutError, ConnectionClosedError, ResponseParserError)


def perhaps_done(error: ClientError) -> bool:
    """Say whether AWS may have done what it answered with a fault of its own."""
    return bool(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500)


# EC2 takes no more values of a filter.
MOST_FILTERED = 200


def portions(things: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield things in their order, at most so many at a time."""
    every = list(things)
    for start in range(0, len(every), most):
        yield every[start : start + most]
