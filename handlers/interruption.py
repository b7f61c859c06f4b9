"""λ interruption: what AWS announced -> an incident, a freeze or a record; never nothing.

handlers.incidents.reception answers what is about an instance, handlers.incidents.notices the rest.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any, assert_never

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from core.events import (
    Advisory,
    Announcement,
    GroupNotice,
    Ignored,
    Interruption,
    VolumeNotice,
    ZoneNotice,
    parse,
)
from core.events.origin import Home, foreign
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, SqsQueue
from handlers.adapters.inventory import Ec2Inventory
from handlers.incidents.notices import Notices
from handlers.incidents.reception import Reception
from handlers.settings import Settings
from handlers.store.freezes import LedgerFreezes
from handlers.store.notifying import open_ledger
from handlers.store.records import DynamoRecords

logger = Logger(service="stillwater")
# Health names the instances of a whole account: asked for one by one, they would take longer than
# the function may run.
MANY_INSTANCES = 10


@dataclass(frozen=True)
class Desk:
    """Takes announcements in."""

    reception: Reception
    notices: Notices

    def take(self, body: str, now: float, *, home: Home | None = None) -> None:
        """Give every announcement in one message its place; nothing is lost, nothing counts twice.

        `home` is whose announcements count; None: everybody's.

        Raises Conflict when others keep changing the same incident: SQS then delivers again.
        """
        for found in self._ours(parse(body), now):
            if isinstance(found, Ignored):
                self.reception.ignore(found.body, found.reason, now)
                continue
            others = foreign(found, home)
            if others is not None:
                self.reception.ignore(found.body, others, now)
                continue
            with logger.append_context_keys(
                correlation_id=found.event_id, announcement=found.dedupe_key
            ):
                self._answer(found, now)

    def _ours(
        self, announced: tuple[Announcement | Ignored, ...], now: float
    ) -> tuple[Announcement | Ignored, ...]:
        """Leave out the instances of others where one message names many, in one question."""
        named = {f.instance_id for f in announced if isinstance(f, Interruption)}
        if len(named) < MANY_INSTANCES:
            return announced
        ours = self.notices.inventory.instance_states(self.reception.managed_tag)
        foreign = sorted(named - set(ours))
        if foreign:
            reason = (
                f"{len(foreign)} of the {len(named)} instances it names are another's: they have "
                f"no tag {self.reception.managed_tag}."
            )
            self.reception.ignore(announced[0].body, reason, now)
        return tuple(
            f for f in announced if not isinstance(f, Interruption) or f.instance_id in ours
        )

    def _answer(self, found: Announcement, now: float) -> None:
        match found:
            case Interruption():
                self.reception.receive(found, now)
            case VolumeNotice():
                self.notices.of_volume(found, now)
            case ZoneNotice():
                self.notices.of_zone(found, now)
            case GroupNotice():
                self.notices.of_group(found, now)
            case Advisory():
                self.notices.of_advisory(found, now)
            case _:
                assert_never(found)


@functools.cache
def _desk() -> Desk:
    settings = Settings.from_env(speaks_to_kubernetes=False)
    reception = Reception(
        ledger=open_ledger(settings),
        cloud=AwsCloud(settings.region),
        ticks=SqsQueue(settings.ticks_queue_url, settings.region),
        managed_tag=settings.managed_tag,
    )
    records = DynamoRecords(settings.ledger_table, settings.region)
    return Desk(
        reception=reception,
        notices=Notices(
            reception=reception,
            inventory=Ec2Inventory(settings.region),
            freezes=LedgerFreezes(records, settings.cluster),
            prefix=settings.prefix,
            records=records,
        ),
    )


def _take(record: SQSRecord) -> None:
    with logger.append_context_keys(message_id=record.message_id):
        home = Home.of(record.raw_event.get("eventSourceARN"))
        _desk().take(record.body, time.time(), home=home)


@metrics.emitted
def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer a batch of the events queue; failed messages alone are delivered again."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event=event, record_handler=_take, processor=processor, context=context
    )
