"""Each page that calls a person has a runbook, and each side exit an explanation."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from core.incidents.actions import runbook
from core.incidents.record import State
from tests.every_case import every_case
from tests.unit.docs import markdown

SOURCES = [
    path
    for package in ("core", "handlers")
    for path in sorted((markdown.REPOSITORY / package).rglob("*.py"))
]
RUNBOOKS = sorted((markdown.REPOSITORY / "docs" / "runbooks").glob("*.md"))
SIDE_EXITS = (State.RIDDEN_THROUGH, State.CANCELLED, State.RETAINED, State.LOST)


def keys(source: str) -> Iterator[str]:
    """Yield the keys of the pages a module sends.

    They stand in `Page(key, ...)`, in `retain(incident, key, ...)`, and in a log line's `page=`.
    What names an object, as budget:NAME does, is found by what stands before the name.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        place = {"Page": 0, "retain": 1}.get(name)
        values = [] if place is None else node.args[place : place + 1]
        values += [k.value for k in node.keywords if k.arg in ("page", "key") and place is not None]
        values += [k.value for k in node.keywords if k.arg == "page" and place is None]
        yield from (word for value in values for word in _words(value))


def _words(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.JoinedStr):
        value = value.values[0]
    if isinstance(value, ast.IfExp):
        yield from _words(value.body)
        yield from _words(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


@functools.cache
def sent() -> Sequence[str]:
    return sorted({key for path in SOURCES for key in keys(path.read_text())})


@functools.cache
def _spans() -> set[str]:
    return {span for page in RUNBOOKS for span in markdown.spans(page)}


@every_case("key", sent)
def test_every_page_has_its_runbook_of_one_screen(key: str) -> None:
    page = markdown.REPOSITORY / runbook(key, "docs/runbooks")
    lines = page.read_text().splitlines()
    assert lines[0].startswith(f"# `{page.stem}`: ")
    assert [line for line in lines if line.startswith("## ")] == [
        "## Look",
        "## Do",
        "## Fixed when",
    ]
    assert len(lines) < 40


@every_case("state", SIDE_EXITS, ids=lambda state: state.value)
def test_every_side_exit_is_explained(state: State) -> None:
    assert state.value in _spans()


def test_keys_are_found_however_they_are_written() -> None:
    source = """
def decide(page):
    stay(incident, policy, reason, Page("one", reason))
    retain(incident, "two", reason)
    Page(f"three:{name}", reason)
    Page("four" if late else "five", reason)
    logger.critical(reason, page="six")
    logger.critical(reason, page=key)
"""
    assert sorted(keys(source)) == ["five", "four", "one", "six", "three:", "two"]


def test_the_search_finds_what_the_loop_sends() -> None:
    assert {"hold_limit", "no_capacity", "zone_lost", "budget:"} <= set(sent())
