"""λ rotate: plan, start, pause, resume or abort a rotation run; whoever may invoke it may rotate.

The event is `{"command": ..., "actor": ..., ...}`; handlers.rotation.conductor answers it.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from aws_lambda_powertools import Logger

from core.settings.functions import RotateSettings
from handlers.adapters import metrics
from handlers.adapters.aws import AwsCloud, Queue
from handlers.adapters.eks import open_api
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.kubernetes import open_claims, open_nodes
from handlers.adapters.pods import AT_ONCE, PodExporters
from handlers.adapters.templates import AwsTemplates
from handlers.incidents.act import ErrorSnapshots
from handlers.incidents.observe import Sources
from handlers.rotation.conductor import Conductor
from handlers.rotation.turns import ClientsBudget
from handlers.store.documents import Freezes, Runs
from handlers.store.ledger import Ledger
from handlers.store.table import Records, read_settings

logger = Logger(service="stillwater")


@functools.cache
def _conductor() -> Conductor:
    settings = read_settings(RotateSettings)
    api = open_api(settings, AT_ONCE)
    nodes = open_nodes(settings, api)
    records = Records(settings.ledger_table, settings.region)
    return Conductor(
        runs=Runs(records, settings.cluster),
        sources=Sources(
            cloud=AwsCloud(settings.region),
            nodes=nodes,
            kafka=KafkaAdmin(settings.kafka_bootstrap, KafkaAccess(settings.kafka, api)),
            ledger=Ledger(settings.ledger_table, settings.cluster, settings.region),
            freezes=Freezes(records, settings.cluster),
            claims=open_claims(settings, api),
        ),
        templates=AwsTemplates(settings.region),
        snapshots=ErrorSnapshots(PodExporters(api, settings.namespace), nodes, records),
        ticks=Queue(settings.ticks_queue_url, settings.region),
        policy=settings.policy,
        whose=settings.whose,
        budget=None
        if settings.probe_budget is None
        else ClientsBudget.connect(
            settings.probe_budget, settings.namespace, settings.cluster, api
        ),
    )


@metrics.emits_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one command."""
    del context
    answer = _conductor().take(event, time.time())
    logger.info(answer.get("said") or "Refused.", problems=answer.get("problems"))
    return answer
