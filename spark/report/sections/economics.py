"""Evidence of the design: EBS volumes against local disks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from core.cost.economics import EBS, IN_PLACE, NVME
from spark.report import document, plot
from spark.report.document import Cell, Plot, Section
from spark.report.evidence import Evidence
from spark.report.words import DASH, count, dollars, duration, share
from spark.rows import Found


def section(evidence: Evidence) -> Section | None:
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
        partial(_cells, currency=currency),
        key=lambda row: document.slug("design", row.design),
    )
    said = [*_sentences(ebs, nvme, currency), *_in_place_lines(ebs, in_place, currency)]
    plots = [_plot(ebs, nvme, currency)] if nvme else []
    made = document.told("economics", said, [table], plots)
    oldest = min(row.prices_as_of for row in evidence.economics)
    return replace(made, method=f"{made.method} Oldest price read on {oldest}.")


def _sentences(ebs: Found, nvme: Found | None, currency: str) -> list[str]:
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
    said.append(_rotations(ebs.break_even_rotations))
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


def _rotations(break_even: float | None) -> str:
    if break_even is None:
        return "EBS is more expensive at any number of rotations."
    if break_even == 0:
        return "EBS is cheaper at any number of rotations."
    return f"EBS is cheaper from {break_even:.1f} rotations a month."


def _design(row: Found) -> str:
    return f"{row.design}: {row.brokers} {row.instance_type}"


def _cells(row: Found, currency: str) -> tuple[Cell, ...]:
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


def _plot(ebs: Found, nvme: Found, currency: str) -> Plot:
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
