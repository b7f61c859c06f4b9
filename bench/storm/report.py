"""Writes down, prints and draws what bench.interruptions measured."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.storm.burst import BurstMessage
from bench.storm.ways import NOT_FOR_NTH, NTH_LIMIT_SECONDS, BurstOutcome

INSTANCES, EVENTS, SEED = 200, 1000, 20260127
WARM, COLD = 20, 5


def _percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile as measured: the value that so many in a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-len(ordered) * percent // 100) - 1)]


def summary(
    warm: Sequence[dict[str, Any]],
    cold: Sequence[dict[str, Any]],
    ours: BurstOutcome,
    nth: BurstOutcome,
) -> dict[str, object]:
    """Return the figures of DESIGN.md section 9, and a few beside them."""
    decisions = [row["decision_ms"] for row in warm]
    return {
        "decision_warm_p50_ms": round(statistics.median(decisions), 1),
        "decision_warm_p99_ms": _percentile(decisions, 99),
        "decision_cold_p99_ms": _percentile([row["decision_ms"] for row in cold], 99),
        "replacement_p99_ms": _percentile([row["replacement_ms"] for row in warm], 99),
        "replacement_cold_p99_ms": _percentile([row["replacement_ms"] for row in cold], 99),
        "burst_events": EVENTS,
        "burst_lost": ours.lost.total() + ours.left,
        "burst_duplicates": ours.duplicates,
        "burst_wrong": ours.wrong,
        "burst_s": round(ours.seconds, 1),
        "nth_burst_lost": nth.lost.total(),
        "nth_burst_duplicates": nth.duplicates,
        "nth_burst_wrong": nth.wrong,
        "nth_burst_left": nth.left,
        "nth_burst_handled": nth.handled,
        "burst_handled": ours.handled,
        "nth_burst_restarts": nth.restarts,
        "nth_burst_s": round(nth.seconds, 1),
    }


def parameters(messages: Sequence[BurstMessage], seconds: float) -> dict[str, object]:
    """Return what was measured, on what, and what each figure means."""
    kinds = Counter(message.kind for message in set(messages))
    return {
        "instances": INSTANCES,
        "events": EVENTS,
        "distinct": len(set(messages)),
        "kinds": dict(kinds),
        "seed": SEED,
        "warm": WARM,
        "cold": COLD,
        "nth_limit_s": NTH_LIMIT_SECONDS,
        "nth_events": sum(message.kind not in NOT_FOR_NTH for message in messages),
        "nth_queue": "visibility 20 s, no dead letters, 10 workers: its guide's",
        "real": "API server, controllers, authenticator, NTH, the functions' zip and runtime",
        "stand_ins": "moto with the twin's lifecycle and pollers for AWS; no kubelet, no Kafka",
        "burst_s": "until the queue is empty: every message has its incident or its record",
        "nth_burst_s": "until only what it cannot read is left, or the limit; drains included",
        "cold_means": "new processes of both functions, files in the page cache",
        "run_s": round(seconds, 1),
    }


def rows(ours: BurstOutcome, nth: BurstOutcome) -> list[dict[str, object]]:
    """Return one row for each way the burst took."""
    return [
        {
            "what": "burst",
            "through": name,
            "seconds": round(outcome.seconds, 2),
            "handled": outcome.handled,
            "lost": dict(outcome.lost),
            "duplicates": outcome.duplicates,
            "wrong": outcome.wrong,
            "left_in_queue": outcome.left,
            "restarts": outcome.restarts,
            "notes": dict(outcome.notes or {}),
        }
        for name, outcome in (("stillwater", ours), ("nth", nth))
    ]


def show(ours: BurstOutcome, nth: BurstOutcome) -> None:
    """Print the burst both ways, side by side."""
    both = Table(f"{EVENTS} messages, {INSTANCES} instances", "stillwater", "NTH alone", "ratio")
    for what, mine, theirs in (
        ("distinct messages answered or recorded", ours.handled, nth.handled),
        ("lost", ours.lost.total(), nth.lost.total()),
        ("incidents or drains beyond the first", ours.duplicates, nth.duplicates),
        ("acted on though nothing leaves", ours.wrong, nth.wrong),
        ("left in the queue", ours.left, nth.left),
        ("restarts", ours.restarts, nth.restarts),
        ("seconds", round(ours.seconds, 1), round(nth.seconds, 1)),
    ):
        ratio = f"{theirs / mine:.1f}" if mine else "-"
        both.add_row(what, str(mine), str(theirs), ratio)
    Console().print(both)


def draw(
    warm: Sequence[dict[str, Any]],
    cold: Sequence[dict[str, Any]],
    ours: BurstOutcome,
    nth: BurstOutcome,
    path: Path,
) -> None:
    """Draw both measurements."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second that nobody else needs

    figure = Figure(figsize=(11, 4), layout="constrained")
    times, counts = figure.subplots(1, 2)
    for rows, name in ((warm, "warm"), (cold, "cold")):
        for what, style in (("decision_ms", "-"), ("replacement_ms", "--")):
            values = sorted(row[what] for row in rows)
            share = [100 * (place + 1) / len(values) for place in range(len(values))]
            label = f"{name}, {what.removesuffix('_ms')}"
            times.step(values, share, style, where="post", label=label)
    times.set(xlabel="ms after the announcement", ylabel="% of announcements", xlim=(0, None))
    times.legend()
    names = ("lost", "duplicates", "wrong", "left in queue", "seconds")
    for shift, name, outcome in ((-0.2, "stillwater", ours), (0.2, "NTH alone", nth)):
        values = [
            outcome.lost.total(),
            outcome.duplicates,
            outcome.wrong,
            outcome.left,
            outcome.seconds,
        ]
        bars = counts.bar([place + shift for place in range(len(names))], values, 0.4, label=name)
        counts.bar_label(bars, fmt="%.0f")
    counts.set(title=f"{EVENTS} messages about {INSTANCES} instances")
    counts.set_xticks(range(len(names)), names)
    counts.legend()
    figure.savefig(path, dpi=120)
