"""How much sooner two brokers of a zone are replaced together than one by one, and what it costs.

    python -m bench.parallel

Six brokers in three zones on the twin, and a rotation run over the two of the first zone, twice in
one run and under the same load, with `--parallel-per-zone 2`. `together`: the topic's partitions
are placed so that no two brokers of a zone hold the same. `one_by_one`: one partition is on both;
the run is refused by name, and started without the option. Machines take 20 s to boot instead of
the twin's two: waiting for them is what going together saves. Writes out/bench/parallel.json; about
seven minutes, half of them `up`.
"""

from __future__ import annotations

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
from bench.fleet.ground import Ground, probes, provisioned
from core.errors import InvalidInput
from core.rotation.run_record import Run
from local.demo import load
from local.demo import spec as demo_spec

LOGS = Path("out/bench/parallel-logs")
PER_ZONE = 2
STEADY_SECONDS, AFTER_SECONDS = 10.0, 2.0
# Still less than on AWS, where it is half a minute until a machine runs, and more until it joins.
BOOT_SECONDS = "20"
NOTHING = ("lost", "duplicates", "out_of_order", "client_errors", "below_min_isr_s")
SUMMARY = ("acked", *NOTHING, "min_isr_seen", "most_out_of_isr", "run_s", "both_in_hand_s")
Placement = dict[int, list[int]]


def main() -> None:
    """Measure, write down; end with 1 when a target is missed."""
    console = Console(stderr=True)
    os.environ.setdefault("STILLWATER_BOOT_SECONDS", BOOT_SECONDS)
    with provisioned(console, LOGS, brokers_per_zone=PER_ZONE) as ground:
        zones = by_zone(ground.brokers)
        rows = [
            _one(ground, "together", apart(zones), together, console),
            _one(ground, "one_by_one", crowded(zones), refused, console),
        ]
    missed = judge(rows)
    print(write(rows))
    _show(rows)
    if missed:
        sys.exit("\n".join(missed))


def by_zone(brokers: frozenset[int]) -> list[list[int]]:
    """Return the brokers zone by zone: their ids are reserved in blocks."""
    ordered = sorted(brokers)
    return [ordered[start : start + PER_ZONE] for start in range(0, len(ordered), PER_ZONE)]


def apart(zones: Sequence[Sequence[int]]) -> Placement:
    """Place every partition on one broker of each zone, so that no zone's two share any.

    Partitions take turns, and so do the zones that are preferred to lead.
    """
    placed = {}
    for partition in range(load.PARTITIONS):
        replicas = [zone[partition % PER_ZONE] for zone in zones]
        first = partition // PER_ZONE % len(zones)
        placed[partition] = replicas[first:] + replicas[:first]
    return placed


def crowded(zones: Sequence[Sequence[int]]) -> Placement:
    """Place partitions apart, but the last: it is on both brokers of the first zone."""
    placed = apart(zones)
    last = load.PARTITIONS - 1
    return placed | {last: [*zones[0], zones[1][0]]}


def together(ground: Ground, node_ids: Sequence[int]) -> tuple[Run, list[str]]:
    """Let a run take them at the same time."""
    return ways.rotated(ground, node_ids, parallel_per_zone=PER_ZONE), []


def refused(ground: Ground, node_ids: Sequence[int]) -> tuple[Run, list[str]]:
    """Have a run refuse to take them at the same time, and let one take them one by one."""
    told: list[str] = []
    try:
        ways.rotated(ground, node_ids, parallel_per_zone=PER_ZONE)
    except InvalidInput as error:
        told = list(error.problems)
    return ways.rotated(ground, node_ids), told


def _one(
    ground: Ground,
    name: str,
    placement: Placement,
    way: Callable[[Ground, Sequence[int]], tuple[Run, list[str]]],
    console: Console,
) -> dict[str, Any]:
    with ground.under_load(placement, steady_seconds=STEADY_SECONDS) as (running, steady):
        began = time.time()
        run, told = way(ground, by_zone(ground.brokers)[0])
        time.sleep(AFTER_SECONDS)
        samples, rotation = ground.samples(), seen.Stretch(began, time.time())
        summary = running.finish()
    row = {
        "way": name,
        **{key: summary[key] for key in ("sent", "acked", "lost", "duplicates", "out_of_order")},
        **{key: summary[key] for key in ("client_errors", "first_errors")},
        **seen.figures(samples, steady, rotation, load.MIN_INSYNC_REPLICAS),
        **figures(run),
        "most_out_of_isr": most_missing(samples, rotation),
        "told": [*told, *(note.text for note in run.notes if not note.quiet)],
        "load_average": round(os.getloadavg()[0], 1),
    }
    console.log(row)
    return row


def figures(run: Run) -> dict[str, Any]:
    """Return how long a run took, and for how long its nodes were in hand at the same time."""
    turns = [(t.began_at or 0.0, t.done_at or 0.0) for t in run.turns]
    both = min(done for _, done in turns) - max(began for began, _ in turns)
    return {
        "run_s": round((run.ended_at or 0.0) - run.started_at, 1),
        "each_s": [round(done - began, 1) for began, done in turns],
        "both_in_hand_s": round(max(0.0, both), 1),
    }


def most_missing(samples: Sequence[Mapping[str, Any]], stretch: seen.Stretch) -> int:
    """Return how many brokers were out of some ISR at once, at most."""
    looks = (s for s in samples if s["kind"] == "isr" and s["at"] in stretch)
    return max((len(s["missing"]) for s in looks), default=0)


def judge(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for everything that is not as it should be."""
    missed = [
        f"{row['way']}: {key} is {row[key]} instead of 0."
        for row in rows
        for key in NOTHING
        if row[key]
    ]
    parallel, serial = rows
    if not parallel["both_in_hand_s"]:
        missed.append("together: the brokers were never in hand at the same time.")
    if serial["both_in_hand_s"]:
        missed.append(f"one_by_one: both were in hand for {serial['both_in_hand_s']} s.")
    if not any("do not go together" in sentence for sentence in serial["told"]):
        missed.append("one_by_one: the run was not refused.")
    return missed


def write(rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the figures down; the time is a ratio, since both runs had the same machine."""
    parallel, serial = rows
    parameters = {
        "brokers_per_zone": PER_ZONE,
        "zones": len(demo_spec.ZONES),
        "partitions": load.PARTITIONS,
        "replication_factor": load.REPLICATION_FACTOR,
        "min_insync_replicas": load.MIN_INSYNC_REPLICAS,
        "probes": probes(),
        "records_per_second": load.RECORDS_PER_SECOND,
        "boot_seconds": float(os.environ["STILLWATER_BOOT_SECONDS"]),
    }
    summary = {
        **{f"{row['way']}_{key}": row[key] for row in rows for key in SUMMARY},
        "time_ratio": round(parallel["run_s"] / serial["run_s"], 2),
    }
    return record.write("parallel", parameters, rows, summary)


def _show(rows: Sequence[Mapping[str, Any]]) -> None:
    shown = ("acked", "lost", "client_errors", "min_isr_seen", "both_in_hand_s", "run_s", "each_s")
    table = Table("way", *(key.replace("_", " ") for key in shown), "p99 ms steady", "p99", "max")
    for row in rows:
        produce = row["produce_ms"]
        table.add_row(
            row["way"],
            *(str(row[key]) for key in shown),
            *(f"{produce[k]['p99']:.0f}" for k in ("steady", "rotation")),
            f"{produce['rotation']['max']:.0f}",
        )
    console = Console(width=160)
    console.print(table)
    for row in rows:
        for sentence in row["told"]:
            console.print(f"{row['way']}: {sentence}")


if __name__ == "__main__":
    main()
