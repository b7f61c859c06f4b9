"""Says what happens while it happens: one line per real event, with the seconds since the start."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from local.demo.recording import Printed
from local.demo.story import DECISIONS, Moment

SOURCE_STYLES = {
    DECISIONS: "bold cyan",
    "aws": "yellow",
    "kubelet": "green",
    "strimzi": "magenta",
}


class Narrator:
    """Writes the demo's narrative to a console."""

    def __init__(self, console: Console, started: float) -> None:
        self._console = console
        self._started = started
        self.printed: list[Printed] = []

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
        self.printed.append(Printed(time.time() - self._started, line))
        self._console.print(line, soft_wrap=True)
