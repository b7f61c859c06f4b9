"""Judges autoscalers that change how many brokers a Kafka has.

Sources: Kubernetes' HorizontalPodAutoscaler; Strimzi's check before it removes a broker.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed
from core.survey.finding import Finding, Weight
from core.survey.tool_facts import SizeScaler
from core.unknown import of


def scalers(seen: Surveyed) -> Iterator[Finding]:
    """Find autoscalers that take a broker away when a metric is low."""
    pools = {(each.namespace, each.name) for each in of(seen.pools)}
    for each in of(seen.size_scalers):
        mine = (each.namespace, each.target)
        if each.least >= each.most:
            continue
        if each.kind == "KafkaNodePool" and mine in pools:
            yield _finding(
                each,
                Weight.ADVICE,
                "Strimzi removes a broker only once nothing is on it, and until then reverts it "
                "at each turn",
            )
        elif f"{each.kind} {each.namespace}/{each.target}" in {
            other.title for other in of(seen.other_kafkas)
        }:
            yield _finding(
                each, Weight.BROKER, "the last broker is ended with the replicas that are on it"
            )


def _finding(scaler: SizeScaler, weight: Weight, result: str) -> Finding:
    return Finding(
        "size-scaled",
        weight,
        scaler.title,
        f"it changes the number of brokers of {scaler.kind} {scaler.target} between {scaler.least} "
        f"and {scaler.most} by a metric: {result}",
        "take it away, and change the number of brokers by hand, after their partitions",
    )
