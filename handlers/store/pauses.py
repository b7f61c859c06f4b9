"""The pause of one cluster, in one document of the ledger's table: `pause#<cluster>`."""

from __future__ import annotations

from core.incidents.joining import Pause, pause_from_document, pause_to_document
from handlers.store.records import Records
from handlers.store.retrying import over_the_newest


def pause_key(cluster: str) -> str:
    return f"pause#{cluster}"


class Pauses:
    """Whether a cluster is paused, as last written."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, pause_key(cluster)

    def current(self, now: float) -> Pause | None:
        """Return the pause that holds; None: there is none."""
        pause = pause_from_document(self._records.read(self._key).document)
        return pause if pause is not None and pause.holds(now) else None

    def write(self, pause: Pause | None) -> None:
        """Pause, or resume with None; the last word stands. Raises Conflict if others keep on."""
        document, read = pause_to_document(pause), self._records.read
        over_the_newest(lambda: self._records.write(self._key, document, read(self._key).version))
