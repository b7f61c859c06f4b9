"""Measures what replacing brokers a zone at a time saves and costs against one by one.

    python -m bench.parallel
    python -m bench.parallel --zones 1

Six brokers in three zones on the twin, and a rotation run over all of them, or over those of so
many zones, each way in one run and under the same load. `zone_at_once`: `--at-once zone`; every
partition has one replica in each zone, so each zone is a party. `one_by_one`: without the option.
`zone_in_place`: a zone at once, and its machines stay and boot from new root volumes. Machines take
20 s to boot instead of two, in place as well. Writes out/bench/parallel.json; about a quarter of an
hour, a fifth of it `up`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import record
from bench.fleet import measured, seen, ways
from bench.fleet.ground import FleetTwin, provision
from core.rotation.estimate import kind_of, seconds_by_kind
from core.rotation.run_record import Run
from local.demo import load
from local.demo import spec as demo_spec

LOGS = Path("out/bench/parallel-logs")
PER_ZONE = 2
STEADY_SECONDS, AFTER_SECONDS = 10.0, 2.0
# Still less than on AWS, where it is half a minute until a machine runs, and more until it joins.
BOOT_SECONDS = "20"
SUMMARY = (
    *("acked", *measured.NOTHING, "min_isr_seen", "most_out_of_isr"),
    *("run_s", "model_s", "most_in_hand", "parties", "refilled_kib"),
)
MOST_TIME_RATIO, MOST_IN_PLACE_RATIO = 0.45, 0.6
MOST_MODEL_ERROR = 0.15
WAYS: Mapping[str, Mapping[str, Any]] = {
    "zone_at_once": {"at_once": "zone"},
    "one_by_one": {"at_once": 1},
    "zone_in_place": {"at_once": "zone", "in_place": True},
}
Placement = dict[int, list[int]]


def main() -> None:
    """Measure, write down; end with 1 when a target is missed."""
    console = Console(stderr=True)
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--zones", type=int, default=3, choices=(1, 2, 3))
    chosen = parser.parse_args().zones
    os.environ.setdefault("STILLWATER_BOOT_SECONDS", BOOT_SECONDS)
    with provision(console, LOGS, brokers_per_zone=PER_ZONE) as ground:
        zones = zones_of(ground.brokers)
        moved = [broker for zone in zones[:chosen] for broker in zone]
        rows = [_one(ground, name, apart(zones), moved, console) for name in WAYS]
    missed = judge(rows)
    write(rows, chosen)
    _show(rows)
    if missed:
        sys.exit("\n".join(missed))


def zones_of(brokers: frozenset[int]) -> list[list[int]]:
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


def _one(
    ground: FleetTwin,
    name: str,
    placement: Placement,
    moved: Sequence[int],
    console: Console,
) -> dict[str, Any]:
    seen_of = measured.measure(
        ground,
        lambda: ways.rotate(ground, moved, **WAYS[name]),
        after_seconds=AFTER_SECONDS,
        steady_seconds=STEADY_SECONDS,
        replicas=placement,
    )
    run = seen_of.given
    row = {
        "way": name,
        **seen_of.figures,
        **figures(run),
        "most_out_of_isr": most_missing(seen_of.samples, seen_of.stretch),
        "told": [note.text for note in run.notes if not note.quiet],
    }
    console.log(row)
    return row


def figures(run: Run) -> dict[str, Any]:
    """Return how long a run took, and how many of its nodes were in hand at once, at most."""
    turns = [(t.began_at or 0.0, t.done_at or 0.0) for t in run.turns]
    return {
        "run_s": round((run.ended_at or 0.0) - run.started_at, 1),
        "model_s": round(foretold(run), 1),
        "each_s": [round(done - began, 1) for began, done in turns],
        "most_in_hand": max(
            sum(began <= moment < done for began, done in turns) for moment, _ in turns
        ),
        "parties": len({turn.party or (turn.node_id,) for turn in run.turns}),
    }


def foretold(run: Run) -> float:
    """Return how many seconds a plan says for all of a run that has seen its first party alone."""
    turns = sorted(run.turns, key=lambda turn: turn.began_at or 0.0)
    parties = list(dict.fromkeys(turn.party or (turn.node_id,) for turn in turns))
    first = tuple(turn for turn in turns if turn.node_id in parties[0])
    takes = seconds_by_kind(replace(run, turns=first), stop_together=True)
    behind = kind_of(replace(turns[0], ahead=turns[0].image_id is None))
    return takes[kind_of(turns[0])] + takes[behind] * (len(parties) - 1)


def most_missing(samples: Sequence[Mapping[str, Any]], stretch: seen.Stretch) -> int:
    """Return how many brokers were out of some ISR at once, at most."""
    looks = (s for s in samples if s["kind"] == "isr" and s["at"] in stretch)
    return max((len(s["missing"]) for s in looks), default=0)


def judge(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for everything that is not as it should be."""
    missed = measured.what_is_something(rows)
    for row in rows:
        most = 1 if WAYS[row["way"]]["at_once"] == 1 else PER_ZONE
        if row["most_in_hand"] != most:
            missed.append(f"{row['way']}: {row['most_in_hand']} were in hand at once, not {most}.")
        if row["parties"] * most != len(row["each_s"]):
            missed.append(f"{row['way']}: {row['parties']} parties of {most} at most.")
        error = abs(row["model_s"] / row["run_s"] - 1)
        if error > MOST_MODEL_ERROR:
            missed.append(f"{row['way']}: the plan is {error:.0%} off.")
    ratios = time_ratios(rows)
    wanted = {"zone_at_once": MOST_TIME_RATIO, "zone_in_place": MOST_IN_PLACE_RATIO}
    return missed + [
        f"{name} took {ratios[name]} of one by one, wanted {most}."
        for name, most in wanted.items()
        if ratios[name] > most
    ]


def write(rows: Sequence[Mapping[str, Any]], zones_moved: int) -> None:
    """Write the figures down; the time is a ratio, since both runs had the same machine."""
    parameters = {
        **measured.parameters(),
        "brokers_per_zone": PER_ZONE,
        "zones": len(demo_spec.ZONES),
        "zones_moved": zones_moved,
        "boot_seconds": float(os.environ["STILLWATER_BOOT_SECONDS"]),
    }
    summary = {
        **{f"{row['way']}_{key}": row[key] for row in rows for key in SUMMARY},
        **{f"{name}_time_ratio": ratio for name, ratio in time_ratios(rows).items()},
    }
    record.write("parallel", parameters, rows, summary)


def time_ratios(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return what part of the time of one by one each way took."""
    seconds = {str(row["way"]): float(row["run_s"]) for row in rows}
    alone = seconds.pop("one_by_one")
    return {way: round(took / alone, 2) for way, took in seconds.items()}


def _show(rows: Sequence[Mapping[str, Any]]) -> None:
    shown = (
        "acked",
        "lost",
        "client_errors",
        "min_isr_seen",
        "parties",
        "refilled_kib",
        "run_s",
        "model_s",
        "each_s",
    )
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
    measured.print_told(console, rows)


if __name__ == "__main__":
    main()
