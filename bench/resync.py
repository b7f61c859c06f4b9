"""Measures a broker's return with its volume and without: bytes and seconds to full ISR.

    python -m bench.resync [--quick] [--without-slow-disk]

Three controllers and three brokers, bare processes of real Kafka. One broker goes and comes back,
at three sizes, with its directory (an EBS volume attached again) and with an empty one (an instance
store that is gone), under the same throttle. core.cost.resync predicts each from what is measured
about it: what is appended, how long the broker was away, what its peers hold; and from the rate of
one refill made before, which is not among the rows. Further rows: a stop without warning, a slow
disk (slow_disk.c), and one so slow that the broker never returns. Writes out/bench/resync.json, a
plot, and its SVG; about 15 minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from bench import record
from bench.refill import measuring, report
from bench.refill.measuring import (
    APPEND_BYTES_PER_S,
    AWAY,
    OUTAGE_SECONDS,
    PARTITIONS,
    THROTTLE_BYTES_PER_S,
    TOPIC,
    Appender,
    Measured,
    RefillCase,
    measure,
)
from bench.refill.nodes import IN_PROPORTION, BenchNodes, running
from core.cost import resync

MB = resync.BYTES_PER_MB
CALIBRATION_BYTES = 150 * MB
SIZES_BYTES = (250 * MB, 500 * MB, 1_250 * MB)
SLOW_DISK_BYTES_PER_S = 4_500_000
# Less than is appended.
TOO_SLOW_DISK_BYTES_PER_S, WATCHED_SECONDS = 1_000_000, 30.0
TARGETS = {"bytes_ratio": 20.0, "time_ratio": 10.0}
MODEL_ERROR = 0.15


def main(arguments: Sequence[str]) -> None:
    """Measure, write down, draw; end with 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="bench.resync", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest size alone")
    parser.add_argument("--without-slow-disk", action="store_true")
    given = parser.parse_args(arguments)
    began, load_before = time.monotonic(), os.getloadavg()[0]
    console = Console(stderr=True)
    with console.status("starting Kafka") as status, running() as nodes:
        nodes.create_topic(TOPIC, PARTITIONS)
        nodes.throttle(AWAY, THROTTLE_BYTES_PER_S)
        appender = Appender(nodes.bootstrap)
        sizes = SIZES_BYTES[:1] if given.quick else SIZES_BYTES

        def run(case: RefillCase) -> Measured:
            status.update(f"{case}")
            done = measure(nodes, case)
            console.log(f"{case}: {done.seconds:.1f} s, {done.bytes_in / MB:.1f} MB")
            return done

        rate, measured = _measure_all(nodes, run, sizes)
        diverged: dict[str, Any] = {}
        if not given.without_slow_disk:
            measured.append(run(RefillCase(path="kept", disk_bytes_per_s=SLOW_DISK_BYTES_PER_S)))
            status.update("a disk slower than what is appended")
            diverged = _never(nodes, measured[-1].append_bytes_per_s)
        appender.close()
    rows = [report.row(each, rate) for each in measured]
    figures = report.summary(rows)
    parameters = {
        "append_bytes_per_s": APPEND_BYTES_PER_S,
        "throttle_bytes_per_s": THROTTLE_BYTES_PER_S,
        "throttle_measured_bytes_per_s": round(rate),
        "outage_s": OUTAGE_SECONDS,
        "partitions": PARTITIONS,
        "in_proportion": IN_PROPORTION,
        "slow_disk": "write() to record logs blocks, by a preloaded library: slow_disk.c",
        "never": diverged,
        "producer_errors": len(appender.errors),
        "load_average": [load_before, os.getloadavg()[0]],
        "run_s": round(time.monotonic() - began, 1),
    }
    path = record.write("resync", parameters, rows, figures)
    report.draw(rows, rate, [path.with_suffix(".png"), path.with_suffix(".svg")])
    report.show(rows)
    missed = [
        f"{name} is below {least}" for name, least in TARGETS.items() if figures[name] < least
    ]
    if figures["model_error_max"] > MODEL_ERROR:
        missed.append(f"model_error_max is above {MODEL_ERROR}")
    if missed and not given.quick:
        sys.exit(f"{'; '.join(missed)}.")


def _measure_all(
    nodes: BenchNodes, run: Any, sizes: Sequence[float]
) -> tuple[float, list[Measured]]:
    """Return the rate of a refill made first, and what each way back took."""
    measuring.fill(nodes, int(CALIBRATION_BYTES))
    rate = run(RefillCase(path="emptied")).rate_bytes_per_s
    measured = []
    for size in sizes:
        measuring.fill(nodes, int(size))
        measured += [run(RefillCase(path="kept")), run(RefillCase(path="emptied"))]
    measured.append(run(RefillCase(path="kept", stop="killed")))
    return rate, measured


def _never(nodes: BenchNodes, append_bytes_per_s: float) -> dict[str, Any]:
    """Return how a broker with too slow a disk falls behind, and what the model says of it."""
    seen = measuring.never(nodes, TOO_SLOW_DISK_BYTES_PER_S, WATCHED_SECONDS)
    flow = resync.Flow(
        append_bytes_per_s=append_bytes_per_s,
        replication_bytes_per_s=TOO_SLOW_DISK_BYTES_PER_S,
        limited_by="the disk",
    )
    way = resync.after_outage(flow, outage_seconds=OUTAGE_SECONDS)
    return {
        **{name: round(value) for name, value in seen.items()},
        "model_grows_bytes_per_s": round(append_bytes_per_s - TOO_SLOW_DISK_BYTES_PER_S),
        "sentence": way.sentence if isinstance(way, resync.Divergence) else None,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
