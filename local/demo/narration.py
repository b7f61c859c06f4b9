"""Says what happens while it happens: one line per real event, with the seconds since the start."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.console import Console
from rich.text import Text

from local.demo.story import DECISIONS, Moment

COLUMNS, ROWS = 112, 26
CHARACTER_PX, ROW_PX, MARGIN_PX = 7.3, 18, 14
LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 1.4, 0.12
LAST_SCREEN_S = 8.0
COLOURS = {
    "bold cyan": "#5fd7ff",
    "yellow": "#e5c07b",
    "green": "#98c379",
    "magenta": "#d38aea",
    "dim": "#8a919d",
    "bold": "#ffffff",
}
PAPER, INK = "#1b1f27", "#d7dae0"


@dataclass(frozen=True)
class Printed:
    """One line as it was printed, so many seconds after the run began."""

    at_s: float
    text: Text


@dataclass(frozen=True)
class _Row:
    shown_at_s: float
    text: Text


def svg(lines: Sequence[Printed], title: str) -> str:
    """Return the recording of what was printed."""
    rows = _rows(lines)
    if not rows:
        return ""
    whole = rows[-1].shown_at_s + LAST_SCREEN_S
    width, height = COLUMNS * CHARACTER_PX + 2 * MARGIN_PX, ROWS * ROW_PX + 2 * MARGIN_PX
    drawn = "\n".join(_row_svg(row, index) for index, row in enumerate(rows))
    box = f"0 0 {width:.0f} {height}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img">
<title>{escape(title)}</title>
<style>text {{ font: 12px ui-monospace, Menlo, Consolas, monospace; fill: {INK}; white-space: pre }}
@media (prefers-reduced-motion: reduce) {{ .row, .all {{ animation: none !important }} }}
.row, .all {{ animation-duration: {whole:.2f}s; animation-iteration-count: infinite;
animation-timing-function: step-end }}
{_frames(rows, whole)}</style>
<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>
<svg x="{MARGIN_PX}" y="{MARGIN_PX}" width="{width - 2 * MARGIN_PX:.0f}" height="{ROWS * ROW_PX}">
<g class="all" style="animation-name: up; transform: translateY({_top(len(rows))}px)">
{drawn}
</g></svg></svg>
"""


def write(path: Path, lines: Sequence[Printed], title: str) -> None:
    """Write the recording of what was printed."""
    path.write_text(svg(lines, title), encoding="utf-8")


def _rows(lines: Sequence[Printed]) -> list[_Row]:
    """Return what fits into the window's columns, each with the second it appears at."""
    rows: list[_Row] = []
    clock, before = 0.0, lines[0].at_s if lines else 0.0
    for line in lines:
        pause = (line.at_s - before) / 4
        clock += min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, pause))
        before = line.at_s
        width = COLUMNS
        text = line.text.copy()
        while True:
            cut = _cut(text, width)
            head, text = text.divide([cut]) if cut < len(text) else (text, Text())
            rows.append(_Row(clock, head))
            if not text:
                break
            text = Text(" " * 23) + text
    return rows


def _cut(text: Text, width: int) -> int:
    if len(text) <= width:
        return len(text)
    space = text.plain.rfind(" ", 30, width)
    return space + 1 if space > 0 else width


def _top(shown: int) -> int:
    return -ROW_PX * max(0, shown - ROWS)


def _frames(rows: Sequence[_Row], whole: float) -> str:
    """Return when each row appears, and when the window moves up."""
    frames = {0.0: 0}
    for shown, row in enumerate(rows, start=1):
        frames[100 * row.shown_at_s / whole] = _top(shown)
    steps = " ".join(f"{at:.2f}% {{ transform: translateY({y}px) }}" for at, y in frames.items())
    appear = "\n".join(
        f"@keyframes r{index} {{ 0% {{ opacity: 0 }} "
        f"{100 * row.shown_at_s / whole:.2f}%, 100% {{ opacity: 1 }} }}"
        for index, row in enumerate(rows)
    )
    return f"@keyframes up {{ {steps} }}\n{appear}\n"


def _row_svg(row: _Row, index: int) -> str:
    spans = []
    plain = row.text.plain
    edges = sorted({0, len(plain), *(e for s in row.text.spans for e in (s.start, s.end))})
    for start, end in itertools.pairwise(edges):
        style = next((str(s.style) for s in row.text.spans if s.start <= start < s.end), "")
        style = style or str(row.text.style)
        fill = f' fill="{COLOURS[style]}"' if style in COLOURS else ""
        spans.append(f"<tspan{fill}>{escape(plain[start:end])}</tspan>")
    y = (index + 1) * ROW_PX - 5
    return (
        f'<text class="row" style="animation-name: r{index}" xml:space="preserve" y="{y}">'
        f"{''.join(spans)}</text>"
    )


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
