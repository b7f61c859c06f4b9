"""λ volumes, every five minutes: what Kafka's volumes need, and what of it may be done."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

from core.cost import pricing
from core.settings.prometheus import parse_prometheus_address
from core.settings.volumes import VolumesSettings
from handlers.adapters import metrics
from handlers.adapters.claims import EksClaims
from handlers.adapters.eks import EksApi, open_api
from handlers.adapters.kafka_identity import KafkaAccess
from handlers.adapters.prometheus import Prometheus, route
from handlers.adapters.volumes import CloudWatchLoads, Ec2Ebs, KafkaFills, PrometheusVolumes
from handlers.store.documents import Runs
from handlers.store.ledger import Ledger
from handlers.store.table import Records, read_settings
from handlers.volume.steward import Departing, Lookout, Sources, Steward


@functools.cache
def _steward() -> Steward:
    settings = read_settings(VolumesSettings)
    api = open_api(settings)
    records = Records(settings.ledger_table, settings.region)
    access = KafkaAccess(settings.kafka, api)
    return Steward(
        lookout=Lookout(
            claims=EksClaims(api, settings.namespace, settings.cluster),
            sources=Sources(
                ebs=Ec2Ebs(settings.region),
                fills=KafkaFills(settings.kafka_bootstrap, access),
                loads=CloudWatchLoads(settings.region),
                series=_series(settings, api),
            ),
            departing=Departing(
                ledger=Ledger(settings.ledger_table, settings.cluster, settings.region),
                runs=Runs(records, settings.cluster),
                records=records,
            ),
            records=records,
            settings=settings.volumes,
        ),
        book=pricing.book(settings.region),
    )


def _series(settings: VolumesSettings, api: EksApi) -> PrometheusVolumes | None:
    asked = settings.volumes.prometheus
    if asked is None:
        return None
    prometheus = Prometheus(route(parse_prometheus_address(asked.address), api))
    return PrometheusVolumes(prometheus, settings.namespace, settings.cluster, asked.labels)


@metrics.emits_metrics
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Take a turn; `{"dry_run": true}` decides and changes nothing."""
    del context
    dry_run = isinstance(event, Mapping) and event.get("dry_run") is True
    return _steward().turn(time.time(), dry_run=dry_run)
