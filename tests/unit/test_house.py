"""How files of this house are written: what is read first says what a module does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PRODUCT = ("core", "infra", "stacks", "handlers", "spark", "cli", "local", "stillwater", "bench")
LONGEST_LINES = 400
# "What a volume needs" names a subject; "Sizes a volume" says what the module does in the flow.
QUESTIONS = {"What", "Who", "Whom", "Where", "When", "How", "Whatever", "Whether"}


def _modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((REPOSITORY / package).rglob("*.py"))


@pytest.mark.parametrize("package", PRODUCT)
def test_a_module_begins_with_what_it_does(package: str) -> None:
    asks = []
    for module in _modules(package):
        words = (ast.get_docstring(ast.parse(module.read_text())) or "").split()
        if words and words[0] in QUESTIONS:
            asks.append(f"{module.relative_to(REPOSITORY)}: {words[0]}")
    assert asks == []


def test_no_file_is_longer_than_somebody_reads() -> None:
    lengths = {
        str(module.relative_to(REPOSITORY)): len(module.read_text().splitlines())
        for module in _modules(*PRODUCT, "tests")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_LINES} == {}
