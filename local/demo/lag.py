"""Measures how long a restarted broker waits for the load balancer, step by step.

Pure: the journal's records in, seconds out. A pod with readiness gates is Ready only once every
target group says healthy, so the chain is: containers ready, registered, healthy, Ready.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from core.ground import naming
from local.demo.story import first

Record = Mapping[str, Any]


def chain(records: Sequence[Record], broker_id: int, groups: Collection[str]) -> dict[str, Any]:
    """Return the last start of a broker's pod: seconds from its containers being ready.

    `groups` are the target groups that gate it; None is what was not seen.
    """
    starts = [
        record
        for record in records
        if record["event"] == "pod_containers_ready"
        and naming.node_id_of_pod(str(record["pod"])) == broker_id
    ]
    if not starts:
        return {"registered_after_s": None, "healthy_after_s": None, "ready_after_s": None}
    began = starts[-1]
    later = [record for record in records if record["at"] >= began["at"]]

    def after(at: float) -> float:
        return round(at - float(began["at"]), 2)

    def everywhere(event: str) -> float | None:
        seen = [first(later, event, group=name, target=began["address"]) for name in groups]
        times = [record["at"] for record in seen if record is not None]
        return after(max(times)) if times and len(times) == len(groups) else None

    ready = first(later, "pod_ready", pod=began["pod"])
    return {
        "registered_after_s": everywhere("target_registered"),
        "healthy_after_s": everywhere("target_healthy"),
        "ready_after_s": after(ready["at"]) if ready else None,
    }


def outran_balancer(measured: Mapping[str, Any]) -> bool:
    """Say whether a pod was Ready before the load balancer sent it anything, or never was."""
    healthy, ready = measured["healthy_after_s"], measured["ready_after_s"]
    return healthy is None or ready is None or ready < healthy
