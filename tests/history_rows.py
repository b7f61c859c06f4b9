"""Reads a table of histories: each row is a line of steps, `=>` and its ending.

A row goes on where the next line is indented; `#` begins a comment, `[...]` a section.
"""

from __future__ import annotations

from collections.abc import Iterator


def rows(table: str) -> Iterator[tuple[str, str]]:
    """Yield the line and the ending of each row."""
    return ((line, ending) for _, line, ending in rows_of_sections(table))


def rows_of_sections(table: str) -> Iterator[tuple[str, str, str]]:
    """Yield the section, the line and the ending of each row; before any section it is empty."""
    section = ""
    for row in table.replace("\n    ", " ").splitlines():
        if row.startswith("["):
            section = row.strip("[]")
        elif row and not row.startswith("#"):
            line, ending = row.split("=>")
            yield section, line.strip(), ending.strip()
