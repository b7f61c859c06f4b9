"""deadline: everybody is asked at once, and nobody is waited for longer than agreed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from handlers.adapters.calls import ask_within, first_of


@pytest.fixture
def hanging() -> Iterator[Callable[[], str]]:
    """A question that is answered only when the test is over."""
    over = threading.Event()

    def question() -> str:
        over.wait(60)
        return "late"

    yield question
    over.set()


def raising() -> str:
    raise StillwaterError("Nobody is at home.")


def test_every_answer_is_returned_as_soon_as_all_are_there() -> None:
    started = time.monotonic()
    assert ask_within(30, {1: lambda: "one", 2: lambda: "two"}) == {1: "one", 2: "two"}
    assert time.monotonic() - started < 10


def test_one_that_hangs_costs_no_other_its_answer(hanging: Callable[[], str]) -> None:
    answers = ask_within(0.2, {"hangs": hanging, "answers": lambda: "here"})
    assert answers["answers"] == "here"
    assert answers["hangs"] == Unknown("It did not answer within 0 s.")


def test_one_that_fails_says_why() -> None:
    def broken() -> str:
        raise KeyError

    answers = ask_within(30, {"fails": raising, "breaks": broken})
    assert answers == {"fails": Unknown("Nobody is at home."), "breaks": Unknown("KeyError")}


def test_questions_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=30)
    assert len(ask_within(30, dict.fromkeys(range(3), together.wait))) == 3


def test_the_next_is_asked_while_the_first_hangs(hanging: Callable[[], str]) -> None:
    assert first_of([hanging, lambda: "second"], stagger_seconds=0.05, seconds=30) == "second"


def test_the_next_is_asked_at_once_where_the_first_refuses() -> None:
    started = time.monotonic()
    assert first_of([raising, lambda: "second"], stagger_seconds=30, seconds=60) == "second"
    assert time.monotonic() - started < 20


def test_nobody_else_is_asked_where_the_first_answers() -> None:
    asked: list[int] = []
    first_of([lambda: "first", lambda: asked.append(2)], stagger_seconds=30, seconds=60)
    assert asked == []


def test_an_early_one_that_answers_late_is_still_heard() -> None:
    slow = threading.Event()

    def first() -> str:
        slow.wait(30)
        return "first"

    def second() -> str:
        slow.set()
        return raising()

    assert first_of([first, second], stagger_seconds=0.05, seconds=60) == "first"


def test_without_any_answer_all_refusals_are_told(hanging: Callable[[], str]) -> None:
    with pytest.raises(StillwaterError, match=r"Nobody is at home\. Nobody else answered"):
        first_of([raising, hanging], stagger_seconds=0.05, seconds=0.2)
    with pytest.raises(StillwaterError, match=r"at home\. Nobody is at home\.$"):
        first_of([raising, raising], stagger_seconds=0.05, seconds=30)
