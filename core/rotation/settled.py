"""Decides whether the number of partitions out of sync has settled, before a run takes a node away.

A number that grows or shrinks is a cluster that something is happening to: a broker on its way out,
or replicas that still catch up. Source: Yelp's kafka-rolling-restart, which asks several times in a
row. core.rotation.progress asks on every turn, also while a node is away.
"""

from __future__ import annotations

from dataclasses import replace

from core.rotation.run_record import Run
from core.views import ClusterView

READINGS = 3


def with_counts(run: Run, kafka: ClusterView | None) -> Run:
    """Return a run with what a reading adds to its last counts; one that is not whole adds none."""
    if kafka is None or kafka.stale or kafka.doubts:
        return run
    counts = (*run.out_of_sync, len(kafka.out_of_sync))
    return replace(run, out_of_sync=counts[-READINGS:])


def why_unsettled(run: Run) -> str | None:
    """Return what speaks against beginning with any node; None: the number has settled.

    Where the run has never seen a partition out of sync, one reading is enough.
    """
    counts = run.out_of_sync
    same = len(set(counts)) == 1 and len(counts) == READINGS
    if same or not any(counts):
        return None
    seen = ", ".join(str(count) for count in counts)
    return (
        f"The number of partitions out of sync is not the same at {READINGS} readings ({seen}); "
        f"wait until it has settled."
    )
