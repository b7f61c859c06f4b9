"""λ samples, every hour: files what Prometheus remembers, before it forgets, for the report."""

from __future__ import annotations

import functools
import time
from typing import Any

from core.settings.prometheus import parse_prometheus_address
from core.settings.volumes import SamplesSettings
from core.volumes.series import Whose
from handlers.adapters import metrics
from handlers.adapters.eks import open_api
from handlers.adapters.prometheus import Prometheus, route
from handlers.store.table import read_settings
from handlers.volume.filing import Filing, S3SampleFiles, Turn

# A question at a time, of at most 200,000 samples.
QUERY_SECONDS = 30.0
# What a turn leaves of its own time, so that it ends by itself and says what is left.
MARGIN_SECONDS = 60.0


@functools.cache
def _filing() -> Filing:
    settings = read_settings(SamplesSettings)
    asked = settings.prometheus
    way = route(parse_prometheus_address(asked.address), open_api(settings))
    return Filing(
        prometheus=Prometheus(way, seconds=QUERY_SECONDS),
        files=S3SampleFiles(settings.samples_bucket, settings.region),
        whose=Whose(settings.cluster, settings.namespace, asked.labels),
    )


@metrics.emits_metrics
def handler(event: Any, context: Any) -> Turn:
    """File every hour that is whole and not filed; what triggers it says nothing worth reading."""
    del event
    seconds = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    return _filing().turn(time.time(), until=time.monotonic() + seconds)
