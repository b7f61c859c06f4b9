"""Prints what commands say so that nothing is lost, however narrow the terminal.

A sentence is one line of output, which the terminal breaks. A table whose words would have to be
cut is a line per cell instead; where nobody watches, a table is as wide as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from core.ground.errors import StillwaterError

# Of a pipe or a log, which nobody's window cuts.
WIDE = 240
ENDLESS = 1_000_000


class Terminal(Console):
    """A console for sentences and tables; what is printed holds no markup."""

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        super().__init__(
            stderr=stderr, file=file, width=width, soft_wrap=True, markup=False, highlight=False
        )
        if width is None and not self.is_terminal:
            self.width = WIDE

    def print(self, *objects: Any, **options: Any) -> None:
        for each in objects:
            if isinstance(each, Table | Group):
                for part in self._uncut(each):
                    super().print(part, **{"soft_wrap": isinstance(part, Text), **options})
            else:
                super().print(each, **options)
        if not objects:
            super().print(**options)

    def _uncut(self, shown: RenderableType) -> Iterator[RenderableType]:
        """Yield what says the same without a word cut."""
        if isinstance(shown, Group):
            for part in shown.renderables:
                yield from self._uncut(part)
        elif isinstance(shown, Table) and not self._fits(shown):
            yield from records(shown)
        else:
            yield shown

    def _fits(self, table: Table) -> bool:
        unbounded = self.options.update(max_width=ENDLESS)
        return Measurement.get(self, unbounded, table).minimum <= self.width


def say(console: Console, sentence: object, style: str | None = None) -> None:
    """Print a sentence, or a line of JSON, as it is on any console: no markup, nothing cut."""
    console.print(sentence, style=style, markup=False, highlight=False, soft_wrap=True)


def write_page(path: Path, text: str) -> None:
    """Write a page where somebody asked for it; raise StillwaterError where it cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StillwaterError(
            f"{path} cannot be written: {error.strerror}; name a file in a directory of yours."
        ) from None


def somebody_answers(console: Console) -> bool:
    """Say whether a question reaches a person: what is asked is seen, and what is typed is read.

    A script that runs in a terminal may have its input from elsewhere, or from nowhere.
    """
    shown = console.is_terminal and console.is_interactive
    return shown and sys.stdin is not None and sys.stdin.isatty()


def records(table: Table) -> Iterator[Text]:
    """Yield a table's rows as lines, a cell each behind its column's name."""
    for row in zip(*(column.cells for column in table.columns), strict=True):
        for column, cell in zip(table.columns, row, strict=True):
            said = cell if isinstance(cell, Text) else Text(str(cell))
            if said.plain:
                name = str(column.header)
                yield Text.assemble((f"{name}: ", "dim") if name else "", said)
        yield Text()
