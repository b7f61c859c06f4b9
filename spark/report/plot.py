"""Draws figures as inline SVG that takes its colours from the page.

Text stays text (searchable, and in the page's colour), and the same figures give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

# Stand-ins that matplotlib can print and the page replaces by its own colours.
_INK, _QUIET = "#010203", "#010205"
COLOURS = ("--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--rest")
_STAND_INS = {name: f"#0102{index + 16:02x}" for index, name in enumerate(COLOURS)}
# Narrow, so that its words are read on a phone too, where a page shows it as wide as it can.
WIDTH_INCHES, BAR_INCHES, MARGIN_INCHES = 4.6, 0.36, 0.75


@dataclass
class Drawing:
    """A figure being drawn, and the SVG once it is."""

    axes: Any
    svg: str = field(default="")


@contextmanager
def drawing(label: str, height_inches: float) -> Iterator[Drawing]:
    """Yield axes to draw on; afterwards the drawing's `svg` is an <svg> element."""
    with mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "stillwater",
            "font.size": 10,
            # A `$` in a bill's words is a dollar, and no formula.
            "text.parse_math": False,
        }
    ):
        figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        made = Drawing(axes)
        yield made
        axes.tick_params(colors=_INK, length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    made.svg = _for_the_page(target.getvalue(), label)


def colour(name: str) -> str:
    """Return what stands in for one of the page's colours."""
    return _STAND_INS[name]


def bars(label: str, names: Sequence[str], parts: Mapping[str, Sequence[float]], unit: str) -> str:
    """Return one bar per name, split in parts; a part is called by its colour on the page."""
    with drawing(label, MARGIN_INCHES + BAR_INCHES * len(names)) as made:
        axes = made.axes
        for part, lefts, widths in _stack(parts, len(names)):
            axes.barh(names, widths, left=lefts, color=colour(part), height=0.66)
        axes.invert_yaxis()
        axes.set_xlabel(unit, color=_INK)
        axes.axvline(0, color=_INK, linewidth=0.6)
        axes.locator_params(axis="x", nbins=5)
    return made.svg


def days(
    label: str,
    when: Sequence[date],
    parts: Mapping[str, Sequence[float]],
    unit: str,
    marked: Sequence[date] = (),
) -> str:
    """Return one column per day, split in parts, with a mark above the days that stand out."""
    with drawing(label, 2.6) as made:
        axes, tops = made.axes, [0.0] * len(when)
        for part, bottoms, heights in _stack(parts, len(when)):
            axes.bar(when, heights, bottom=bottoms, color=colour(part), width=0.82)
            ends = zip(tops, bottoms, heights, strict=True)
            tops = [max(top, bottom + height) for top, bottom, height in ends]
        axes.axhline(0, color=_INK, linewidth=0.6)
        top = dict(zip(when, tops, strict=True))
        at = [day for day in marked if day in top]
        highest = max([*tops, 0.0]) or 1.0
        axes.plot(at, [top[day] + 0.05 * highest for day in at], "v", color=_INK, markersize=6)
        _set_dates(axes)
        axes.set_ylabel(unit, color=_INK)
        axes.locator_params(axis="y", nbins=4)
    return made.svg


def _stack(
    parts: Mapping[str, Sequence[float]], length: int
) -> Iterator[tuple[str, list[float], Sequence[float]]]:
    """Yield each part with where it begins: what is given back is stacked below nought."""
    above, below = [0.0] * length, [0.0] * length
    for part, sizes in parts.items():
        starts = [above[i] if size >= 0 else below[i] for i, size in enumerate(sizes)]
        yield part, starts, sizes
        for i, size in enumerate(sizes):
            above[i] += max(size, 0.0)
            below[i] += min(size, 0.0)


def lines(
    label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    across: str,
    up: str,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """Return lines over one axis, called by their colours, with dotted marks across."""
    with drawing(label, 2.7) as made:
        axes = made.axes
        for name, points in series.items():
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, color=colour(name), linewidth=2.4)
        for x, said in marks:
            axes.axvline(x, color=_INK, linewidth=0.8, linestyle=":")
            axes.annotate(
                said,
                (x, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(4, -2),
                textcoords="offset points",
                color=_INK,
                fontsize=9,
                va="top",
            )
        # Room above the highest line, where the marks are called by name.
        axes.set_ylim(bottom=0, top=1.15 * axes.get_ylim()[1])
        axes.set_xlabel(across, color=_INK)
        axes.set_ylabel(up, color=_INK)
        axes.locator_params(nbins=5)
        axes.grid(axis="y", color=_QUIET, linewidth=0.4, alpha=0.5)
    return made.svg


def band(
    label: str,
    points: Sequence[tuple[date, float]],
    ahead: Sequence[tuple[date, float, float, float]],
    unit: str,
) -> str:
    """Return a line through the past and the interval of what is to come."""
    with drawing(label, 2.5) as made:
        axes = made.axes
        axes.plot(*zip(*points, strict=True), color=colour("--c1"), linewidth=2)
        if ahead:
            when, middle, low, high = zip(*ahead, strict=True)
            axes.fill_between(when, low, high, color=colour("--c2"), alpha=0.35, linewidth=0)
            axes.plot(when, middle, color=colour("--c2"), linewidth=2, linestyle="--")
        axes.set_ylim(bottom=0)
        _set_dates(axes)
        axes.set_ylabel(unit, color=_INK)
        axes.locator_params(axis="y", nbins=4)
    return made.svg


def _set_dates(axes: Any) -> None:
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call] # matplotlib
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call] # matplotlib
    axes.xaxis.set_major_formatter(formatter)


def _for_the_page(svg: str, label: str) -> str:
    drawing = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    drawing = drawing.replace(_QUIET, "var(--line)")
    for name, stand_in in _STAND_INS.items():
        drawing = drawing.replace(stand_in, f"var({name})")
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" class="plot" ', 1)
