"""How files of this house are written: what is read first says what a module does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import house

REPOSITORY = Path(__file__).parents[2]
PRODUCT = (
    *("core", "infra", "stacks", "handlers", "spark"),
    *("cli", "local", "reference", "stillwater", "bench"),
)
_BEGINS = re.compile(r'"""(.*?)"""', re.DOTALL)
# "What a volume needs" names a subject; "Sizes a volume" says what the module does in the flow.
QUESTIONS = {"What", "Who", "Whom", "Where", "When", "How", "Whatever", "Whether"}


def _modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((REPOSITORY / package).rglob("*.py"))


def _docstring(text: str) -> str:
    """Return a module's docstring; only where it begins otherwise all of it is parsed for one."""
    begins = _BEGINS.match(text)
    return begins[1] if begins else ast.get_docstring(ast.parse(text)) or ""


@pytest.mark.parametrize("text", ['"""One."""\nx = 1\n', "# A remark.\n'One.'\n", 'r"""One."""'])
def test_a_docstring_is_found_however_a_module_begins(text: str) -> None:
    assert _docstring(text) == "One."


@pytest.mark.parametrize("package", PRODUCT)
def test_a_module_begins_with_what_it_does(package: str) -> None:
    asks = []
    for module in _modules(package):
        words = _docstring(module.read_text()).split()
        if words and words[0] in QUESTIONS:
            asks.append(f"{module.relative_to(REPOSITORY)}: {words[0]}")
    assert asks == []


def test_no_folder_is_larger_than_its_ceiling() -> None:
    grown = [each for each in house.folders() if not each.fits]
    assert grown == [], "make it smaller, or raise tests/house.toml with an ADR"


def test_every_folder_of_ours_has_a_ceiling() -> None:
    assert {each.name for each in house.folders()} >= {*PRODUCT, "tests", "components"}
