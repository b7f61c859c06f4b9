"""Draws the demo's timeline: one self-contained HTML page, light and dark, readable in print."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from local.demo.story import Story

STATE_COLOURS = {
    "opened": "#8a8f98",
    "replacing": "#4c78a8",
    "holding": "#f2b134",
    "draining": "#e4572e",
    "gating": "#76b7b2",
    "released": "#59a14f",
    "node": "#4c78a8",
    "new node": "#59a14f",
    "broker down": "#e4572e",
}
OTHER_COLOUR = "#8a8f98"


def figure_svg(story: Story, *, dark: bool) -> str:
    """Draw lanes, ISR and produce latency over one time axis; return the SVG element."""
    ink = "#e8e8ea" if dark else "#22242a"
    with mpl.rc_context(
        {
            "text.color": ink,
            "axes.labelcolor": ink,
            "axes.edgecolor": ink,
            "xtick.color": ink,
            "ytick.color": ink,
            "font.size": 9,
            "svg.fonttype": "none",
            "svg.hashsalt": "stillwater",
        }
    ):
        figure = Figure(figsize=(10, 6.2), layout="constrained")
        lanes, isr, latency = figure.subplots(
            3, 1, sharex=True, gridspec_kw={"height_ratios": [2.2, 1, 1.6]}
        )
        _draw_lanes(lanes, story, ink)
        _draw_isr(isr, story)
        _draw_latency(latency, story)
        for axes in (lanes, isr, latency):
            axes.axvline(0, color=ink, linewidth=0.8, linestyle=":")
            axes.patch.set_alpha(0)
            axes.spines[["top", "right"]].set_visible(False)
        latency.set_xlabel("seconds since the terminate call")
        figure.patch.set_alpha(0)
        sink = io.StringIO()
        figure.savefig(sink, format="svg", metadata={"Date": None})
    text = sink.getvalue()
    return text[text.index("<svg") :]


def _draw_lanes(axes: Any, story: Story, ink: str) -> None:
    names = list(dict.fromkeys(span.lane for span in story.spans))
    for span in story.spans:
        row = len(names) - 1 - names.index(span.lane)
        colour = STATE_COLOURS.get(span.label, OTHER_COLOUR)
        width = max(span.end_s - span.start_s, 0.15)
        axes.barh(row, width, left=span.start_s, height=0.62, color=colour)
        # A label needs its own width; the axis is about 60 s wide and a letter about half a second.
        if width > 0.55 * len(span.label):
            axes.text(
                span.start_s + width / 2,
                row,
                span.label,
                ha="center",
                va="center",
                fontsize=8,
                color="#ffffff" if colour != STATE_COLOURS["holding"] else "#22242a",
            )
    axes.set_yticks(range(len(names)), list(reversed(names)), color=ink)
    axes.tick_params(axis="y", length=0)


def _draw_isr(axes: Any, story: Story) -> None:
    if story.isr:
        at, smallest = zip(*story.isr, strict=True)
        axes.step(at, smallest, where="post", color="#4c78a8", linewidth=1.6)
    axes.set_ylim(0, 3.4)
    axes.set_yticks([0, 1, 2, 3])
    axes.set_ylabel("smallest ISR")


def _draw_latency(axes: Any, story: Story) -> None:
    if story.latency:
        at, milliseconds = zip(*story.latency, strict=True)
        # Thousands of points: as paths they would make the page heavy.
        axes.plot(at, milliseconds, ".", markersize=2, color="#59a14f", rasterized=True)
    axes.set_yscale("log")
    axes.set_ylabel("produce latency, ms")


def _legend(story: Story) -> dict[str, str]:
    """Return the colour of every label on the lanes, for spans too short to carry theirs."""
    return {span.label: STATE_COLOURS.get(span.label, OTHER_COLOUR) for span in story.spans}


def write_page(path: Path, story: Story, result: dict[str, Any], verdicts: list[str]) -> None:
    """Write the timeline page; `verdicts` holds a sentence for everything that failed."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
    )
    page = environment.get_template("timeline.html.j2").render(
        story=story,
        result=result,
        verdicts=verdicts,
        light=figure_svg(story, dark=False),
        dark=figure_svg(story, dark=True),
        legend=_legend(story),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
