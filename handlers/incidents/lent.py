"""Calls a person when what was lent for an incident, a run or a zone stays lent.

λ tick gives it back at the sweep's word, and where it cannot it only warns, since nobody's end
waits for that. The sweep keeps since when each has been left, and calls once that has lasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.errors import Conflict
from core.incidents.sickness import Concern
from handlers.store.records import Records

# λ tick tries every minute; a service that is upgraded is away for minutes.
PATIENCE_SECONDS = 900.0


def overdue(records: Records, cluster: str, left: Iterable[str], now: float) -> Iterator[Concern]:
    """Yield a call for each thing that is left for too long; what is gone is forgotten."""
    key = f"lent#{cluster}"
    record = records.read(key)
    known: dict[str, float] = record.document or {}
    since = {what: known.get(what, now) for what in left}
    if since != known:
        try:
            records.write(key, since, record.version)
        except Conflict:
            return  # Another sweep looks at the same moment.
    for what, at in since.items():
        if now - at > PATIENCE_SECONDS:
            yield Concern(
                f"lent:{what}:{at:.0f}",
                f"Since {(now - at) / 60:.0f} min it cannot be given back that {what}. λ tick "
                f"tries every minute, and its log says what refuses.",
                "not_given_back",
            )
