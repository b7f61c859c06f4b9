"""Disrupts a cluster at random and counts whether it loses records, or their order.

    python -m bench.chaos [--disruptions N] [--minutes N] [--seed S]

One cluster on the twin under a producer with acks=all and a live consumer. Disruptions are drawn
from a seed, which is printed: brokers stopped, killed and paused, controllers killed, nodes that
leave or are lost, the node termination handler and the functions killed in a rotation, the API
server restarted in one, a broker's network paused. After each the cluster must be whole again
before the next. Ends with 1 when an acknowledged record is missing, doubled or out of order, or
the cluster does not come back. Writes out/bench/chaos.json.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import record
from bench.fleet import measured, seen
from bench.fleet.faults import FAULTS, NodeFault, draw
from bench.fleet.ground import FleetTwin, provision
from core.ground.errors import StillwaterError
from local.demo import load

LOGS = Path("out/bench/chaos-logs")
DISRUPTIONS, MINUTES = 20, 30.0
WHOLE_SECONDS, AFTER_SECONDS = 600.0, 4.0
NOTHING = ("lost", "duplicates", "out_of_order", "live_disorder")


def main(arguments: Sequence[str]) -> None:
    """Disrupt, count, write down; end with 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="bench.chaos", description=__doc__)
    parser.add_argument("--disruptions", type=int, default=DISRUPTIONS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    console = Console(stderr=True)
    print(f"python -m bench.chaos --disruptions {given.disruptions} --seed {seed}")
    with provision(console, LOGS) as ground:
        rows, summary = disrupt(ground, draw(seed, given.disruptions), given.minutes, console)
    summary["seed"] = seed
    record.write("chaos", {"faults": sorted(FAULTS), **measured.parameters()}, rows, summary)
    failures = judge(summary)
    if failures:
        sys.exit("\n".join([*failures, f"Again: python -m bench.chaos --seed {seed}"]))


def disrupt(
    ground: FleetTwin, disruptions: Sequence[NodeFault], minutes: float, console: Console
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Bring one disruption after the other over a cluster under load, as time allows."""
    rows: list[dict[str, Any]] = []
    stretches: list[seen.Stretch] = []
    began, problem = time.time(), ""
    with ground.under_load() as (running, steady):
        for disruption in disruptions:
            if time.time() - began > 60 * minutes:
                break
            try:
                row, stretch = _one(ground, disruption, began)
            except (StillwaterError, AssertionError) as error:
                problem = f"{disruption.fault} of {disruption.node_id}: {error}"
                break
            rows.append(row)
            stretches.append(stretch)
            console.log(row)
        whole = not problem and ground.is_whole()
        # A record that waited through the last of them is acknowledged a moment after.
        time.sleep(AFTER_SECONDS)
        samples, disrupted = ground.samples(), seen.Stretch(steady.until, time.time())
        counts = running.finish()
    rows = [
        {**row, **_seen_by_clients(samples, stretch)}
        for row, stretch in zip(rows, stretches, strict=True)
    ]
    figures = seen.figures(samples, steady, disrupted, load.MIN_INSYNC_REPLICAS)
    summary = {
        "disruptions": len(rows),
        "kinds": len({row["fault"] for row in rows}),
        **{key: counts[key] for key in ("sent", "acked", *NOTHING, "client_errors")},
        "whole": whole,
        "problem": problem,
        "min_isr_seen": figures["min_isr_seen"],
        "below_min_isr_s": figures["below_min_isr_s"],
        "minutes": figures["minutes"],
        "load_average": record.load_average(),
    }
    return rows, summary


def _one(
    ground: FleetTwin, disruption: NodeFault, began: float
) -> tuple[dict[str, Any], seen.Stretch]:
    since = time.time()
    FAULTS[disruption.fault](ground, disruption.node_id)
    over = time.time()
    ground.settle(WHOLE_SECONDS)
    stretch = seen.Stretch(since, time.time())
    row = {
        "fault": disruption.fault,
        "node": disruption.node_id,
        "at_s": round(since - began, 1),
        "fault_s": round(over - since, 1),
        "whole_after_s": round(stretch.seconds, 1),
    }
    return row, stretch


def _seen_by_clients(samples: Sequence[Mapping[str, Any]], stretch: seen.Stretch) -> dict[str, Any]:
    """Return what clients saw of a disruption, by what was sent while it lasted."""
    acks = seen.latencies(samples, "ack", stretch)
    return {
        "min_isr_seen": seen.smallest(samples, stretch),
        "produce_max_ms": round(max(acks), 1) if acks else None,
    }


def judge(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for everything that did not hold."""
    failures = [f"{key} is {summary[key]} instead of 0." for key in NOTHING if summary[key]]
    if not summary["whole"]:
        failures.append(f"The cluster was not whole at the end. {summary['problem']}".rstrip())
    return failures


if __name__ == "__main__":
    main(sys.argv[1:])
