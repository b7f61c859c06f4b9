"""Measures what clients see of a rotation of all brokers: by the toolkit, by eviction, by force.

    python -m bench.rotation [--only WAY]

One cluster on the twin, the same load for each way in one run: a producer with acks=all that never
waits, a live consumer, a reader of every ISR. `ours`: Stillwater takes the brokers one by one.
`inplace`: the same, and their machines stay: only their root volumes are replaced.
`evict`: every node is announced to the node termination handler, which drains under a disruption
budget of one. `kill`: SIGKILL of each broker in turn. Then a node goes while another broker is out
of sync though its pod is Ready, with and without the toolkit. Writes out/bench/rotation.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.fleet import measured, ways
from bench.fleet.ground import STEADY_SECONDS, FleetTwin, provision
from local.demo import load

LOGS = Path("out/bench/rotation-logs")
AFTER_SECONDS = 4.0
WAYS: Mapping[str, Callable[[FleetTwin], ways.Told]] = {
    "ours": ways.ours,
    "inplace": ways.root_volumes,
    "ours_lagging": ways.ours_beside_a_lagging_broker,
    "kill": ways.kill,
    "evict": ways.evict,
    "evict_lagging": ways.evict_beside_a_lagging_broker,
}
SUMMARY = ("lost", "client_errors", "p99_ratio", "min_isr_seen", "below_min_isr_s", "minutes")
P99_RATIO = 2.0


def main(arguments: Sequence[str]) -> None:
    """Measure, write down, draw; end with 1 when the toolkit misses a target."""
    parser = argparse.ArgumentParser(prog="bench.rotation", description=__doc__)
    parser.add_argument("--only", choices=WAYS, action="append")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    with provision(console, LOGS) as ground:
        rows = measure(ground, given.only or list(WAYS), console)
    write(rows)
    missed = judge({row["way"]: row for row in rows})
    if missed:
        sys.exit("\n".join(missed))


def measure(
    ground: FleetTwin,
    names: Sequence[str],
    console: Console,
    known: Mapping[str, Callable[[FleetTwin], ways.Told]] = WAYS,
) -> list[dict[str, Any]]:
    """Return each way's figures."""
    return [_one(ground, name, known[name], console) for name in names]


def _one(
    ground: FleetTwin, name: str, way: Callable[[FleetTwin], ways.Told], console: Console
) -> dict[str, Any]:
    console.log(f"{name}: steady for {STEADY_SECONDS:.0f} s")
    seen = measured.measure(ground, lambda: way(ground), after_seconds=AFTER_SECONDS)
    row = {"way": name, **seen.figures, "told": seen.given.sentences}
    console.log(f"{name}: {row}")
    return row


def write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the figures, and show them side by side."""
    parameters = {
        **measured.parameters(),
        "isr_looked_at_every_s": load.ISR_SAMPLE_SECONDS,
        "lagging": f"broker {ways.LAGGING} is Ready and out of sync, broker {ways.LEAVING} goes",
    }
    summary = {f"{row['way']}_{key}": row[key] for row in rows for key in SUMMARY}
    minutes = {row["way"]: row["minutes"] for row in rows}
    if {"ours", "inplace"} <= minutes.keys():
        summary["inplace_minutes_ratio"] = round(minutes["inplace"] / minutes["ours"], 2)
    record.write("rotation", parameters, rows, summary)
    _show(rows)


def judge(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each target the toolkit misses."""
    ours = [rows[name] for name in ("ours", "inplace", "ours_lagging") if name in rows]
    missed = measured.what_is_something(ours)
    ratio = rows.get("ours", {}).get("p99_ratio_outside_moves")
    if ratio is not None and ratio > P99_RATIO:
        missed.append(f"ours: p99 outside the leaders' moves is {ratio} times the steady one.")
    return missed


def _show(rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(
        *("way", "acked", "lost", "twice", "errors", "p99 ms steady", "p99 ms", "outside moves"),
        *("max ms", "end to end p99", "max", "least ISR", "below min s", "refilled KiB", "minutes"),
    )
    for row in rows:
        produce, end_to_end = row["produce_ms"], row["end_to_end_ms"]
        table.add_row(
            *(row["way"], *(str(row[k]) for k in ("acked", "lost", "duplicates", "client_errors"))),
            *(f"{produce[k]['p99']:.0f}" for k in ("steady", "rotation", "outside_moves")),
            f"{produce['rotation']['max']:.0f}",
            *(f"{end_to_end['rotation'][k]:.0f}" for k in ("p99", "max")),
            *(str(row[k]) for k in ("min_isr_seen", "below_min_isr_s", "refilled_kib", "minutes")),
        )
    console = Console(width=160)
    console.print(table)
    measured.print_told(console, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
