"""Prints what commands say: sentences and tables, findings, and the JSON of `--json`.

The terminal breaks sentences. A table too wide to show uncut becomes a line per cell; into a pipe
a table is as wide as it is. With `--json` stdout has JSON alone, refusals included; progress,
questions and a refusal's sentence go to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.status import Status
from rich.table import Table
from rich.text import Text

from core.checks.finding import Finding, Weight
from core.ground.errors import InvalidInput, StillwaterError

# Of a pipe or a log, which nobody's window cuts.
WIDE = 240
ENDLESS = 1_000_000


class Terminal(Console):
    """A console for sentences and tables; what is printed holds no markup."""

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        # No emoji: FILE:100:7 has one in it.
        plain: Any = {"soft_wrap": True, "markup": False, "emoji": False, "highlight": False}
        super().__init__(stderr=stderr, file=file, width=width, **plain)
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

    def status(self, status: RenderableType, **options: Any) -> Status:
        """Show what is under way; a spinner reads markup in a string on any console."""
        return super().status(Text(status) if isinstance(status, str) else status, **options)

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
        path.write_text(text, encoding="utf-8", errors="replace")
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


FLAG = "--json"


def write(document: object) -> None:
    """Write one document to stdout, at once: the command may go on."""
    sys.stdout.write(f"{json.dumps(document, indent=2)}\n")
    sys.stdout.flush()


def refusal(sentence: str, exit_code: int, problems: Sequence[str] = ()) -> str:
    """Return a refusal as one line of JSON, which may also end a stream of lines."""
    said = {"exit_code": exit_code, "error": sentence, "problems": list(problems or [sentence])}
    return json.dumps(said)


def problems_of(error: BaseException) -> Sequence[str]:
    """Return an error's sentences apart, where it has several."""
    found: Sequence[str] = getattr(error, "problems", ())
    return found


@contextmanager
def refusals(exit_code: int, *, as_json: bool) -> Iterator[None]:
    """End a command whose block is refused with an exit code of its own, and say why."""
    try:
        yield
    except StillwaterError as error:
        Terminal(stderr=True).print(str(error), style="red")
        if as_json:
            sys.stdout.write(f"{refusal(str(error), exit_code, problems_of(error))}\n")
        raise typer.Exit(exit_code) from None


STYLES = {
    Weight.REFUSED: "red",
    Weight.BROKER: "red",
    Weight.PRODUCER: "red",
    Weight.EXPOSED: "yellow",
    Weight.DRIFT: "red",
    Weight.UNKNOWN: "yellow",
    Weight.ADVICE: "",
}


def show_findings(found: Sequence[Finding], console: Console, verdict: str = "") -> None:
    """Print each finding on a line of its own, to be copied, and a verdict where there is one."""
    for each in found:
        console.print(Text(each.line, STYLES[each.weight]), soft_wrap=True)
    if verdict:
        console.print(Text(verdict), soft_wrap=True)


def counted(found: Sequence[Finding]) -> str:
    """Return how many findings there are of each weight: 2 x a broker may die, 1 x unknown."""
    counts = {weight: sum(each.weight is weight for each in found) for weight in Weight}
    return ", ".join(f"{count} x {weight}" for weight, count in counts.items() if count)


_SPAN = re.compile(r"\+?(\d{1,5})\s*(min|h|d)")
_UNITS = {"min": 60, "h": 3_600, "d": 86_400}


def seconds_of(said: str, option: str) -> float:
    """Return a duration in seconds; raise InvalidInput where an option has none.

    >>> seconds_of("45min", "--deadline")
    2700.0
    """
    if (found := _seconds_in(said)) is None:
        raise InvalidInput([f"{option} {said!r} is not a duration; write 90min, 2h or 1d."])
    return found


def moment_of(said: str, now: float) -> float:
    """Return the moment a person means: +90min, 2h, 1d, or an ISO 8601 time (UTC if it names none).

    >>> moment_of("2h", 100.0)
    7300.0
    """
    if (seconds := _seconds_in(said)) is not None:
        return now + seconds
    try:
        found = datetime.fromisoformat(said.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(
            [f"--until {said!r} is not a time; write 90min, 2h, 1d or 2026-11-20T18:00 (UTC)."]
        ) from None


def _seconds_in(said: str) -> float | None:
    found = _SPAN.fullmatch(said.strip())
    return None if found is None else float(int(found[1]) * _UNITS[found[2]])
