"""Counts what happened, as CloudWatch metrics in the function's own log (EMF).

One line of log per invocation carries every count; nothing is called, so nothing can fail or wait.
What calls a person has a line of its own, at once: a function that records a page and dies before
its end would have told nobody, and nobody would tell it again.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from core.ground.constants import CALLING, CLUSTER_DIMENSION, NAMESPACE
from core.settings.codec import setting_text

# Somebody who only reads the ledger, such as the command line, counts nothing.
_NOBODY = "none"


@functools.cache
def _metrics() -> Metrics:
    metrics = Metrics(namespace=NAMESPACE)
    # One dimension and no `service`: an alarm names exactly what it reads.
    metrics.set_default_dimensions(
        **{CLUSTER_DIMENSION: setting_text(os.environ, "prefix") or _NOBODY}
    )
    return metrics


def count(name: str, number: int = 1) -> None:
    """Add to a metric of this invocation; what calls a person is written down now."""
    metrics = _metrics()
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
    if name in CALLING:
        metrics.flush_metrics()


def emits_metrics(handler: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let an entry point write what it counted when it ends, however it ends."""

    @functools.wraps(handler)
    def counting(event: Any, context: Any) -> Any:
        try:
            return handler(event, context)
        finally:
            metrics = _metrics()
            if metrics.metric_set:
                metrics.flush_metrics()

    return counting
