"""Throttles replication for a run, and takes it off again whatever becomes of the run.

One document of the ledger's table says which run throttles which topics. It is written before Kafka
is and emptied after it, so that no crash leaves a throttle that nobody knows of: the sweep compares
it with the run as it is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.ground.errors import StillwaterError
from core.rotation.run_record import Run, Throttle
from handlers.adapters.kafka import KafkaCluster
from handlers.store.records import Records
from handlers.store.throttled import is_left_throttled, throttle_key


@dataclass(frozen=True)
class Throttles:
    """The replication throttle of one cluster."""

    kafka: KafkaCluster
    records: Records
    cluster: str

    def settle(self, run_id: str, throttle: Throttle | None) -> None:
        """Have replication throttled as a run wants it; None: not at all.

        Raises StillwaterError where Kafka refuses or somebody else throttles the same already,
        Conflict when another invocation is at it.
        """
        record = self.records.read(throttle_key(self.cluster))
        before: list[str] = record.document["topics"] if record.document else []
        if throttle is None:
            if record.document:
                self.kafka.unthrottle(before)
                self.records.write(throttle_key(self.cluster), {}, record.version)
            return
        # Before anything is written: what is taken off later must be what was put on.
        others = self.kafka.throttled_by_others(throttle, before)
        if others:
            raise StillwaterError(others)
        topics = sorted({*before, *throttle.topics})
        written = {**(record.document or {}), "run": run_id, "topics": topics}
        self.records.write(throttle_key(self.cluster), written, record.version)
        self.kafka.throttle(throttle)

    def tidy(self, run: Run | None) -> None:
        """Take off what was left on; raises as `settle` does."""
        if is_left_throttled(self.records, self.cluster, run):
            self.settle("", None)
