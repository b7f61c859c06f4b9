"""Metadata errors of every Kafka node, kept before a restart sets them back to 0.

`errors#<incident id>` of the ledger's table holds what was counted when the incident's drain was
forwarded, or, where the termination handler hears AWS itself, at the incident's first look; a
rotation run asks before it begins with a node.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from core.errors import Conflict, StillwaterError
from core.health.kafka_metrics import Metric
from core.health.metadata_errors import ErrorSnapshot, snapshot
from handlers.adapters.exporters import Exporters
from handlers.adapters.kubernetes import Nodes
from handlers.store.records import Records

logger = Logger(service="stillwater", child=True)
RECOVERY = 2  # Kafka's BrokerState


@dataclass(frozen=True, slots=True)
class ErrorRound:
    """What the exporters said in one round."""

    errors: ErrorSnapshot
    recovering: tuple[int, ...]


@dataclass(frozen=True)
class ErrorSnapshots:
    """Asks the exporters of one cluster's pods."""

    exporters: Exporters
    nodes: Nodes
    records: Records

    def ask(self, now: float) -> ErrorRound:
        """Ask every pod that runs; raises StillwaterError when Kubernetes does not answer."""
        pods = [pod.name for pod in self.nodes.kafka_pods() if pod.node_name is not None]
        scrapes = self.exporters.scrape(pods)
        recovering = tuple(
            node_id
            for node_id, metrics in sorted(scrapes.metrics.items())
            if metrics.count(Metric.BROKER_STATE) == RECOVERY
        )
        return ErrorRound(snapshot(now, scrapes.metrics, scrapes.silent), recovering)

    def keep(self, incident_id: str, now: float) -> None:
        """Keep the counters before an incident's drain; the first that are kept stand.

        Nothing waits for it: a machine that AWS takes goes whether or not its errors are known.
        """
        key = f"errors#{incident_id}"
        try:
            if self.records.read(key).version == 0:
                self.records.write(key, self.ask(now).errors.to_dict(), 0)
        except (StillwaterError, Conflict, BotoCoreError, ClientError) as error:
            logger.warning(
                "Metadata errors were not kept.", incident_id=incident_id, error=str(error)
            )
