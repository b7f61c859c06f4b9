"""Says what was written to the ledger: to Slack's queue, and as metrics.

The one place where interruption, tick, sweep and webhook meet those who only listen. Nothing here
may hold them up or make them fail: a story that could not be queued is told with the next change,
and the last one again when the sweep files the incident.
"""

from __future__ import annotations

import json

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from core.ground.metric_names import INCIDENTS_LOST, INCIDENTS_OPENED, INCIDENTS_RETAINED
from core.incidents.record import Incident, State
from core.rotation.run_record import Run
from core.settings.functions import Writing
from core.slack.incident_thread import visible
from core.slack.zone_thread import story_id
from core.slack.zone_thread import visible as zone_visible
from core.zones.incident import ZoneIncident
from handlers.adapters import metrics
from handlers.adapters.aws import Queue, SqsQueue
from handlers.store.ledger import DynamoLedger

logger = Logger(service="stillwater", child=True)
_ENDS = {State.RETAINED: INCIDENTS_RETAINED, State.LOST: INCIDENTS_LOST}
# What one environment remembers having queued; more are forgotten, and only queued once more.
MOST_REMEMBERED = 1000


class Stories:
    """Queues what Slack is to tell, where its readers would see a change; without a queue, none."""

    def __init__(self, queue: Queue | None) -> None:
        self._queue = queue
        self._told: dict[str, str] = {}

    def of_written(self, incident: Incident) -> None:
        """Count an incident that was written, and queue its story."""
        if incident.version == 1:
            metrics.count(INCIDENTS_OPENED)
        if incident.state in _ENDS:
            metrics.count(_ENDS[incident.state])
        self.of_incident(incident)

    def of_incident(self, incident: Incident) -> None:
        self._tell(incident.id, visible(incident))

    def of_run(self, run: Run) -> None:
        self._tell(run.id, f"{run.state} {run.reason}")

    def of_zone(self, incident: ZoneIncident) -> None:
        self._tell(story_id(incident), zone_visible(incident))

    def _tell(self, id_: str, seen: str) -> None:
        if self._queue is None or self._told.get(id_) == seen:
            return
        try:
            self._queue.send(story_message(id_))
        except (BotoCoreError, ClientError) as error:
            logger.warning("A story was not queued.", story=id_, error=str(error))
            return
        if len(self._told) >= MOST_REMEMBERED:
            self._told.clear()
        self._told[id_] = seen


def story_message(incident_id: str, attempt: int = 0) -> str:
    """Return a message that asks for an incident's story; the story itself is read when told."""
    return json.dumps({"incident_id": incident_id, "attempt": attempt})


def open_ledger(settings: Writing) -> DynamoLedger:
    """Return the ledger of a function, whose every write is told and counted."""
    return DynamoLedger(
        settings.ledger_table,
        settings.cluster,
        settings.region,
        written=open_stories(settings).of_written,
    )


def open_stories(settings: Writing) -> Stories:
    """Return what queues stories where Slack is told."""
    url = settings.stories_queue_url
    return Stories(SqsQueue(url, settings.region) if url else None)
