"""λ webhook: NTH says that a drain has ended -> a note in the incident, and a tick at once."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from handlers.adapters import metrics
from handlers.adapters.aws import SqsQueue
from handlers.adapters.secrets import Secret
from handlers.incidents.door import Door
from handlers.settings import Reader
from handlers.store.ledger import DynamoLedger


@functools.cache
def _door() -> Door:
    reader = Reader(os.environ)
    region = reader.text("REGION", or_else="AWS_REGION")
    table, cluster = reader.text("LEDGER_TABLE"), reader.text("CLUSTER")
    queue, secret = reader.text("TICKS_QUEUE_URL"), reader.text("WEBHOOK_SECRET")
    reader.check()
    return Door(
        ledger=DynamoLedger(table, cluster, region),
        ticks=SqsQueue(queue, region),
        token=Secret(secret, region),
    )


@metrics.emitted
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one call of the function URL."""
    del context
    return _door().answer(event, time.time())
