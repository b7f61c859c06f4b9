"""λ health: how the whole cluster does now, under the contract of Connect's GET /health (KIP-1017).

It reads and changes nothing; it is invoked by whoever may (ADR 0013), by `stillwater health`, and
on schedule, so that its verdict is a metric with an alarm.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from core.examination import Expected
from core.ground import naming
from core.settings.functions import HealthSettings
from handlers.adapters import metrics
from handlers.adapters.calls import NO_ANSWER
from handlers.adapters.claims import read_conditions, wanted_roles
from handlers.adapters.eks import open_api
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.pods import EksPods, PodExporters, through
from handlers.examiner import EXPORTER_SECONDS, Examiner, unable
from handlers.store.documents import Freezes
from handlers.store.ledger import Ledger
from handlers.store.table import Records, read_settings


@functools.cache
def _examiner() -> Examiner:
    settings = read_settings(HealthSettings)
    cluster, namespace, nodes = settings.cluster, settings.namespace, settings.nodes
    table, region = settings.ledger_table, settings.region
    names = [naming.connect_pod(cluster, number) for number in range(settings.connect_workers)]
    api = open_api(settings, connections=len(names) + len(nodes) + 3)
    access = KafkaAccess(settings.kafka, api)
    return Examiner(
        cluster=cluster,
        expected=Expected(
            roles={node.node_id: node.role for node in nodes},
            workers=names,
            worker_startup_seconds=settings.connect_startup_seconds,
        ),
        kafka=[KafkaAdmin([each], access) for each in settings.kafka_bootstrap],
        pods=EksPods(api, namespace, cluster),
        workers={name: through(api, namespace, name) for name in names},
        exporters=PodExporters(api, namespace, EXPORTER_SECONDS),
        exporting={
            node.node_id: naming.pod(cluster, node.node_pool, node.node_id)
            for node in nodes
            if settings.exporters
        },
        ledger=Ledger(table, cluster, region),
        freezes=Freezes(Records(table, region), cluster),
        operator=functools.partial(read_conditions, api, namespace, cluster, region),
        probe_seconds=settings.connect_probe_seconds,
        # A cluster that exists is described without its nodes.
        nodes=None if nodes else functools.partial(wanted_roles, api, namespace, cluster),
    )


@metrics.emits_metrics
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer with the cluster's health; what is asked, and by whom, changes nothing."""
    del event, context
    now, started = time.time(), time.monotonic()
    try:
        examiner = _examiner()
    except NO_ANSWER as error:
        return unable(error, now, started)
    return examiner.answer(now)
