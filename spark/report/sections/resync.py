"""Makes the section of rotations: measured, modelled, and without the volumes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from core.cost.pricing import total
from spark.report import document, plot
from spark.report.document import Cell, Plot, Section
from spark.report.evidence import Evidence
from spark.report.words import count, dollars, duration, rate, size
from spark.rows import Found
from spark.transforms.rotations import RotationForecast, forecast

ROTATIONS_SHOWN = 100
DRAWN = 12


def section(evidence: Evidence) -> Section | None:
    """Return what the month's rotations took, or None without one."""
    rows = sorted(evidence.resync, key=lambda row: (row.started_at, row.incident))
    if not rows:
        return None
    ahead = forecast(rows)
    drawn = [row for row in rows if row.total_seconds is not None][-DRAWN:]
    currency = evidence.report.currency
    table = document.table(
        "resync",
        currency,
        rows[::-1],
        partial(_cells, currency=currency),
        key=lambda row: f"rotation-{row.incident}",
        most=ROTATIONS_SHOWN,
    )
    plots = [_plot(drawn)] if drawn else []
    return document.told("resync", _sentences(rows, ahead, currency), [table], plots)


def _sentences(rows: Sequence[Found], ahead: RotationForecast | None, currency: str) -> list[str]:
    incremental = _sum(rows, "incremental_cost")
    empty = _sum(rows, "empty_cost")
    timed = [row for row in rows if row.total_seconds is not None]
    said = [f"The report has {count(len(rows), 'rotation')}."]
    if timed:
        longest = max(timed, key=lambda row: row.total_seconds)
        said.append(
            f"The longest rotation kept broker {longest.node_id} out of an ISR for "
            f"{duration(longest.total_seconds)}."
        )
    if any(row.gross_cost is not None for row in rows):
        moved = sum(row.moved_bytes or 0 for row in rows)
        said.append(
            f"Replication moved {size(moved)} to catch up; the gross cost is "
            f"{dollars(_sum(rows, 'gross_cost'), currency)} {currency}."
        )
        said.append(
            f"The incremental cost of the rotations is {dollars(incremental, currency)} {currency}."
        )
    if empty:
        said.append(
            f"On local disks the same rotations copy all data and cost "
            f"{dollars(empty, currency)} {currency}."
        )
    said += _model_error(rows)
    if ahead is not None:
        said += _ahead(ahead, currency)
    return said


def _ahead(ahead: RotationForecast, currency: str) -> list[str]:
    seconds = ahead.down_seconds + (ahead.catch_up_seconds or 0.0)
    said = [f"The forecast for the next rotation is {duration(seconds)}."]
    if ahead.rotations > 1:
        said.append(
            f"The range of {count(ahead.rotations, 'rotation')} is {duration(ahead.low_seconds)} "
            f"to {duration(ahead.high_seconds)}."
        )
    if ahead.empty_seconds is not None:
        priced = ""
        if ahead.empty_cost is not None:
            priced = f" and costs {dollars(ahead.empty_cost, currency)} {currency}"
        said.append(f"Without its volume it takes {duration(ahead.empty_seconds)}{priced}.")
    return said


def _model_error(rows: Sequence[Found]) -> list[str]:
    """Return how far the model is from the measured times, within one sample."""
    both = [r for r in rows if r.catch_up_seconds is not None and r.model_seconds is not None]
    if not both:
        return []
    within = [r for r in both if abs(r.catch_up_seconds - r.model_seconds) <= r.resolution_seconds]
    said = [
        (
            f"The modelled catch-up is within one sample of the measured time in {len(within)} of "
            f"{count(len(both), 'rotation')}."
        )
    ]
    if len(within) < len(both):
        worst = max(both, key=lambda r: abs(r.catch_up_seconds - r.model_seconds))
        said.append(
            f"The largest error is {duration(worst.model_seconds)} modelled against "
            f"{duration(worst.catch_up_seconds)} measured."
        )
    return said


def _name(row: Found) -> str:
    return f"broker {row.node_id}, {row.started_at:%Y-%m-%d %H:%M} UTC"


def _cells(row: Found, currency: str) -> tuple[Cell, ...]:
    step = row.resolution_seconds
    note = f"\N{PLUS-MINUS SIGN}{duration(step)}" if step is not None else "from the ledger alone"
    away = row.down_seconds if row.down_seconds is not None else row.total_seconds
    return (
        Cell(
            _name(row),
            f"{row.started_at:%Y-%m-%dT%H:%M:%S}",
            note=f"{row.incident}, {row.kind}, {row.outcome}",
        ),
        document.figure(duration(away), away, note),
        document.figure(duration(row.catch_up_seconds), row.catch_up_seconds),
        document.figure(duration(row.model_seconds), row.model_seconds, row.rate_from or ""),
        document.figure(size(row.moved_bytes), row.moved_bytes, rate(row.append_bytes_per_s)),
        document.paid(row.gross_cost, currency),
        document.paid(row.incremental_cost, currency),
        document.figure(duration(row.empty_seconds), row.empty_seconds),
        document.paid(row.empty_cost, currency),
    )


def _plot(rows: Sequence[Found]) -> Plot:
    names = [_name(row) for row in rows]
    parts = {
        "--c3": [float(row.down_seconds or row.total_seconds) for row in rows],
        "--c1": [float(row.catch_up_seconds or 0) for row in rows],
    }
    # Bars of one name would be drawn over each other.
    unique = [name + "\N{ZERO WIDTH SPACE}" * index for index, name in enumerate(names)]
    svg = plot.bars("Rotations: time out of an ISR", unique, parts, "seconds out of an ISR")
    return Plot(svg, (("Away", "--c3"), ("Catch-up", "--c1")))


def _sum(rows: Sequence[Found], name: str) -> Decimal:
    return total(getattr(row, name) for row in rows if getattr(row, name) is not None)
