"""Reckons from two measured bills what a larger one would take on EMR Serverless, and its cost.

Reads out/bench/analytics.json (bench.analytics), or four figures of each bill from the command
line. A line through the two sizes' processor seconds gives what a line costs and what any run
costs; workers share the lines, and each is billed for as long as the job runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import record

ENGINE, SHAPE = "spark", "repeating"
# What infra.analytics.report_job lets a job have, in workers of EMR's default size.
WORKERS, WORKER_VCPU, WORKER_GB = 16, 4, 16
# us-east-1, x86; ARM64, which the stacks use, is billed for less (https://aws.amazon.com/emr/pricing).
USD_PER_VCPU_HOUR, USD_PER_GB_HOUR = 0.052624, 0.0057785
# Each worker is billed for a minute at least.
LEAST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MeasuredBill:
    """One bill as it was measured: lines, and of a warm run its seconds and its processor's."""

    lines: int
    seconds: float
    processor_seconds: float
    # From nothing to a first result, beyond what a warm run takes.
    start_seconds: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """Workers of one size, one of which is the driver, and what an hour of them costs."""

    workers: int = WORKERS
    vcpu: int = WORKER_VCPU
    gb: int = WORKER_GB
    usd_per_vcpu_hour: float = USD_PER_VCPU_HOUR
    usd_per_gb_hour: float = USD_PER_GB_HOUR


@dataclass(frozen=True, slots=True)
class OnPaper:
    """What a bill would take: by the clock, in hours of workers, in dollars."""

    lines: int
    processor_hours: float
    minutes: float
    worker_hours: float
    usd: float


def estimate(
    small: MeasuredBill, large: MeasuredBill, lines: int, fleet: Fleet, cores: int
) -> OnPaper:
    """Return what a bill of so many lines takes on a fleet, from two that `cores` were measured on.

    A vCPU is taken for a core of the measured machine, and to be kept as busy as the cores were at
    the larger size. What any run costs beside its lines is the driver's, one core of it. Raises
    ValueError for two bills that make no line.
    """
    if large.lines <= small.lines or large.processor_seconds <= small.processor_seconds:
        raise ValueError(
            f"Two bills of {small.lines:,} and {large.lines:,} lines that took "
            f"{small.processor_seconds} and {large.processor_seconds} processor seconds say "
            f"nothing of a larger one; measure the larger again."
        )
    grown = large.processor_seconds - small.processor_seconds
    per_line = grown / (large.lines - small.lines)
    any_run = max(0.0, small.processor_seconds - per_line * small.lines)
    busy = min(1.0, large.processor_seconds / (large.seconds * cores))
    shared = per_line * lines
    at_once = max(1, fleet.workers - 1) * fleet.vcpu * busy
    seconds = max(LEAST_SECONDS, large.start_seconds + any_run + shared / at_once)
    worker_hours = fleet.workers * seconds / 3600
    hourly = fleet.vcpu * fleet.usd_per_vcpu_hour + fleet.gb * fleet.usd_per_gb_hour
    return OnPaper(
        lines=lines,
        processor_hours=(any_run + shared) / 3600,
        minutes=seconds / 60,
        worker_hours=worker_hours,
        usd=worker_hours * hourly,
    )


def measured_of(rows: Sequence[dict[str, Any]]) -> list[MeasuredBill]:
    """Return Spark's bills of a bench's record whose lines repeat, the smallest first."""
    found = [
        MeasuredBill(
            lines=row["rows"],
            seconds=row["warm_s"],
            processor_seconds=row["warm_cpu_s"],
            start_seconds=row["start_s"] + row["cold_s"] - row["warm_s"],
        )
        for row in rows
        if row.get("engine") == ENGINE and row.get("shape", SHAPE) == SHAPE
    ]
    return sorted(found, key=lambda each: each.lines)


def sentence(small: MeasuredBill, large: MeasuredBill, found: OnPaper, fleet: Fleet) -> str:
    """Return a paragraph for docs/reference/bill-measured.md."""
    return (
        f"From {small.lines:,} lines ({small.processor_seconds:.1f} processor s, warm) and "
        f"{large.lines:,} ({large.processor_seconds:.1f} s): {found.lines:,} lines take "
        f"{found.processor_hours:.2f} processor hours. On EMR Serverless with {fleet.workers} "
        f"workers of {fleet.vcpu} vCPU and {fleet.gb} GB, one of them the driver, that is "
        f"{found.minutes:.1f} minutes, {found.worker_hours:.2f} worker hours and "
        f"{found.usd:.2f} USD ({fleet.usd_per_vcpu_hour} per vCPU-hour, {fleet.usd_per_gb_hour} "
        f"per GB-hour)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, default=record.OUTPUT / "analytics.json")
    parser.add_argument(
        "--measured", nargs=4, type=float, action="append", default=[],
        metavar=("MILLIONS", "SECONDS", "PROCESSOR_SECONDS", "START_SECONDS"),
        help="a bill that was measured, instead of the record's; given twice",
    )  # fmt: skip
    parser.add_argument("--cores", type=int, default=2, help="of the machine they were measured on")
    parser.add_argument("--millions", type=float, default=1000, help="the lines to reckon for")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--vcpu-hour", type=float, default=USD_PER_VCPU_HOUR)
    parser.add_argument("--gb-hour", type=float, default=USD_PER_GB_HOUR)
    chosen = parser.parse_args()
    bills = [MeasuredBill(round(m * 1e6), *seconds) for m, *seconds in chosen.measured]
    if not bills and chosen.record.is_file():
        bills = measured_of(json.loads(chosen.record.read_text())["rows"])
    if len(bills) < 2:
        sys.exit(
            f"{chosen.record} holds {len(bills)} of the two bills that it takes; run `python -m "
            f"bench.analytics` first, or give --measured twice."
        )
    small, large = sorted(bills, key=lambda bill: bill.lines)[-2:]
    fleet = Fleet(
        workers=chosen.workers,
        usd_per_vcpu_hour=chosen.vcpu_hour,
        usd_per_gb_hour=chosen.gb_hour,
    )
    try:
        found = estimate(small, large, round(chosen.millions * 1e6), fleet, chosen.cores)
    except ValueError as error:
        sys.exit(str(error))
    print(sentence(small, large, found, fleet))


if __name__ == "__main__":
    main()
