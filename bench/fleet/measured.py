"""Measures what clients see of something that is done to a cluster under load, the same for each.

What they saw is in bench.fleet.seen's words; what is shown, drawn and judged of it stands here too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich.console import Console

from bench import record
from bench.fleet import seen
from bench.fleet.ground import STEADY_SECONDS, FleetTwin, probes
from local.demo import load
from local.processes import GIVES_WAY

T = TypeVar("T")
COUNTED = ("sent", "acked", "lost", "duplicates", "out_of_order", "live_disorder")
# What there may be nothing of.
NOTHING = ("lost", "duplicates", "out_of_order", "client_errors", "below_min_isr_s")


@dataclass(frozen=True)
class UnderLoad(Generic[T]):
    """What was done gave, what clients saw of it, and the samples that says it from."""

    given: T
    figures: Mapping[str, Any]
    samples: Sequence[Mapping[str, Any]]
    # From when it was begun until some seconds after it was over.
    stretch: seen.Stretch


def measure(
    ground: FleetTwin,
    act: Callable[[], T],
    *,
    after_seconds: float,
    steady_seconds: float = STEADY_SECONDS,
    replicas: Mapping[int, Sequence[int]] | None = None,
) -> UnderLoad[T]:
    """Put a cluster under load, let it be, then do something to it and wait."""
    with ground.under_load(replicas, steady_seconds=steady_seconds) as (running, steady):
        began = time.time()
        given = act()
        # A record that waited through the end of it is acknowledged a moment after.
        time.sleep(after_seconds)
        samples, stretch = ground.samples(), seen.Stretch(began, time.time())
        summary = running.finish()
    figures = {
        **{key: summary[key] for key in (*COUNTED, "client_errors", "first_errors")},
        **seen.figures(samples, steady, stretch, load.MIN_INSYNC_REPLICAS),
        "load_average": record.load_average(),
    }
    return UnderLoad(given, figures, samples, stretch)


def parameters() -> dict[str, object]:
    """Return what a record says of the load and the cluster."""
    return {
        "records_per_second": load.RECORDS_PER_SECOND,
        "partitions": load.PARTITIONS,
        "replication_factor": load.REPLICATION_FACTOR,
        "min_insync_replicas": load.MIN_INSYNC_REPLICAS,
        "probes": probes(),
        "gives_way": os.environ[GIVES_WAY],
    }


def what_is_something(
    rows: Iterable[Mapping[str, Any]], keys: Sequence[str] = NOTHING
) -> list[str]:
    """Return a sentence for everything that there may be nothing of, and is."""
    return [
        f"{row['way']}: {key} is {row[key]} instead of 0."
        for row in rows
        for key in keys
        if row[key]
    ]


def print_told(console: Console, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print what each way had to say beside its figures."""
    for row in rows:
        for sentence in row["told"]:
            console.print(f"{row['way']}: {sentence}")
