"""Asks several sources at once and waits for a bounded time: who is silent by then is said so.

A source that hangs keeps its thread, which dies with the process; nobody waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from core.errors import StillwaterError
from core.unknown import Unknown

T = TypeVar("T")
K = TypeVar("K")
LOG = logging.getLogger(__name__)


def within(seconds: float, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Unknown]:
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
        refusals.append(f"Nobody else answered within {seconds:.0f} s.")
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
