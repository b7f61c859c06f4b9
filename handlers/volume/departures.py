"""Reads from the ledger who of Kafka's nodes leaves next, and how long others were away.

`volume#away` remembers which incidents were open at the last look. One that has closed since tells
how long its broker was away, once.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_lambda_powertools import Logger

from core.errors import Conflict
from core.volumes.departures import Absences, Departures, remembered_absences
from handlers.store.ledger import Ledger
from handlers.store.records import Records
from handlers.store.runs import Runs

logger = Logger(service="stillwater", child=True)
AWAY = "volume#away"


@dataclass(frozen=True)
class Departing:
    """Reads the incidents, the run and what is remembered of earlier ones."""

    ledger: Ledger
    runs: Runs
    records: Records

    def read(self) -> Departures:
        """Return who leaves; what has closed since the last look is remembered."""
        incidents = self.ledger.open_incidents()
        record = self.records.read(AWAY)
        before = Absences.from_json(record.document)
        gone = set(before.open_ids) - {each.id for each in incidents}
        closed = [found for id_ in sorted(gone) if (found := self.ledger.get(id_)) is not None]
        # The index may be behind: what is not over yet is looked at again.
        late = [each for each in closed if each.open]
        now = remembered_absences(before, (*incidents, *late), closed)
        if now != before:
            try:
                self.records.write(AWAY, now.to_json(), record.version)
            except Conflict:
                logger.info("Another invocation remembered the departures at the same moment.")
        return Departures(incidents=incidents, run=self.runs.current(), absences=now)
