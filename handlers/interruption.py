"""λ interruption: a message of the events queue -> an incident, a freeze or a record."""

from __future__ import annotations

import functools
import time
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from core.events.parsing import Home
from core.settings.functions import InterruptionSettings
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Ec2Inventory, Queue
from handlers.adapters.batch import answer
from handlers.incidents.desk import IntakeDesk, Notices
from handlers.incidents.reception import Reception
from handlers.store.documents import Freezes
from handlers.store.ledger import open_ledger
from handlers.store.table import Records, read_settings

logger = Logger(service="stillwater")


@functools.cache
def _desk() -> IntakeDesk:
    settings = read_settings(InterruptionSettings)
    records = Records(settings.ledger_table, settings.region)
    reception = Reception(
        ledger=open_ledger(settings),
        cloud=AwsCloud(settings.region),
        ticks=Queue(settings.ticks_queue_url, settings.region),
        whose=settings.whose,
        records=records,
    )
    return IntakeDesk(
        reception=reception,
        notices=Notices(
            reception=reception,
            inventory=Ec2Inventory(settings.region),
            freezes=Freezes(records, settings.cluster),
            prefix=settings.prefix,
            eks_cluster=settings.eks_cluster,
        ),
    )


def _take(record: SQSRecord) -> None:
    with logger.append_context_keys(message_id=record.message_id):
        home = Home.from_queue_arn(record.raw_event.get("eventSourceARN"))
        _desk().take(record.body, time.time(), home=home)


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer a batch of the events queue; failed messages alone are delivered again."""
    return answer(event, context, _take)
