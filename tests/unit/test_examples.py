"""A property tries the same in every run: no order, import or change makes other examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[str]:
    found: list[str] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(st.text())
    def keeps(text: str) -> None:
        found.append(text)

    keeps()
    return found


@pytest.fixture
def _as_usual() -> Iterator[None]:
    """Whoever looks longer looks at random, but for this."""
    chosen = settings.get_current_profile_name()
    settings.load_profile("usual")
    yield
    settings.load_profile(chosen)


@pytest.mark.usefixtures("_as_usual")
def test_the_same_examples_are_tried_whatever_else_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = drawn()
    more = ModuleType("more")
    more.__file__ = str(tmp_path / "more.py")
    Path(more.__file__).write_text("WORD = 'sesame'")
    monkeypatch.setitem(sys.modules, "more", more)
    assert drawn() == before
