"""Calls a person when something lasts that is over within minutes as a rule.

What was lent for an incident, a run or a zone is given back by λ tick at the sweep's word, and
where it cannot be it only warns, since nobody's end waits for that. What the sweep cannot read it
does without. The sweep keeps since when each has lasted, and calls once it has for too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from core.errors import Conflict
from core.incidents.sickness import Concern
from handlers.store.records import Records

# λ tick tries every minute; a service that is upgraded is away for minutes.
PATIENCE_SECONDS = 900.0
NOT_GIVEN_BACK, UNSEEN = "not_given_back", "sweep_blind"
_SENTENCES: Mapping[str, str] = {
    NOT_GIVEN_BACK: "For {minutes:.0f} min it could not be given back that {what}. λ tick tries "
    "every minute, and its log says what refuses.",
    UNSEEN: "For {minutes:.0f} min λ sweep could not read {what}, and its log says why: who is "
    "sick, lost or left out there is noticed by nobody.",
}


def overdue(
    records: Records, cluster: str, page: str, what: Iterable[str], now: float
) -> Iterator[Concern]:
    """Yield a call for each thing that has lasted for too long; what is over is forgotten."""
    key = f"lasting#{cluster}#{page}"
    record = records.read(key)
    known = record.document if isinstance(record.document, dict) else {}
    since = {each: at if isinstance(at := known.get(each), float) else now for each in what}
    if since != known:
        try:
            records.write(key, since, record.version)
        except Conflict:
            return  # Another sweep looks at the same moment.
    for each, at in since.items():
        if now - at > PATIENCE_SECONDS:
            said = _SENTENCES[page].format(minutes=(now - at) / 60, what=each)
            yield Concern(f"{page}:{each}:{at:.0f}", said, page)
