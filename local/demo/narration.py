"""Says what happens while it happens: one line per real event, with the seconds since the start."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from local.demo.story import DECISIONS, Moment

COLUMNS = 112
SOURCE_STYLES = {
    DECISIONS: "bold cyan",
    "aws": "yellow",
    "kubelet": "green",
    "strimzi": "magenta",
}


class Narrator:
    """Writes the demo's narrative to a console, and keeps it for a picture."""

    def __init__(self, console: Console, started: float) -> None:
        self._console = console
        self._started = started
        self._kept = Console(file=io.StringIO(), width=COLUMNS, record=True)

    def chapter(self, title: str) -> None:
        self._print(Text())
        self._print(Text(title, style="bold"))

    def say(self, sentence: str) -> None:
        self._line(time.time() - self._started, "", sentence, "")

    def moment(self, moment: Moment) -> None:
        """Tell one event of the rotation; its time counts from the terminate call."""
        self._line(moment.at_s, moment.source, moment.text, SOURCE_STYLES.get(moment.source, ""))

    def _line(self, seconds: float, source: str, text: str, style: str) -> None:
        line = Text(f"{seconds:7.1f} s  ", style="dim")
        line.append(f"{source:<11}", style=style)
        line.append(text)
        self._print(line)

    def _print(self, line: Text) -> None:
        self._kept.print(line)
        self._console.print(line, soft_wrap=True)

    def draw(self, path: Path, title: str) -> None:
        """Write what was printed as an SVG, which asks no other host for its fonts."""
        drawn = self._kept.export_svg(title=title)
        path.write_text(re.sub(r"@font-face\s*{[^}]*}", "", drawn), encoding="utf-8")
