"""What Strimzi's resources show of an operator that has finished, but for what a test changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.availability.operator import KafkaConditions, OperatorView, PodSetView, Revisions
from core.incidents.observation import PodView

FINISHED = KafkaConditions(ready=True, generation_observed=True)


def operator_view(
    pods: Iterable[PodView],
    wanted: Mapping[str, str] | None = None,
    kafka: KafkaConditions = FINISHED,
    **changes: Any,
) -> OperatorView:
    """Return one pod set of all pods; `wanted` are descriptions that some of them are to have."""
    wanted = wanted or {}
    to_be = {
        pod.name: Revisions(
            wanted.get(pod.name, pod.revisions.description), pod.revisions.resources
        )
        for pod in pods
    }
    return OperatorView(kafka=kafka, pod_sets=(PodSetView(name="all", pods=to_be, **changes),))
