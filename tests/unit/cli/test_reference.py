"""The reference pages in the repository are what the code says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import reference
from core import timing

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(reference.pages()))
def test_the_checked_in_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text() == reference.pages()[name], "run `make docs`"


def test_every_rule_is_on_the_page() -> None:
    page = reference.timings()
    assert all(f"| {rule.name} |" in page for rule in timing.RULES)
