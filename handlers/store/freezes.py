"""The incidents of zones, in one document of the ledger's table, and what they freeze.

λ interruption and the command line note what is said, λ tick what it finds lost and what bears a
word out; the loop reads the freezes before planned work. Only who changes the document writes it:
a duplicate notice costs one read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from core.availability.leaders import Freeze
from core.incidents.joining import Pause
from core.zones.evidence import ZonePage, ZoneSight, judge
from core.zones.incident import (
    PERSON,
    LostZone,
    ZoneIncident,
    ZoneWord,
    freezes_in_force,
    hear,
    name_zones,
    thaw,
    zones_from_document,
    zones_to_document,
)
from handlers.store.pauses import Pauses
from handlers.store.records import Records
from handlers.store.retrying import over_the_newest

Incidents = tuple[ZoneIncident, ...]


class Freezes(Protocol):
    """Which zones are left alone."""

    def note(
        self, word: ZoneWord, now: float, names: Mapping[str, str] | None = None
    ) -> tuple[Freeze, ...]:
        """Add what was said and return what is in force; a duplicate changes nothing."""

    def current(self, now: float) -> tuple[Freeze, ...]:
        """Return the freezes in force."""

    def current_pause(self, now: float) -> Pause | None:
        """Return the pause of the whole cluster that holds; None: there is none."""

    def incidents(self) -> Incidents:
        """Return every zone's incident that is remembered."""

    def judge(self, sight: ZoneSight, call: Callable[[ZonePage], None]) -> Incidents:
        """Freeze what is borne out and thaw what is too old; call whom that concerns."""


class LedgerFreezes:
    """The zones' incidents of one cluster."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, f"freezes#{cluster}"
        self._pauses = Pauses(records, cluster)

    def note(
        self, word: ZoneWord, now: float, names: Mapping[str, str] | None = None
    ) -> tuple[Freeze, ...]:
        """Raises Conflict when others keep writing: the message is then delivered again."""
        known = dict(names or {})
        if isinstance(word, LostZone) and word.zone is not None:
            known[word.zone_id] = word.zone
        heard = self._change(lambda incidents: name_zones(hear(word, incidents, now), known))
        return freezes_in_force(heard, now)

    def current(self, now: float) -> tuple[Freeze, ...]:
        return freezes_in_force(self.incidents(), now)

    def current_pause(self, now: float) -> Pause | None:
        return self._pauses.current(now)

    def incidents(self) -> Incidents:
        return zones_from_document(self._records.read(self._key).document)

    def judge(self, sight: ZoneSight, call: Callable[[ZonePage], None]) -> Incidents:
        def judged(incidents: Incidents) -> Incidents:
            after, pages = judge(name_zones(incidents, sight.names), sight)
            for page in pages:
                # Before it is written: who dies in between calls twice, and never not at all.
                call(page)
            return name_zones(after, sight.names)

        return self._change(judged)

    def freeze(
        self, zone_id: str, zone: str, now: float, until: float, actor: str, because: str
    ) -> Incidents:
        """Freeze a zone because a person says so, until then."""
        said = f"{actor}: {because}" if because else actor
        word = LostZone(zone_id, zone, source=PERSON, occurred_at=now, until=until, said=said)
        return self._change(
            lambda incidents: name_zones(hear(word, incidents, now), {zone_id: zone})
        )

    def thaw(self, zone_id: str, now: float, actor: str, because: str) -> Incidents:
        """Thaw a zone because a person says so; no word about the same events freezes it again."""
        return self._change(lambda incidents: thaw(incidents, zone_id, now, actor, because))

    def _change(self, change: Callable[[Incidents], Incidents]) -> Incidents:
        return over_the_newest(lambda: self._changed_once(change))

    def _changed_once(self, change: Callable[[Incidents], Incidents]) -> Incidents:
        record = self._records.read(self._key)
        before = zones_from_document(record.document)
        after = change(before)
        if after != before:
            self._records.write(
                self._key, zones_to_document(after, record.document), record.version
            )
        return after
