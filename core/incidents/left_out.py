"""Finds Kafka's pods that have been out for long, while no incident has called a person for them.

A person may let an instance go as it is, a group may get no capacity for days, a pod may never
start: whoever decided it has gone home, and the broker is still out. A person is told, once a day
while it lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.incidents.observation import PodView
from core.incidents.record import Incident
from core.incidents.sickness import Concern
from core.incidents.unready import causes, joined

# A broker that was not stopped cleanly may read its log for that long before it is Ready.
LEFT_OUT_SECONDS = 1800.0


def left_out(
    pods: Sequence[PodView], incidents: Sequence[Incident], now: float
) -> Iterator[Concern]:
    """Yield a concern for each pod that is out since so long; `incidents` are the open ones.

    An incident answers for its pod while it moves on, or once it has called a person itself.
    """
    cared_for = {
        incident.pod_name
        for incident in incidents
        if incident.pages or now - incident.entered_at < LEFT_OUT_SECONDS
    }
    for pod in pods:
        if pod.ready or pod.name in cared_for or pod.out_since is None:
            continue
        if now - pod.out_since >= LEFT_OUT_SECONDS:
            yield _concern(pod, now - pod.out_since)


def _concern(pod: PodView, seconds: float) -> Concern:
    where = f"on {pod.node_name}" if pod.node_name else "on no node"
    trouble = joined(causes(pod, None))
    return Concern(
        key=f"left_out:{pod.name}",
        page="left_out",
        reason=(
            f"Kafka node {pod.node_id} is out for {seconds / 60:.0f} minutes, and no incident has "
            f"called anybody about it. Pod {pod.name} is {where}{trouble}. `kubectl describe pod "
            f"{pod.name}` says what it waits for."
        ),
    )
