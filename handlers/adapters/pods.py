"""The pods of a Kafka cluster and of the Connect workers beside it, as their health is judged."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol
from urllib.parse import quote

from core import naming
from core.health.pods import PodSeen
from handlers.adapters.eks import EksApi

Json = dict[str, Any]


class Pods(Protocol):
    """What λ health asks of Kubernetes."""

    def pods(self) -> tuple[PodSeen, ...]:
        """Return the pods of Kafka's nodes and of Connect's workers."""


class EksPods:
    """Reads them from an EKS cluster, in one list."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._cluster = api, namespace, kafka_cluster

    def pods(self) -> tuple[PodSeen, ...]:
        both = f"{self._cluster},{naming.connect(self._cluster)}"
        items = self._api.list(
            f"/api/v1/namespaces/{quote(self._namespace)}/pods",
            labelSelector=f"{naming.CLUSTER_LABEL} in ({both})",
        )
        return tuple(pod for item in items if (pod := seen(item)) is not None)


def seen(item: Json) -> PodSeen | None:
    """Read a pod of a Kafka node or a Connect worker; any other, or one that is over, is None."""
    metadata, status = item["metadata"], item.get("status", {})
    labels = metadata.get("labels", {})
    kafka = naming.POOL_LABEL in labels
    if not (kafka or labels.get(naming.KIND_LABEL) == naming.CONNECT_KIND):
        return None
    if status.get("phase") in {"Succeeded", "Failed"}:
        return None
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    container: Json = next(iter(status.get("containerStatuses") or ()), {})
    state: Json = container.get("state", {})
    gates = [gate["conditionType"] for gate in item["spec"].get("readinessGates") or ()]
    return PodSeen(
        name=metadata["name"],
        node_id=naming.node_id_of_pod(metadata["name"]) if kafka else None,
        created_at=_moment(metadata["creationTimestamp"]),
        node_name=item["spec"].get("nodeName"),
        unscheduled=conditions.get("PodScheduled", {}).get("message") or "",
        ready=_holds(conditions, "Ready"),
        containers_ready=_holds(conditions, "ContainersReady"),
        gates={gate: _holds(conditions, gate) for gate in gates},
        started_at=_moment(state["running"]["startedAt"]) if "running" in state else None,
        waiting=state.get("waiting", {}).get("reason", ""),
        restarts=container.get("restartCount", 0),
        stopping="deletionTimestamp" in metadata,
    )


def _holds(conditions: Json, kind: str) -> bool:
    return bool(conditions.get(kind, {}).get("status") == "True")


def _moment(said: str) -> float:
    return datetime.fromisoformat(said).timestamp()
