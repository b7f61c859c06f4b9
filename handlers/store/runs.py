"""The rotation run of a cluster, as one document of the ledger's table.

`rotation#<cluster>` is the run that goes on, or the last one; a run that a new one replaces is kept
under `rotation#<cluster>#<id>`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from core.ground.errors import Conflict
from core.rotation.run_record import Run, run_from_document, run_to_document
from handlers.adapters.calls import known_shape
from handlers.store.records import Records


class Runs(Protocol):
    """Where the run is kept."""

    def current(self) -> Run | None:
        """Return the run as last written, over or not; None where there never was one."""

    def put(self, run: Run) -> Run:
        """Write a run over the version it was read at; raises Conflict when that has changed."""


class LedgerRuns:
    """The runs of one cluster; one that cannot be read at all raises StillwaterError."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, f"rotation#{cluster}"

    @known_shape("The ledger's document of the rotation run")
    def current(self) -> Run | None:
        record = self._records.read(self._key)
        return (
            None if record.document is None else run_from_document(record.document, record.version)
        )

    @known_shape("The ledger's document of a rotation run")
    def find(self, id_: str) -> Run | None:
        """Return a run by its id: the one that goes on, the last one, or one before it."""
        if not id_.startswith("rotation-"):
            return None
        run = self.current()
        if run is not None and run.id == id_:
            return run
        record = self._records.read(f"{self._key}#{id_}")
        return (
            None if record.document is None else run_from_document(record.document, record.version)
        )

    def put(self, run: Run) -> Run:
        self._records.write(self._key, run_to_document(run), run.version)
        return replace(run, version=run.version + 1)

    def replace_by(self, run: Run) -> Run:
        """Write a new run where an earlier one is over; Conflict while that one goes on."""
        earlier = self.current()
        if earlier is not None:
            if not earlier.over:
                raise Conflict(
                    f"Run {earlier.id} is {earlier.state.value}; one rotation at a time. See "
                    f"`stillwater rotate status`, or abort it first."
                )
            self._keep(earlier)
        return self.put(replace(run, version=0 if earlier is None else earlier.version))

    def _keep(self, run: Run) -> None:
        key = f"{self._key}#{run.id}"
        kept = self._records.read(key)
        if kept.document is None:
            self._records.write(key, run_to_document(run), kept.version)
