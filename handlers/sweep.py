"""λ sweep, every minute: what EventBridge lost, and what no tick is carrying.

The queues and EventBridge are fast and at best at-least-once; this is the net below them. It only
opens incidents and sends ticks: the loop does the rest.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from core.errors import Conflict
from core.events import Interruption, Kind
from core.incidents import open_incident, reopens, unattended
from core.naming import GATE_HOOK
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Cloud, Queue, SqsQueue, tick_message
from handlers.chronicle import open_ledger
from handlers.export import Archivist, open_archivist
from handlers.ledger import Ledger, rounds
from handlers.settings import Settings

logger = Logger(service="stillwater")


@dataclass(frozen=True)
class Broom:
    """Finds what was dropped."""

    ledger: Ledger
    cloud: Cloud
    ticks: Queue
    managed_tag: str
    late_seconds: float
    archivist: Archivist

    def sweep(self, now: float) -> dict[str, int]:
        """Revive incidents without a tick and open those nobody announced; return how many."""
        return {
            "revived": self._revive(now),
            "opened": self._open_unannounced(now),
            "filed": self.archivist.file_closed(),
        }

    def _revive(self, now: float) -> int:
        late = [i for i in self.ledger.open_incidents() if unattended(i, now, self.late_seconds)]
        for incident in late:
            logger.warning("No tick carried an incident.", incident_id=incident.id)
            self.ticks.send(tick_message(incident.id, incident.version))
        return len(late)

    def _open_unannounced(self, now: float) -> int:
        waiting = [
            (group.name, instance_id)
            for group in self.cloud.groups_tagged(self.managed_tag)
            for instance_id, state in group.instances.items()
            if state == "Terminating:Wait"
        ]
        return sum(self._open(group, instance_id, now) for group, instance_id in waiting)

    def _open(self, group: str, instance_id: str, now: float) -> bool:
        history = rounds(self.ledger, instance_id)
        found = _lost_announcement(group, instance_id, len(history) + 1)
        if history and (history[-1].open or not reopens(history[-1], found)):
            return False
        try:
            incident = self.ledger.put(
                open_incident(found, now, round_number=len(history) + 1, actor="sweep")
            )
        except Conflict:
            return False  # Its announcement arrived at this moment.
        logger.warning("An announcement never arrived.", incident_id=incident.id)
        self.ticks.send(tick_message(incident.id, incident.version))
        return True


def _lost_announcement(group: str, instance_id: str, round_number: int) -> Interruption:
    """Return what EventBridge should have said; either hook's name stands for both."""
    return Interruption(
        kind=Kind.ASG_TERMINATE,
        instance_id=instance_id,
        event_id=f"sweep-{instance_id}-{round_number}",
        dedupe_key=f"sweep:{instance_id}:{round_number}",
        account=None,
        region=None,
        occurred_at=None,
        group=group,
        hook=GATE_HOOK,
        body="",
    )


@functools.cache
def _broom() -> Broom:
    settings = Settings.from_env()
    ledger = open_ledger(settings)
    return Broom(
        ledger=ledger,
        cloud=AwsCloud(settings.region),
        ticks=SqsQueue(settings.ticks_queue_url, settings.region),
        managed_tag=settings.managed_tag,
        late_seconds=settings.late_seconds,
        archivist=open_archivist(settings, ledger),
    )


@metrics.emitted
def handler(event: Any, context: Any) -> dict[str, int]:
    """Sweep once; what triggers it says nothing worth reading."""
    del event, context
    return _broom().sweep(time.time())
