"""Writes down, prints and draws what bench.resync measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.refill.measuring import Measured
from core.cost import resync
from core.ground.errors import StillwaterError

MB = resync.BYTES_PER_MB


def row(measured: Measured, replication_bytes_per_s: float) -> dict[str, Any]:
    """Return one way back as measured and as predicted, with the error of each figure."""
    predicted = measured.prediction(replication_bytes_per_s)
    if isinstance(predicted, resync.Divergence):
        raise StillwaterError(f"A way back that ended was to have none: {predicted.sentence}")
    case = measured.case
    return {
        "path": case.path,
        "stop": case.stop,
        "disk_mb_per_s": case.disk_bytes_per_s and case.disk_bytes_per_s / MB,
        "held_mb": round(measured.held_bytes / MB, 1),
        "append_mb_per_s": round(measured.append_bytes_per_s / MB, 3),
        "outage_s": round(measured.outage_seconds, 2),
        "start_s": round(measured.start_seconds, 2),
        "seconds": round(measured.seconds, 2),
        "model_seconds": round(predicted.seconds, 2),
        "seconds_error": round(measured.seconds / predicted.seconds - 1, 3),
        "mb": round(measured.bytes_in / MB, 2),
        "model_mb": round(predicted.gross_bytes / MB, 2),
        "mb_error": round(measured.bytes_in / predicted.gross_bytes - 1, 3),
        "head_start_mb": round(measured.head_start_bytes(replication_bytes_per_s) / MB, 2),
        "incremental_mb": round(predicted.incremental_bytes / MB, 2),
    }


def plain(rows: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return the rows of one path in which nothing else was wrong."""
    return [
        each
        for each in rows
        if each["path"] == path and each["stop"] == "clean" and each["disk_mb_per_s"] is None
    ]


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of DESIGN.md section 9; ratios are those of the largest size."""
    kept, emptied = plain(rows, "kept")[-1], plain(rows, "emptied")[-1]
    errors = [abs(each[name]) for each in rows for name in ("seconds_error", "mb_error")]
    return {
        "bytes_ratio": round(emptied["mb"] / kept["mb"], 1),
        "time_ratio": round(emptied["seconds"] / kept["seconds"], 1),
        "model_error_max": max(errors),
        "sizes": len(plain(rows, "emptied")),
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the ways back side by side."""
    table = Table(
        *("directory", "stop", "disk MB/s", "held MB", "away s"),
        *("seconds", "model", "error", "MB", "model", "error"),
    )
    for each in rows:
        table.add_row(
            *(each["path"], each["stop"], str(each["disk_mb_per_s"] or "-")),
            *(f"{each['held_mb']:.0f}", f"{each['outage_s']:.1f}"),
            *(f"{each['seconds']:.1f}", f"{each['model_seconds']:.1f}"),
            f"{each['seconds_error']:+.0%}",
            *(f"{each['mb']:.1f}", f"{each['model_mb']:.1f}", f"{each['mb_error']:+.0%}"),
        )
    Console(width=120).print(table)


def draw(
    rows: Sequence[dict[str, Any]], replication_bytes_per_s: float, paths: Sequence[Path]
) -> None:
    """Draw what was measured as points, the model as lines, over what a broker holds."""
    import matplotlib as mpl  # noqa: PLC0415 - a second that nobody else needs
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415 - the same

    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    shown = plain(rows, "kept") + plain(rows, "emptied")
    held = [each["held_mb"] for each in shown]
    span = [0.8 * min(held), 1.25 * max(held)]
    mean = {
        name: sum(each[name] for each in shown) / len(shown)
        for name in ("append_mb_per_s", "outage_s")
    }
    flow = resync.Flow(
        append_bytes_per_s=mean["append_mb_per_s"] * MB,
        replication_bytes_per_s=replication_bytes_per_s,
    )
    outage = mean["outage_s"]
    for path, name, colour in (
        ("kept", "EBS: the directory came back", "tab:blue"),
        ("emptied", "NVMe: an empty one", "tab:red"),
    ):
        ways = [
            resync.after_outage(flow, outage_seconds=outage)
            if path == "kept"
            else resync.after_loss(flow, outage_seconds=outage, held_bytes=megabytes * MB)
            for megabytes in span
        ]
        ended = [way for way in ways if isinstance(way, resync.CatchUp)]
        points = plain(rows, path)
        for axis, key, line in (
            (axes[0], "seconds", [way.seconds for way in ended]),
            (axes[1], "mb", [way.gross_bytes / MB for way in ended]),
        ):
            axis.plot(span, line, color=colour, linewidth=1, label=f"{name}, model")
            axis.plot(
                [each["held_mb"] for each in points],
                [each[key] for each in points],
                *("o",),
                color=colour,
                label=f"{name}, measured",
            )
    for axis, what in ((axes[0], "seconds to full ISR"), (axes[1], "MB replicated")):
        axis.set(xscale="log", yscale="log", xlabel="MB the broker holds", ylabel=what)
        axis.grid(visible=True, which="both", alpha=0.2)
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(LogFormatter())
            side.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
    axes[0].legend(fontsize="small")
    # Text stays text, and the same figures give the same bytes.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillwater"}):
        for file in paths:
            undated = {"Date": None} if file.suffix == ".svg" else None
            figure.savefig(file, dpi=120, metadata=undated)
