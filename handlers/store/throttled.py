"""Names the document that says which run throttles which topics, and finds one left behind."""

from __future__ import annotations

from core.rotation.run_record import Run, RunState
from handlers.adapters.calls import known_shape
from handlers.store.records import Records


def throttle_key(cluster: str) -> str:
    """Return the key of a cluster's document."""
    return f"throttle#{cluster}"


@known_shape("The ledger's document of throttled topics")
def is_left_throttled(records: Records, cluster: str, run: Run | None) -> bool:
    """Say whether something is throttled for a run that does not want it any more."""
    document = records.read(throttle_key(cluster)).document
    if not document:
        return False
    current = run is not None and run.id == document["run"] and run.state is RunState.RUNNING
    return not (current and run is not None and run.throttled)
