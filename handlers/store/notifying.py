"""Says what was written to the ledger: to Slack's queue, and as metrics.

The one place where interruption, tick, sweep and webhook meet those who only listen. Nothing here
may hold them up or make them fail: a story that could not be queued is told with the next change,
and the last one again when the sweep files the incident.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from core.incidents.record import Incident, State
from core.metric_names import INCIDENTS_LOST, INCIDENTS_OPENED, INCIDENTS_RETAINED
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


class Chronicle:
    """Hears of every incident that was written; without a queue, Slack is off."""

    def __init__(self, stories: Queue | None) -> None:
        self._stories = stories
        self._said: dict[str, str] = {}

    def __call__(self, incident: Incident) -> None:
        self._count(incident)
        self.tell(incident)

    def _count(self, incident: Incident) -> None:
        if incident.version == 1:
            metrics.count(INCIDENTS_OPENED)
        if incident.state in _ENDS:
            metrics.count(_ENDS[incident.state])

    def tell(self, incident: Incident) -> None:
        """Queue the incident's story if what a reader would see has changed."""
        if self._stories is None:
            return
        seen = visible(incident)
        if self._said.get(incident.id) == seen:
            return
        try:
            self._stories.send(story_message(incident.id))
        except (BotoCoreError, ClientError) as error:
            logger.warning("A story was not queued.", incident_id=incident.id, error=str(error))
            return
        if len(self._said) >= MOST_REMEMBERED:
            self._said.clear()
        self._said[incident.id] = seen


class RunChronicle:
    """Hears of every turn of a rotation run; without a queue, Slack is off."""

    def __init__(self, stories: Queue | None) -> None:
        self._stories, self._said = stories, ""

    def __call__(self, run: Run) -> None:
        seen = f"{run.id} {run.state} {run.reason}"
        if self._stories is None or seen == self._said:
            return
        try:
            self._stories.send(story_message(run.id))
        except (BotoCoreError, ClientError) as error:
            logger.warning("A story was not queued.", run=run.id, error=str(error))
            return
        self._said = seen


class ZoneChronicle:
    """Hears of every zone's incident at each turn; without a queue, Slack is off."""

    def __init__(self, stories: Queue | None) -> None:
        self._stories = stories
        self._said: dict[str, str] = {}

    def __call__(self, incident: ZoneIncident) -> None:
        id_, seen = story_id(incident), zone_visible(incident)
        if self._stories is None or self._said.get(id_) == seen:
            return
        try:
            self._stories.send(story_message(id_))
        except (BotoCoreError, ClientError) as error:
            logger.warning("A story was not queued.", incident_id=id_, error=str(error))
            return
        self._said[id_] = seen


def story_message(incident_id: str, attempt: int = 0) -> str:
    """Return a message that asks for an incident's story; the story itself is read when told."""
    return json.dumps({"incident_id": incident_id, "attempt": attempt})


def open_ledger(settings: Writing) -> DynamoLedger:
    """Return the ledger of a function, whose every write is told and counted."""
    return DynamoLedger(
        settings.ledger_table, settings.cluster, settings.region, written=_chronicle(settings)
    )


def zone_teller(settings: Writing) -> ZoneChronicle:
    """Return what queues the story of a zone."""
    url = settings.stories_queue_url
    return ZoneChronicle(SqsQueue(url, settings.region) if url else None)


def run_teller(settings: Writing) -> RunChronicle:
    """Return what queues the story of a run."""
    url = settings.stories_queue_url
    return RunChronicle(SqsQueue(url, settings.region) if url else None)


def story_teller(settings: Writing) -> Callable[[Incident], None]:
    """Return what queues a story without counting anything."""
    return _chronicle(settings).tell


def _chronicle(settings: Writing) -> Chronicle:
    url = settings.stories_queue_url
    return Chronicle(SqsQueue(url, settings.region) if url else None)
