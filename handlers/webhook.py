"""λ webhook: NTH says that a drain has ended -> a note in the incident, and a tick at once."""

from __future__ import annotations

import functools
import time
from typing import Any

from core.settings.functions import WebhookSettings
from handlers.adapters import metrics
from handlers.adapters.aws import SqsQueue
from handlers.adapters.secrets import Secret
from handlers.incidents.door import Door
from handlers.store.ledger import DynamoLedger
from handlers.store.settings import read_settings


@functools.cache
def _door() -> Door:
    settings = read_settings(WebhookSettings)
    return Door(
        ledger=DynamoLedger(settings.ledger_table, settings.cluster, settings.region),
        ticks=SqsQueue(settings.ticks_queue_url, settings.region),
        token=Secret(settings.secret_arn, settings.region),
    )


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one call of the function URL."""
    del context
    return _door().answer(event, time.time())
