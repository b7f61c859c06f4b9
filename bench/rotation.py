"""Measures what clients see of a rotation of all brokers: by the toolkit, by eviction, by force.

    python -m bench.rotation [--only WAY]

One cluster on the twin, the same load for each way in one run: a producer with acks=all that never
waits, a live consumer, a reader of every ISR. `ours`: Stillwater takes the brokers one by one.
`inplace`: the same, and their machines stay: only their root volumes are replaced.
`evict`: every node is announced to the node termination handler, which drains under a disruption
budget of one. `kill`: SIGKILL of each broker in turn. Then a node goes while another broker is out
of sync though its pod is Ready, with and without the toolkit. Writes out/bench/rotation.json and a
plot.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.fleet import seen, ways
from bench.fleet.ground import STEADY_SECONDS, FleetTwin, probes, provision
from local.demo import load
from local.processes import GIVES_WAY

LOGS = Path("out/bench/rotation-logs")
AFTER_SECONDS = 4.0
WAYS: Mapping[str, Callable[[FleetTwin], ways.Told]] = {
    "ours": ways.ours,
    "inplace": ways.in_place,
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
        measured = measure(ground, given.only or list(WAYS), console)
    write(measured)
    missed = judge({row["way"]: row for row, _ in measured})
    if missed:
        sys.exit("\n".join(missed))


def measure(
    ground: FleetTwin,
    names: Sequence[str],
    console: Console,
    known: Mapping[str, Callable[[FleetTwin], ways.Told]] = WAYS,
) -> list[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    """Return each way's figures and the samples they are read from."""
    return [_one(ground, name, known[name], console) for name in names]


def _one(
    ground: FleetTwin, name: str, way: Callable[[FleetTwin], ways.Told], console: Console
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    console.log(f"{name}: steady for {STEADY_SECONDS:.0f} s")
    with ground.under_load() as (running, steady):
        began = time.time()
        told = way(ground)
        time.sleep(AFTER_SECONDS)
        rotation = seen.Stretch(began, time.time())
        samples = ground.samples()
        summary = running.finish()
    row = {
        "way": name,
        **{key: summary[key] for key in ("sent", "acked", "lost", "duplicates", "out_of_order")},
        **{key: summary[key] for key in ("client_errors", "first_errors", "live_disorder")},
        **seen.figures(samples, steady, rotation, load.MIN_INSYNC_REPLICAS),
        "told": told.sentences,
        "load_average": round(os.getloadavg()[0], 1),
    }
    console.log(f"{name}: {row}")
    return row, [{**s, "since": s["at"] - began} for s in samples]


def write(measured: Sequence[tuple[dict[str, Any], list[Mapping[str, Any]]]]) -> None:
    """Write the figures and the plot, and show them side by side."""
    rows = [row for row, _ in measured]
    parameters = {
        "records_per_second": load.RECORDS_PER_SECOND,
        "partitions": load.PARTITIONS,
        "replication_factor": load.REPLICATION_FACTOR,
        "min_insync_replicas": load.MIN_INSYNC_REPLICAS,
        "probes": probes(),
        "gives_way": os.environ[GIVES_WAY],
        "isr_looked_at_every_s": load.ISR_SAMPLE_SECONDS,
        "lagging": f"broker {ways.LAGGING} is Ready and out of sync, broker {ways.LEAVING} goes",
    }
    summary = {f"{row['way']}_{key}": row[key] for row in rows for key in SUMMARY}
    minutes = {row["way"]: row["minutes"] for row in rows}
    if {"ours", "inplace"} <= minutes.keys():
        summary["inplace_minutes_ratio"] = round(minutes["inplace"] / minutes["ours"], 2)
    path = record.write("rotation", parameters, rows, summary)
    _draw(measured, path.with_suffix(".png"))
    _show(rows)
    print(path)


def judge(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each target the toolkit misses."""
    nothing = ("lost", "duplicates", "out_of_order", "client_errors", "below_min_isr_s")
    missed = [
        f"{name}: {key} is {rows[name][key]} instead of 0."
        for name in ("ours", "inplace", "ours_lagging")
        if name in rows
        for key in nothing
        if rows[name][key]
    ]
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
    for row in rows:
        for sentence in row["told"]:
            console.print(f"{row['way']}: {sentence}")


def _draw(measured: Sequence[tuple[dict[str, Any], list[Mapping[str, Any]]]], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - a second that nobody else needs

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of a backend

    figure, axes = plt.subplots(
        len(measured), 1, figsize=(10, 2.2 * len(measured)), layout="constrained", squeeze=False
    )
    for (row, samples), axis in zip(measured, axes[:, 0], strict=True):
        acks = [s for s in samples if s["kind"] == "ack"]
        isr = [s for s in samples if s["kind"] == "isr"]
        axis.plot([s["since"] for s in acks], [s["ms"] for s in acks], ".", markersize=1)
        axis.set(yscale="log", ylabel="produce, ms", title=f"{row['way']}: {row['minutes']} min")
        least = axis.twinx()
        least.step([s["since"] for s in isr], [s["smallest"] for s in isr], "r", where="post")
        least.set(ylim=(0, 3.2), yticks=[0, 1, 2, 3], ylabel="least ISR")
    axes[-1, 0].set(xlabel="seconds since the first node goes")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
