"""The plot of bench.volumes: how deciding grows, how one volume filled, how all of them fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.filling.race import Ran

COLOURS = {"forecast": "tab:blue", "threshold": "tab:orange"}
WORDS = {"forecast": "Stillwater", "threshold": "pvc-autoresizer, defaults"}


def draw(rows: Sequence[Mapping[str, Any]], raced: Mapping[str, Sequence[Ran]], path: Path) -> None:
    """Write a PNG of three panels."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second that nobody else needs

    figure = Figure(figsize=(15, 4.2), layout="constrained")
    growth, fill, fared = figure.subplots(1, 3)
    _growth(growth, rows)
    _fill(fill, raced)
    _draw_outcomes(fared, raced)
    figure.savefig(path, dpi=120)


def _growth(axis: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    counts = [row["volumes"] for row in rows]
    seconds = [row["seconds"] for row in rows]
    axis.plot(counts, seconds, "o-", label="measured, median")
    each = seconds[0] / counts[0]
    axis.plot(counts, [each * n for n in counts], "--", color="grey", label="linear")
    axis.set(title="Deciding", xlabel="volumes", ylabel="seconds", ylim=(0, None))
    axis.legend()


def _fill(axis: Any, raced: Mapping[str, Sequence[Ran]]) -> None:
    """Draw the volume that stood longest under the threshold."""
    worst = max(range(len(raced["threshold"])), key=lambda n: raced["threshold"][n].hours_full)
    for rule, each in raced.items():
        ran, colour = each[worst], COLOURS[rule]
        days = [hour / 24 for hour in range(len(ran.size))]
        axis.step(days, ran.size, where="post", color=colour, label=WORDS[rule])
        axis.plot(days, ran.used, color=colour, alpha=0.5, linewidth=0.9)
    axis.set(title=f"Volume {worst}: its size, and what it holds", xlabel="days", ylabel="GiB")
    axis.legend()


def _draw_outcomes(axis: Any, raced: Mapping[str, Sequence[Ran]]) -> None:
    for rule, each in raced.items():
        axis.plot(
            [ran.bought_ratio for ran in each],
            [ran.hours_full for ran in each],
            "o",
            color=COLOURS[rule],
            label=WORDS[rule],
        )
    axis.set(
        title="All volumes, two weeks",
        xlabel="bytes paid for per byte held",
        ylabel="hours full: the broker has stopped",
    )
    axis.legend()
