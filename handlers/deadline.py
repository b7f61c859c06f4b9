"""Asks several sources at once and waits for a bounded time: who is silent by then is said so.

A source that hangs keeps its thread, which dies with the process; nobody waits for it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from core.errors import StillwaterError
from core.health.examination import Silence

T = TypeVar("T")
K = TypeVar("K")
LOG = logging.getLogger(__name__)


def within(seconds: float, questions: Mapping[K, Callable[[], T]]) -> dict[K, T | Silence]:
    """Return every answer that came within `seconds`, and of all others why there is none."""
    until = time.monotonic() + seconds
    came: queue.SimpleQueue[tuple[K, T | Silence]] = queue.SimpleQueue()

    def ask(key: K, question: Callable[[], T]) -> None:
        came.put((key, _answer(question)))

    for pair in questions.items():
        threading.Thread(target=ask, args=pair, daemon=True).start()
    answers: dict[K, T | Silence] = {}
    while len(answers) < len(questions):
        try:
            key, answer = came.get(timeout=max(until - time.monotonic(), 0))
        except queue.Empty:
            break
        answers[key] = answer
    silent = Silence(f"It did not answer within {seconds:.0f} s.")
    return {key: answers.get(key, silent) for key in questions}


def first_of(questions: Sequence[Callable[[], T]], *, stagger_seconds: float, seconds: float) -> T:
    """Return the first answer; each next source is asked when those before have not answered yet.

    Raises StillwaterError with what every one of them said, or did not.
    """
    until = time.monotonic() + seconds
    came: queue.SimpleQueue[T | Silence] = queue.SimpleQueue()
    refusals: list[str] = []

    def ask(question: Callable[[], T]) -> None:
        came.put(_answer(question))

    for number, question in enumerate(questions, start=1):
        threading.Thread(target=ask, args=(question,), daemon=True).start()
        last = number == len(questions)
        patience = until if last else min(time.monotonic() + stagger_seconds, until)
        # A refusal lets the next one begin at once; after the last, all are waited for.
        while len(refusals) < number:
            try:
                answer = came.get(timeout=max(patience - time.monotonic(), 0))
            except queue.Empty:
                break
            if not isinstance(answer, Silence):
                return answer
            refusals.append(answer.reason)
    if len(refusals) < len(questions):
        refusals.append(f"Nobody else answered within {seconds:.0f} s.")
    raise StillwaterError(" ".join(refusals))


def _answer(question: Callable[[], T]) -> T | Silence:
    try:
        return question()
    except Exception as error:
        # Whatever ails one source, the others are heard.
        LOG.warning("A source of the health examination failed.", exc_info=True)
        return Silence(str(error) or type(error).__name__)
