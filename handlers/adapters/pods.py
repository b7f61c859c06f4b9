"""The pods of a Kafka cluster and of the Connect workers beside it, as their health is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote

from core import naming
from core.fields import epoch
from core.health.pods import PodSeen, is_hopeless
from handlers.adapters.eks import EksApi
from handlers.adapters.shapes import known_shape

Json = dict[str, Any]
# How Strimzi calls the container in which Kafka runs, and the one of a Connect worker.
MAIN = ("kafka", "-connect")


class Pods(Protocol):
    """What λ health asks of Kubernetes."""

    def pods(self) -> tuple[PodSeen, ...]:
        """Return the pods of Kafka's nodes and of Connect's workers."""


class EksPods:
    """Reads them from an EKS cluster, in one list."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._cluster = api, namespace, kafka_cluster

    @known_shape("The Kubernetes API")
    def pods(self) -> tuple[PodSeen, ...]:
        both = f"{self._cluster},{naming.connect(self._cluster)}"
        items = self._api.list(
            f"/api/v1/namespaces/{quote(self._namespace)}/pods",
            labelSelector=f"{naming.CLUSTER_LABEL} in ({both})",
        )
        return tuple(pod for item in items if (pod := pod_seen(item)) is not None)


def pod_seen(item: Json) -> PodSeen | None:
    """Read a pod of a Kafka node or a Connect worker; any other, or one that is over, is None."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    status = item.get("status") or {}
    labels = metadata.get("labels") or {}
    kafka = naming.POOL_LABEL in labels
    if not (kafka or labels.get(naming.KIND_LABEL) == naming.CONNECT_KIND):
        return None
    if status.get("phase") in {"Succeeded", "Failed"}:
        return None
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    containers = status.get("containerStatuses") or ()
    container = _main(containers)
    state: Json = container.get("state") or {}
    created = epoch(metadata.get("creationTimestamp"))
    running = state.get("running")
    everybody = (*(status.get("initContainerStatuses") or ()), *containers)
    stuck = next((each for each in everybody if _is_stuck(each)), container)
    gates = [gate["conditionType"] for gate in spec.get("readinessGates") or ()]
    return PodSeen(
        name=metadata["name"],
        node_id=naming.node_id_of_pod(metadata["name"]) if kafka else None,
        created_at=created,
        node_name=spec.get("nodeName"),
        unscheduled=conditions.get("PodScheduled", {}).get("message") or "",
        ready=_holds(conditions, "Ready"),
        containers_ready=_holds(conditions, "ContainersReady"),
        gates={gate: _holds(conditions, gate) for gate in gates},
        started_at=None if running is None else _began(running, created),
        waiting=_reason(stuck),
        stuck=_is_stuck(stuck),
        beside="" if stuck is container else str(stuck.get("name") or ""),
        restarts=stuck.get("restartCount", 0),
        stopping="deletionTimestamp" in metadata,
        unready_since=_unready_since(conditions),
    )


def _main(containers: Sequence[Json]) -> Json:
    """Return Kafka's or Connect's own container: a mesh's proxy may stand before it."""
    by_name = (each for each in containers if str(each.get("name")).endswith(MAIN))
    return next(by_name, next(iter(containers), {}))


def _is_stuck(container: Json) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    return is_hopeless(str(waiting.get("reason") or ""))


def _reason(container: Json) -> str:
    """Return why a container does not run, in the kubelet's word."""
    state = container.get("state") or {}
    return str((state.get("waiting") or state.get("terminated") or {}).get("reason") or "")


def _holds(conditions: Json, kind: str) -> bool:
    return bool(conditions.get(kind, {}).get("status") == "True")


def _unready_since(conditions: Json) -> float | None:
    ready = conditions.get("Ready", {})
    return None if ready.get("status") == "True" else epoch(ready.get("lastTransitionTime"))


def _began(running: Json, created: float | None) -> float:
    """Return when a process began; of one of which nothing says so, that it is not young."""
    began = epoch(running.get("startedAt"))
    return next((moment for moment in (began, created) if moment is not None), 0.0)
