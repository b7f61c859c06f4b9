"""Measures the house against its ceilings (house.toml); `python -m tests.house` prints them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_name("house.toml")


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder's Python, and how much of it there may be."""

    name: str
    lines: int
    files: int
    most_lines: int
    most_files: int

    @property
    def fits(self) -> bool:
        return self.lines <= self.most_lines and self.files <= self.most_files


def folders() -> list[Folder]:
    """Return every folder that has a ceiling, measured."""
    ceilings = tomllib.loads(CEILINGS.read_text())
    found = []
    for name, most in ceilings.items():
        modules = list((REPOSITORY / name).rglob("*.py"))
        lines = sum(len(module.read_text().splitlines()) for module in modules)
        found.append(Folder(name, lines, len(modules), most["lines"], most["files"]))
    return found


if __name__ == "__main__":
    for folder in folders():
        print(  # noqa: T201 - a command
            f"{folder.name:<11}{folder.lines:>7} of {folder.most_lines:>7} lines"
            f"{folder.files:>5} of {folder.most_files:>4} files"
        )
