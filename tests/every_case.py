"""Runs one test over a whole table: each case is tried, and a failure names every one that fails.

`pytest.mark.parametrize` makes a test of each case, which costs milliseconds where the case itself
takes microseconds. It stays where a case takes its time or needs fixtures of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

Ids = Callable[[Any], object] | Iterable[object] | None


def every_case(
    names: str | tuple[str, ...],
    cases: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    ids: Ids = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that hands a test's arguments `names` to it, case by case.

    Cases that take their time to be found are given as a function, which is called by the test.
    """
    named = [each.strip() for each in names.split(",")] if isinstance(names, str) else [*names]
    alone = isinstance(names, str) and len(named) == 1
    # An enumeration is both: its members are meant.
    given = [*cases] if isinstance(cases, Iterable) else cases

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def tried(**fixtures: Any) -> None:
            found = [*(given() if callable(given) else given)]
            table = dict(_table(named, found, ids, alone=alone))
            assert table, "The table has no case."
            failed = {
                id_: error
                for id_, case in table.items()
                if (error := _failure(test, {**case, **fixtures})) is not None
            }
            if failed:
                first = next(iter(failed.values()))
                raise AssertionError(_report(failed, of=len(table))) from first

        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in named]
        # What is left is fixtures, which pytest reads from here.
        tried.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return tried

    return decorated


def _table(
    named: list[str], cases: list[Any], ids: Ids, *, alone: bool
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    given = [None] * len(cases) if ids is None or callable(ids) else [*ids]
    used: set[str] = set()
    for number, (case, id_) in enumerate(zip(cases, given, strict=True)):
        marked = isinstance(case, type(pytest.param()))
        values = case.values if marked else (case,) if alone else tuple(case)
        shown = "-".join(str(ids(each)) if callable(ids) else repr(each) for each in values)
        name = str(case.id if marked and case.id is not None else shown if id_ is None else id_)
        # Two cases may be called the same; none may hide the other.
        name = f"{name} ({number})" if name in used else name
        used.add(name)
        yield name, dict(zip(named, values, strict=True))


def _failure(test: Callable[..., None], arguments: Mapping[str, Any]) -> BaseException | None:
    try:
        test(**arguments)
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - it is told with the rest
        return error
    return None


def _report(failed: Mapping[str, BaseException], *, of: int) -> str:
    told = [
        f"[{id_[:200]}] {type(error).__name__}: {error}".rstrip(": ")
        for id_, error in failed.items()
    ]
    return "\n".join([f"{len(failed)} of {of} cases fail:", *told])
