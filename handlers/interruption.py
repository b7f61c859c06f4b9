"""λ interruption: what AWS announced -> an incident in the ledger, and its first tick.

Order of effects: incident, tick, record. Dying between any two makes SQS deliver the announcement
again, which changes nothing it has changed already and sends the tick it had not.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from core.errors import Conflict
from core.events import Ignored, Interruption, parse
from core.incidents import Incident, merge, open_incident, reopens, unanswered
from handlers.adapters.aws import AwsCloud, Cloud, Queue, SqsQueue, tick_message
from handlers.ledger import DynamoLedger, Ledger, rounds
from handlers.settings import Settings

logger = Logger(service="stillwater")
# Deliveries about one instance meet at its record; more than a few in a row is a fault.
MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class Desk:
    """Takes announcements in."""

    ledger: Ledger
    cloud: Cloud
    ticks: Queue
    managed_tag: str

    def take(self, body: str, now: float) -> None:
        """Give every announcement in one message its place; nothing is lost, nothing counts twice.

        Raises Conflict when others keep changing the same incident: SQS then delivers again.
        """
        for found in parse(body):
            if isinstance(found, Ignored):
                self._ignore(found.body, found.reason, now)
            elif isinstance(found, Interruption):
                self._answer(found, now)
            else:
                self._ignore(found.body, f"Nobody acts on {found.dedupe_key} yet.", now)

    def _answer(self, found: Interruption, now: float) -> None:
        for attempt in range(MOST_ATTEMPTS):
            try:
                incident = self._join(found, now)
                break
            except Conflict:
                if attempt == MOST_ATTEMPTS - 1:
                    raise
        if incident is None:
            return
        if incident.open:
            self.ticks.send(tick_message(incident.id, incident.version))
        outcome = f"Incident {incident.id}, which is {incident.state.value}."
        self.ledger.record_event(found.dedupe_key, found.body, outcome, now)
        logger.info(outcome, kind=found.kind.value, instance_id=found.instance_id)

    def _join(self, found: Interruption, now: float) -> Incident | None:
        """Return the incident an announcement belongs to, opened if need be; None: to none."""
        history = rounds(self.ledger, found.instance_id)
        current = history[-1] if history else None
        if current is not None:
            known = any(found.dedupe_key in past.announcements for past in history)
            if known or not (current.open or reopens(current, found)):
                return current
            if current.open:
                return self.ledger.put(merge(current, found, now))
        refusal = unanswered(found) or self._foreign(found.instance_id)
        if refusal:
            self._ignore(found.body, refusal, now)
            return None
        return self.ledger.put(open_incident(found, now, round_number=len(history) + 1))

    def _foreign(self, instance_id: str) -> str | None:
        """Say why an instance is none of this cluster's: EC2's events name no cluster."""
        instance = self.cloud.instance(instance_id)
        if instance is None:
            return f"EC2 does not know instance {instance_id}."
        if self.managed_tag not in instance.tags:
            return f"Instance {instance_id} has no tag {self.managed_tag}: another's."
        return None

    def _ignore(self, body: str, reason: str, now: float) -> None:
        self.ledger.record_ignored(body, reason, now)
        logger.info("Ignored an announcement.", reason=reason)


@functools.cache
def _desk() -> Desk:
    settings = Settings.from_env()
    return Desk(
        ledger=DynamoLedger(settings.ledger_table, settings.cluster, settings.region),
        cloud=AwsCloud(settings.region),
        ticks=SqsQueue(settings.ticks_queue_url, settings.region),
        managed_tag=settings.managed_tag,
    )


def _take(record: SQSRecord) -> None:
    _desk().take(record.body, time.time())


def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer a batch of the events queue; failed messages alone are delivered again."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event=event, record_handler=_take, processor=processor, context=context
    )
