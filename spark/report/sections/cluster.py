"""Makes the sections of one cluster: its volumes, its rotations, and EBS against local disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from core.cost.economics import EBS, IN_PLACE, NVME
from core.cost.pricing import total
from core.volumes.sizing import GIB
from spark.report import document, plot
from spark.report.document import (
    DASH,
    Cell,
    Plot,
    Section,
    count,
    dollars,
    duration,
    rate,
    share,
    size,
)
from spark.report.evidence import Evidence
from spark.rows import Found
from spark.transforms.rotations import RotationForecast, forecast
from spark.transforms.volumes import SNAPSHOT, Finding

VOLUMES_SHOWN = 200
VOLUMES_DRAWN = 12


def storage_section(evidence: Evidence) -> Section | None:
    """Return what the volumes are and should be, or None without one on the bill."""
    rows = sorted(evidence.storage, key=lambda row: (-row.monthly_saving, row.resource_id))
    if not rows:
        return None
    drawn = [row for row in rows if _fill(row) is not None][:VOLUMES_DRAWN]
    currency = evidence.report.currency
    table = document.table(
        "storage",
        currency,
        rows,
        partial(_volume_cells, currency=currency),
        key=lambda row: document.slug("volume", row.resource_id),
        most=VOLUMES_SHOWN,
    )
    plots = [_volumes_plot(drawn)] if drawn else []
    return document.told("storage", _volume_sentences(rows, currency), [table], plots)


def _volume_sentences(rows: Sequence[Found], currency: str) -> list[str]:
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


def _volume_cells(row: Found, currency: str) -> tuple[Cell, ...]:
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


def _volumes_plot(rows: Sequence[Found]) -> Plot:
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


ROTATIONS_SHOWN = 100
ROTATIONS_DRAWN = 12


def resync_section(evidence: Evidence) -> Section | None:
    """Return what the month's rotations took, or None without one."""
    rows = sorted(evidence.resync, key=lambda row: (row.started_at, row.incident))
    if not rows:
        return None
    ahead = forecast(rows)
    drawn = [row for row in rows if row.total_seconds is not None][-ROTATIONS_DRAWN:]
    currency = evidence.report.currency
    table = document.table(
        "resync",
        currency,
        rows[::-1],
        partial(_rotation_cells, currency=currency),
        key=lambda row: f"rotation-{row.incident}",
        most=ROTATIONS_SHOWN,
    )
    plots = [_rotations_plot(drawn)] if drawn else []
    return document.told("resync", _rotation_sentences(rows, ahead, currency), [table], plots)


def _rotation_sentences(
    rows: Sequence[Found], ahead: RotationForecast | None, currency: str
) -> list[str]:
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
        said += _next_rotation(ahead, currency)
    return said


def _next_rotation(ahead: RotationForecast, currency: str) -> list[str]:
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


def _rotation_name(row: Found) -> str:
    return f"broker {row.node_id}, {row.started_at:%Y-%m-%d %H:%M} UTC"


def _rotation_cells(row: Found, currency: str) -> tuple[Cell, ...]:
    step = row.resolution_seconds
    note = f"\N{PLUS-MINUS SIGN}{duration(step)}" if step is not None else "from the ledger alone"
    away = row.down_seconds if row.down_seconds is not None else row.total_seconds
    return (
        Cell(
            _rotation_name(row),
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


def _rotations_plot(rows: Sequence[Found]) -> Plot:
    names = [_rotation_name(row) for row in rows]
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


def economics_section(evidence: Evidence) -> Section | None:
    """Return the comparison, or None where nothing was measured to compare."""
    rows = {row.design: row for row in reversed(evidence.economics)}
    if not rows:
        return None
    ebs, nvme, in_place = rows[EBS], rows.get(NVME), rows.get(IN_PLACE)
    currency = evidence.report.currency
    table = document.table(
        "economics",
        currency,
        evidence.economics,
        partial(_design_cells, currency=currency),
        key=lambda row: document.slug("design", row.design),
    )
    said = [*_design_sentences(ebs, nvme, currency), *_in_place_lines(ebs, in_place, currency)]
    plots = [_designs_plot(ebs, nvme, currency)] if nvme else []
    made = document.told("economics", said, [table], plots)
    oldest = min(row.prices_as_of for row in evidence.economics)
    return replace(made, method=f"{made.method} Oldest price read on {oldest}.")


def _design_sentences(ebs: Found, nvme: Found | None, currency: str) -> list[str]:
    if nvme is None:
        return ["No instance type with local disks and a known price fits this cluster."]
    gap = nvme.monthly_cost - ebs.monthly_cost
    dearer = "more" if gap >= 0 else "less"
    said = [
        (
            f"{count(nvme.brokers, nvme.instance_type, nvme.instance_type)} with local disks cost "
            f"{dollars(abs(gap), currency)} {currency} a month {dearer} than {ebs.brokers} "
            f"{ebs.instance_type} with gp3."
        ),
        f"The comparison assumes {ebs.rotations_per_month:.1f} rotations a month.",
    ]
    if ebs.break_even_fill is not None:
        said.append(f"Local disks are cheaper from a fill of {share(ebs.break_even_fill)}.")
        said.append(f"Local disks of this cluster have a fill of {share(nvme.fill)}.")
    said.append(_break_even(ebs.break_even_rotations))
    if nvme.rotation_seconds is None:
        said.append("A broker without its data never catches up on local disks.")
    elif ebs.rotation_seconds:
        said.append(
            f"Partitions miss a replica for {duration(nvme.rotation_seconds)} per rotation on "
            f"local disks and {duration(ebs.rotation_seconds)} on EBS."
        )
    return said


def _in_place_lines(ebs: Found, in_place: Found | None, currency: str) -> list[str]:
    """Return what planned rotations in place change, where some were planned."""
    if in_place is None:
        return []
    gap = in_place.monthly_cost - ebs.monthly_cost
    machines = count(in_place.brokers, in_place.instance_type, in_place.instance_type)
    return [
        "Local disks keep their data in planned rotations in place.",
        (
            f"With rotations in place, {machines} cost {dollars(abs(gap), currency)} {currency} a "
            f"month {'more' if gap >= 0 else 'less'} than gp3."
        ),
    ]


def _break_even(break_even: float | None) -> str:
    if break_even is None:
        return "EBS is more expensive at any number of rotations."
    if break_even == 0:
        return "EBS is cheaper at any number of rotations."
    return f"EBS is cheaper from {break_even:.1f} rotations a month."


def _design(row: Found) -> str:
    return f"{row.design}: {row.brokers} {row.instance_type}"


def _design_cells(row: Found, currency: str) -> tuple[Cell, ...]:
    chosen = "cheapest design whose brokers catch up; " if row.chosen else ""
    seconds, risk = row.rotation_seconds, row.risk_hours
    return (
        Cell(_design(row), note=f"{chosen}catch-up limited by {row.limited_by}"),
        document.paid(row.instances_cost, currency),
        document.paid(row.storage_cost, currency),
        document.paid(row.rotation_cost, currency),
        document.figure("never" if seconds is None else duration(seconds), seconds),
        document.paid(row.monthly_cost, currency),
        document.figure(DASH if risk is None else f"{risk:,.2f}", risk),
        document.figure(share(row.fill), row.fill),
    )


def _designs_plot(ebs: Found, nvme: Found, currency: str) -> Plot:
    crossing = ebs.break_even_rotations
    most = max(4.0, 2 * ebs.rotations_per_month)
    if crossing and crossing < 200:
        most = max(most, 1.6 * crossing)
    steps = [most * step / 20 for step in range(21)]

    def month(row: Found, rotations: float) -> float:
        fixed = float(row.instances_cost + row.storage_cost)
        return fixed + float(row.rotation_cost) * float(row.rotations_ratio) * rotations

    series = {
        "--c1": [(x, month(ebs, x)) for x in steps],
        "--c4": [(x, month(nvme, x)) for x in steps],
    }
    marks = [(ebs.rotations_per_month, "now")]
    if crossing and crossing <= most:
        marks.append((crossing, "break-even"))
    unit = f"Total, {currency} a month"
    svg = plot.lines("Total by rotations a month", series, "rotations a month", unit, marks)
    return Plot(svg, ((_design(ebs), "--c1"), (_design(nvme), "--c4")))
