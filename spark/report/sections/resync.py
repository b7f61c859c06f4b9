"""Evidence of what rotations took and cost: measured, modelled, and without the volumes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from core.cost.pricing import total
from spark.report import cells, plot
from spark.report.document import Cell, Column, Plot, ReportTable, Row, Section, first_rows
from spark.report.evidence import Evidence, Found
from spark.report.next_rotation import RotationForecast, forecast
from spark.report.words import count, dollars, duration, rate, size

ROTATIONS_SHOWN = 100
DRAWN = 12
METHOD = (
    "A broker that comes back with its volume misses what was appended while it was away: "
    "behind = W D, with W bytes a second and D seconds. At a replication rate R it is in sync "
    "after T = W D / (R - W), having moved R T. Without its volume it misses all it held, S, and "
    "needs S / (R - W). Gross money is for every byte moved between zones, on both sides; "
    "incremental for those that replication would not have copied anyway, which with a volume are "
    "about none. Times are read from the brokers' own counters and are off by a sample's step at "
    "most; R is the fastest catch-up seen before, or the tightest known limit."
)


def section(evidence: Evidence) -> Section | None:
    """Return what the month's rotations took, or None without one."""
    rows = sorted(evidence.resync, key=lambda row: (row.started_at, row.incident))
    if not rows:
        return None
    ahead = forecast(rows)
    drawn = [row for row in rows if row.total_seconds is not None][-DRAWN:]
    return Section(
        key="resync",
        title="What rotations took and cost",
        sentences=tuple(_sentences(rows, ahead, evidence.report.currency)),
        plots=(_plot(drawn),) if drawn else (),
        tables=(_table(rows, evidence.report.currency),),
        method=METHOD,
    )


def _sentences(rows: Sequence[Found], ahead: RotationForecast | None, currency: str) -> list[str]:
    incremental = _sum(rows, "incremental_cost")
    empty = _sum(rows, "empty_cost")
    timed = [row for row in rows if row.total_seconds is not None]
    said = [f"{count(len(rows), 'rotation')} in the window of this report."]
    if timed:
        longest = max(timed, key=lambda row: row.total_seconds)
        said[0] = (
            f"{count(len(rows), 'rotation')}; the longest kept broker {longest.node_id} out of an "
            f"ISR for {duration(longest.total_seconds)}."
        )
    if any(row.gross_cost is not None for row in rows):
        moved = sum(row.moved_bytes or 0 for row in rows)
        said.append(
            f"Replication moved {size(moved)} to catch up, "
            f"{dollars(_sum(rows, 'gross_cost'), currency)} {currency} gross and "
            f"{dollars(incremental, currency)} {currency} more than without the rotations."
        )
    if empty:
        said.append(
            f"With disks inside the instances the same rotations would have copied everything: "
            f"{dollars(empty, currency)} {currency}."
        )
    model = _model_error(rows)
    if model:
        said.append(model)
    if ahead is not None:
        said.append(_ahead(ahead, currency))
    return said


def _ahead(ahead: RotationForecast, currency: str) -> str:
    total_seconds = ahead.down_seconds + (ahead.catch_up_seconds or 0.0)
    between = ""
    if ahead.rotations > 1:
        between = f", between {duration(ahead.low_seconds)} and {duration(ahead.high_seconds)}"
    empty = ""
    if ahead.empty_seconds is not None:
        priced = ""
        if ahead.empty_cost is not None:
            priced = f" and {dollars(ahead.empty_cost, currency)} {currency}"
        empty = f"; without its volume {duration(ahead.empty_seconds)}{priced}"
    return (
        f"The next rotation should take {duration(total_seconds)}{between} (of "
        f"{count(ahead.rotations, 'rotation')}){empty}."
    )


def _model_error(rows: Sequence[Found]) -> str | None:
    """Say how far the model was from what was measured, within what can be told."""
    both = [r for r in rows if r.catch_up_seconds is not None and r.model_seconds is not None]
    if not both:
        return None
    within = [r for r in both if abs(r.catch_up_seconds - r.model_seconds) <= r.resolution_seconds]
    worst = max(both, key=lambda r: abs(r.catch_up_seconds - r.model_seconds))
    sentence = (
        f"The model's catch-up is within one sample of the measured in {len(within)} of {len(both)}"
    )
    if len(within) < len(both):
        sentence += (
            f"; the worst is {duration(worst.model_seconds)} where "
            f"{duration(worst.catch_up_seconds)} were measured"
        )
    return f"{sentence}."


def _table(rows: Sequence[Found], currency: str) -> ReportTable:
    columns = (
        Column("Rotation", is_text=True),
        Column("Away"),
        Column("Catch-up"),
        Column("Model"),
        Column("Moved"),
        Column("Gross", currency, wide=True),
        Column("Incremental", currency),
        Column("Without volume", wide=True),
        Column("Without volume", currency),
    )
    listing = [Row(_cells(row, currency), key=f"rotation-{row.incident}") for row in reversed(rows)]
    first, left_out = first_rows(listing, ROTATIONS_SHOWN)
    return ReportTable("Rotation by rotation", columns, first, left_out=left_out)


def _cells(row: Found, currency: str) -> tuple[Cell, ...]:
    step = row.resolution_seconds
    note = f"\N{PLUS-MINUS SIGN}{duration(step)}" if step is not None else "from the ledger alone"
    away = row.down_seconds if row.down_seconds is not None else row.total_seconds
    return (
        Cell(
            f"broker {row.node_id}, {row.started_at:%Y-%m-%d %H:%M} UTC",
            f"{row.started_at:%Y-%m-%dT%H:%M:%S}",
            note=f"{row.incident}, {row.kind}, {row.outcome}",
        ),
        cells.figure(duration(away), away, note),
        cells.figure(duration(row.catch_up_seconds), row.catch_up_seconds),
        cells.figure(duration(row.model_seconds), row.model_seconds, row.rate_from or ""),
        cells.figure(size(row.moved_bytes), row.moved_bytes, rate(row.append_bytes_per_s)),
        cells.paid(row.gross_cost, currency),
        cells.paid(row.incremental_cost, currency),
        cells.figure(duration(row.empty_seconds), row.empty_seconds),
        cells.paid(row.empty_cost, currency),
    )


def _plot(rows: Sequence[Found]) -> Plot:
    names = [f"broker {row.node_id}, {row.started_at:%d %b %H:%M}" for row in rows]
    parts = {
        "--c3": [float(row.down_seconds or row.total_seconds) for row in rows],
        "--c1": [float(row.catch_up_seconds or 0) for row in rows],
    }
    # Bars of one name would be drawn over each other.
    unique = [name + "\N{ZERO WIDTH SPACE}" * index for index, name in enumerate(names)]
    svg = plot.bars("Time out of an ISR by rotation", unique, parts, "seconds out of an ISR")
    return Plot(svg, (("away", "--c3"), ("catching up", "--c1")))


def _sum(rows: Sequence[Found], name: str) -> Decimal:
    return total(row[name] for row in rows if row[name] is not None)
