"""Makes the section of volumes: paid size, use, needed size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

from core.cost.pricing import total
from core.volumes.sizing import GIB
from spark.report import document, plot
from spark.report.document import Cell, Plot, Section
from spark.report.evidence import Evidence
from spark.report.words import DASH, count, dollars, rate, share, size
from spark.rows import Found
from spark.transforms.volumes import SNAPSHOT, Finding

VOLUMES_SHOWN = 200
DRAWN = 12


def section(evidence: Evidence) -> Section | None:
    """Return what the volumes are and should be, or None without one on the bill."""
    rows = sorted(evidence.storage, key=lambda row: (-row.monthly_saving, row.resource_id))
    if not rows:
        return None
    drawn = [row for row in rows if _fill(row) is not None][:DRAWN]
    currency = evidence.report.currency
    table = document.table(
        "storage",
        currency,
        rows,
        partial(_cells, currency=currency),
        key=lambda row: document.slug("volume", row.resource_id),
        most=VOLUMES_SHOWN,
    )
    plots = [_plot(drawn)] if drawn else []
    return document.told("storage", _sentences(rows, currency), [table], plots)


def _sentences(rows: Sequence[Found], currency: str) -> list[str]:
    volumes = [row for row in rows if row.kind != SNAPSHOT]
    measured = [row for row in volumes if row.used_bytes is not None]
    saving = total(row.monthly_saving for row in rows)
    found = Counter(row.finding for row in rows)
    snapshots = count(len(rows) - len(volumes), "snapshot")
    said = [f"The bill has {count(len(volumes), 'volume')} and {snapshots}."]
    if measured:
        held = sum(row.used_bytes for row in measured)
        paid = sum(row.size_gib for row in measured) * GIB
        have = count(len(measured), "measured volume has", "measured volumes have")
        said = [
            f"{have} {size(paid)}, of which {size(held)} are in use.",
            f"The use is {share(held / paid if paid else None)} of the paid size.",
        ]
    said += [
        f"{_how_many(finding, found[finding.value])}."
        for finding in Finding
        if found[finding.value] and finding not in {Finding.FITS, Finding.NOT_MEASURED}
    ]
    unknown = found[Finding.NOT_MEASURED.value]
    if unknown:
        said.append(f"{count(unknown, 'volume has', 'volumes have')} no samples.")
    if saving:
        said.append(f"The savings add up to {dollars(saving, currency)} {currency} a month.")
    return said


def _how_many(finding: Finding, number: int) -> str:
    if finding is Finding.ORPHAN_SNAPSHOT:
        return count(number, "snapshot belongs", "snapshots belong") + " to deleted volumes"
    if finding is Finding.MOVE_TO_GP3:
        return count(number, "volume") + " can move to gp3"
    return f"{count(number, 'volume is', 'volumes are')} {finding.value}"


def _cells(row: Found, currency: str) -> tuple[Cell, ...]:
    whose = f"{row.owner} {row.node_id}" if row.node_id is not None else f"{row.owner}"
    wanted = ""
    if row.wanted_size_gib is not None and row.finding != Finding.FITS.value:
        wanted = f"{row.wanted_size_gib:,} GiB, {row.wanted_iops:,} IOPS, "
        wanted += f"{row.wanted_throughput_mib_per_s:,} MiB/s needed: "
    fill = _fill(row)
    loads = DASH
    if row.iops_p999 is not None:
        loads = f"{row.iops_p999:,.0f}, {rate(row.throughput_p999_bytes_per_s)}"
    return (
        Cell(row.resource_id, note=f"{whose}, {row.kind}"),
        document.figure(f"{row.size_gib:,}", row.size_gib, f"from the {row.known_from}"),
        document.figure(size(row.used_bytes), row.used_bytes, share(fill) if fill else ""),
        document.figure(_speed(row), row.iops),
        document.figure(loads, row.iops_p999),
        Cell(row.finding, note=f"{wanted}{row.reason}"),
        _saved(row.monthly_saving, currency),
        _saved(row.one_off_cost, currency),
    )


def _fill(row: Found) -> float | None:
    """Return the share of a volume that holds data."""
    if row.used_bytes is None or not row.size_gib:
        return None
    return float(row.used_bytes / (row.size_gib * GIB))


def _speed(row: Found) -> str:
    if row.iops is None:
        return DASH
    if row.throughput_mib_per_s is None:
        return f"{row.iops:,}"
    return f"{row.iops:,}, {row.throughput_mib_per_s:,}"


def _plot(rows: Sequence[Found]) -> Plot:
    names = [row.resource_id for row in rows]
    used = [row.used_bytes / GIB for row in rows]
    wanted = [
        max(0.0, min(row.size_gib, row.wanted_size_gib or row.size_gib) - u)
        for row, u in zip(rows, used, strict=True)
    ]
    spare = [max(0.0, row.size_gib - u - w) for row, u, w in zip(rows, used, wanted, strict=True)]
    parts = {"--c1": used, "--c2": wanted, "--rest": spare}
    svg = plot.bars("Volumes: size and use", names, parts, "GiB")
    legend = (
        ("Used", "--c1"),
        ("Needed for growth and free space", "--c2"),
        ("Not needed", "--rest"),
    )
    return Plot(svg, legend)


def _saved(amount: Decimal, currency: str) -> Cell:
    return document.paid(amount, currency) if amount else Cell(DASH, "0")
