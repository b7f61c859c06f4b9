"""λ health: how the whole cluster does now, under the contract of Connect's GET /health (KIP-1017).

It reads and changes nothing; it is invoked by whoever may (ADR 0013), by `stillwater health`, and
on schedule, so that its verdict is a metric with an alarm.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from core import naming
from core.health.examination import Expected
from handlers.adapters import metrics
from handlers.adapters.connect import through
from handlers.adapters.eks import EksApi
from handlers.adapters.exporters import PodExporters
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.pods import EksPods
from handlers.examination.examiner import EXPORTER_SECONDS, Examiner, nodes_in, unable
from handlers.kafka_access import kafka_identity
from handlers.settings import Reader
from handlers.store.freezes import LedgerFreezes
from handlers.store.kept import complete
from handlers.store.ledger import DynamoLedger
from handlers.store.records import DynamoRecords


@functools.cache
def _examiner() -> Examiner:
    reader = Reader(complete())
    region, cluster = reader.text("REGION", or_else="AWS_REGION"), reader.text("CLUSTER")
    namespace, table = reader.text("NAMESPACE"), reader.text("LEDGER_TABLE")
    eks = functools.partial(
        EksApi,
        endpoint=reader.text("EKS_ENDPOINT"),
        ca_pem=reader.pem("EKS_CA"),
        eks_cluster=reader.text("EKS_CLUSTER"),
        region=region,
    )
    bootstrap = [each.strip() for each in reader.text("KAFKA_BOOTSTRAP").split(",")]
    identity = kafka_identity(reader, "health")
    nodes, workers = nodes_in(reader.text("KAFKA_NODES")), int(reader.number("CONNECT_WORKERS"))
    exporters = reader.choice("EXPORTERS", "on", "off")
    startup, probe = reader.number("CONNECT_STARTUP_S"), reader.number("CONNECT_PROBE_S")
    reader.check()
    names = [naming.connect_pod(cluster, number) for number in range(workers)]
    api = eks(connections=len(names) + len(nodes) + 2)
    access = KafkaAccess(identity, api)
    return Examiner(
        cluster=cluster,
        expected=Expected(
            roles={node.node_id: node.role for node in nodes},
            workers=names,
            worker_startup_seconds=startup,
        ),
        kafka=[KafkaAdmin([each], access) for each in bootstrap],
        pods=EksPods(api, namespace, cluster),
        workers={name: through(api, namespace, name) for name in names},
        exporters=PodExporters(api, namespace, EXPORTER_SECONDS),
        exporting={
            node.node_id: naming.pod(cluster, node.node_pool, node.node_id)
            for node in nodes
            if exporters == "on"
        },
        ledger=DynamoLedger(table, cluster, region),
        freezes=LedgerFreezes(DynamoRecords(table, region), cluster),
        probe_seconds=probe,
    )


@metrics.emitted
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer with the cluster's health; what is asked, and by whom, changes nothing."""
    del event, context
    now, started = time.time(), time.monotonic()
    try:
        examiner = _examiner()
    except (BotoCoreError, ClientError) as error:
        return unable(error, now, started)
    return examiner.answer(now)
