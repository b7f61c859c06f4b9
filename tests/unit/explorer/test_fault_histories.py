"""Histories of outages and of other people's automation, played with the shipped functions.

Of each: no rule of the explorer's breaks, every incident ends as it is said there, and who is
called is called with those words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explorer.histories import OF_MACHINES, History
from tests.explorer.histories_of_services import OF_SERVICES
from tests.explorer.history import played
from tests.explorer.stage import Stage, explored


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with explored() as wired:
        yield wired


@pytest.mark.parametrize("history", [*OF_MACHINES, *OF_SERVICES], ids=lambda h: h.what)
def test_a_history_of_faults_ends_as_it_should(stage: Stage, history: History) -> None:
    world = played(stage, history.scenario, history.told)
    assert world.broken == ()
    said = {f"{i.id} {i.state}": i.reason for i in world.incidents.values()}
    assert sorted(said) == sorted(history.ends.split(", ")), said
    pages = {key for _, key in world.paged}
    assert pages >= history.pages
    assert not (history.quiet and pages), pages
