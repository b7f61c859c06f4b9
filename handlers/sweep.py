"""λ sweep, every minute: what EventBridge lost, and what no tick is carrying."""

from __future__ import annotations

import functools
import time
from functools import partial
from typing import Any

from core.settings.functions import SweepSettings, late_seconds
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Ec2Inventory, Queue
from handlers.adapters.claims import told_rebalances
from handlers.adapters.eks import open_api
from handlers.adapters.kubernetes import open_claims, open_nodes
from handlers.incidents.broom import Broom, open_archivist
from handlers.incidents.reception import Reception
from handlers.store.documents import Freezes
from handlers.store.ledger import open_ledger, open_stories
from handlers.store.table import Records, read_settings


@functools.cache
def _broom() -> Broom:
    settings = read_settings(SweepSettings)
    records = Records(settings.ledger_table, settings.region)
    ledger = open_ledger(settings)
    api = open_api(settings)
    return Broom(
        reception=Reception(
            ledger=ledger,
            cloud=AwsCloud(settings.region),
            ticks=Queue(settings.ticks_queue_url, settings.region),
            whose=settings.whose,
            records=records,
        ),
        inventory=Ec2Inventory(settings.region),
        nodes=open_nodes(settings, api),
        claims=open_claims(settings, api),
        records=records,
        freezes=Freezes(records, settings.cluster),
        cluster=settings.cluster,
        late_seconds=late_seconds(settings.tick_interval_seconds),
        archivist=open_archivist(settings, ledger),
        stories=open_stories(settings),
        rebalances=partial(
            told_rebalances, api, settings.namespace, settings.cluster, settings.region
        )
        if settings.stories_queue_url
        else tuple,
    )


@metrics.emits_metrics
def handler(event: Any, context: Any) -> dict[str, int]:
    """Sweep once; what triggers it says nothing worth reading."""
    del event, context
    return _broom().sweep(time.time())
