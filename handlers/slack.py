"""λ slack: a message of the stories queue -> the thread of its incident or run says so."""

from __future__ import annotations

import functools
import time
from typing import Any

from core.settings.functions import SlackSettings
from handlers.adapters import metrics
from handlers.adapters.aws import Queue, Secret
from handlers.adapters.batch import answer
from handlers.adapters.slack import Channel, SlackChannel
from handlers.store.documents import Freezes, Runs, Threads
from handlers.store.ledger import Ledger
from handlers.store.table import Records, VersionedTable, read_settings
from handlers.stories import RenewedChannel, Teller


@functools.cache
def _teller() -> Teller:
    settings = read_settings(SlackSettings)

    def connect(token: str) -> Channel:
        return SlackChannel(token, settings.channel, settings.api_url)

    records = Records(settings.ledger_table, settings.region)
    return Teller(
        freezes=Freezes(records, settings.cluster),
        ledger=Ledger(settings.ledger_table, settings.cluster, settings.region),
        runs=Runs(records, settings.cluster),
        threads=Threads(VersionedTable(settings.ledger_table, settings.region)),
        channel=RenewedChannel(Secret(settings.secret_name, settings.region), connect),
        stories=Queue(settings.stories_queue_url, settings.region),
        cluster=settings.prefix,
        hold_limit_seconds=settings.hold_limit_seconds,
        runbooks_url=settings.runbooks_url,
    )


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer a batch of the stories queue; failed messages alone are delivered again."""
    return answer(event, context, lambda record: _teller().take(record.body, time.time))
