"""The zones that are frozen, in one document of the ledger's table.

λ interruption and λ sweep note what AWS says, λ tick what it finds lost; the loop reads it before
planned work. Only who changes the document writes it: a duplicate notice costs one read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from core.availability.zones import LOST_ZONE, Freeze, ZoneNotice, apply
from core.errors import Conflict
from handlers.store.records import Records

# Notices about one zone meet at the document; more than a few in a row is a fault.
MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LostZone:
    """Our own word on a zone in which none of our Kafka nodes is left, or one is again."""

    zone_id: str
    zone: str | None
    over: bool = False
    source: str = LOST_ZONE
    occurred_at: float | None = None
    until: float | None = None


class Freezes(Protocol):
    """Which zones are left alone."""

    def note(self, notice: ZoneNotice, now: float) -> tuple[Freeze, ...]:
        """Add what was announced and return what is in force; a duplicate changes nothing."""

    def current(self, now: float) -> tuple[Freeze, ...]:
        """Return the freezes in force."""

    def name(self, names: Mapping[str, str], now: float) -> tuple[Freeze, ...]:
        """Add the names of zones by their ids; return what is in force."""


class LedgerFreezes:
    """The freezes of one cluster."""

    def __init__(self, records: Records, cluster: str) -> None:
        self._records, self._key = records, f"freezes#{cluster}"

    def note(self, notice: ZoneNotice, now: float) -> tuple[Freeze, ...]:
        """Raises Conflict when others keep writing: the message is then delivered again."""
        return self._change(lambda freezes: apply(notice, freezes, now))

    def current(self, now: float) -> tuple[Freeze, ...]:
        return tuple(f for f in self._read()[0] if f.holds(now))

    def name(self, names: Mapping[str, str], now: float) -> tuple[Freeze, ...]:
        return self._change(
            lambda freezes: tuple(
                replace(freeze, zone=freeze.zone or names.get(freeze.zone_id))
                for freeze in freezes
                if freeze.holds(now)
            )
        )

    def _change(
        self, change: Callable[[tuple[Freeze, ...]], tuple[Freeze, ...]]
    ) -> tuple[Freeze, ...]:
        for attempt in range(MOST_ATTEMPTS):
            before, version = self._read()
            after = change(before)
            if after == before:
                return after
            try:
                self._records.write(self._key, [asdict(freeze) for freeze in after], version)
            except Conflict:
                if attempt == MOST_ATTEMPTS - 1:
                    raise
                continue
            return after
        raise AssertionError("every attempt returns or raises")

    def _read(self) -> tuple[tuple[Freeze, ...], int]:
        record = self._records.read(self._key)
        return tuple(Freeze(**freeze) for freeze in record.document or ()), record.version
