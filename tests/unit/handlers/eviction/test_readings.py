"""One reading answers everybody who asks within its age, and nobody after."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from handlers.eviction.gate import Recent


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_reading_answers_for_its_age_and_no_longer() -> None:
    clock = Clock()
    recent, readings = Recent(2, clock), iter(range(10))
    asked = [recent.get("x", lambda: next(readings)) for _ in range(2)]
    clock.now += 2
    asked.append(recent.get("x", lambda: next(readings)))
    clock.now += 0.1
    asked.append(recent.get("x", lambda: next(readings)))
    assert asked == [0, 0, 0, 1]


def test_what_was_read_before_the_lease_answers_nobody_after() -> None:
    clock = Clock()
    recent, readings = Recent(60, clock), iter(range(10))
    recent.get("x", lambda: next(readings))
    clock.now += 0.1
    recent.forget()
    assert recent.get("x", lambda: next(readings)) == 1


def test_a_failure_is_not_kept() -> None:
    recent = Recent(60, Clock())
    with pytest.raises(ValueError, match="no"):
        recent.get("x", _fails)
    assert recent.get("x", lambda: 7) == 7


def test_many_who_ask_at_once_wait_for_one_reading() -> None:
    recent, begun, go = Recent(60), threading.Event(), threading.Event()
    readings = []

    def read() -> int:
        readings.append(1)
        begun.set()
        assert go.wait(10)
        return len(readings)

    with ThreadPoolExecutor(4) as people:
        first = people.submit(recent.get, "x", read)
        assert begun.wait(10)
        others = [people.submit(recent.get, "x", read) for _ in range(3)]
        go.set()
        assert [asked.result(10) for asked in (first, *others)] == [1, 1, 1, 1]


def _fails() -> int:
    raise ValueError("no")
