"""λ volumes, every five minutes: what Kafka's volumes need, and what of it may be done."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

from core.cost import pricing
from handlers.adapters import metrics
from handlers.adapters.claims import EksClaims
from handlers.adapters.connections import open_api
from handlers.adapters.ebs import Ec2Ebs
from handlers.adapters.eks import EksApi
from handlers.adapters.fill import KafkaFills
from handlers.adapters.load import CloudWatchLoads
from handlers.adapters.prometheus import Prometheus, route
from handlers.adapters.volume_series import PrometheusVolumes
from handlers.kafka_access import kafka_access
from handlers.settings import Settings
from handlers.store.kept import complete
from handlers.store.ledger import DynamoLedger
from handlers.store.records import DynamoRecords
from handlers.store.runs import LedgerRuns
from handlers.volume.departures import Departing
from handlers.volume.observe import Lookout
from handlers.volume.settings import VolumeSettings
from handlers.volume.sources import Sources
from handlers.volume.steward import Steward


@functools.cache
def _steward() -> Steward:
    told = complete()
    settings, of_volumes = Settings.from_env(told), VolumeSettings.from_env(told)
    api = open_api(settings)
    records = DynamoRecords(settings.ledger_table, settings.region)
    return Steward(
        lookout=Lookout(
            claims=EksClaims(api, settings.namespace, settings.cluster),
            sources=Sources(
                ebs=Ec2Ebs(settings.region),
                fills=KafkaFills(settings.kafka_bootstrap, kafka_access(api, "volumes")),
                loads=CloudWatchLoads(settings.region),
                series=_series(settings, of_volumes, api),
            ),
            departing=Departing(
                ledger=DynamoLedger(settings.ledger_table, settings.cluster, settings.region),
                runs=LedgerRuns(records, settings.cluster),
                records=records,
            ),
            records=records,
            settings=of_volumes,
        ),
        book=pricing.book(settings.region),
    )


def _series(
    settings: Settings, of_volumes: VolumeSettings, api: EksApi
) -> PrometheusVolumes | None:
    asked = of_volumes.prometheus
    if asked is None:
        return None
    prometheus = Prometheus(route(asked.address, api))
    return PrometheusVolumes(prometheus, settings.namespace, settings.cluster, asked.labels)


@metrics.emitted
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Take a turn; `{"dry_run": true}` decides and changes nothing."""
    del context
    dry_run = isinstance(event, Mapping) and event.get("dry_run") is True
    return _steward().turn(time.time(), dry_run=dry_run)
