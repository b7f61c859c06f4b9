"""A pod's status as the kubelet writes it: phase, conditions, readiness gates. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local.kubernetes.client import Object

ENDED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObservation:
    """What the kubelet knows of one pod at one moment."""

    pod_ip: str
    host_ip: str
    started_at: str
    # Volumes are mounted and the address is the pod's own.
    sandbox: bool
    initialized: bool
    containers: Sequence[Object]
    init_containers: Sequence[Object] = ()
    # Set once the pod has ended: Succeeded or Failed.
    ended: str | None = None


def unmet_gates(pod: Object) -> list[str]:
    """Return the readiness gates of a pod that are not True."""
    conditions = pod.get("status", {}).get("conditions") or []
    true = {condition["type"] for condition in conditions if condition["status"] == "True"}
    gates = pod["spec"].get("readinessGates") or []
    return [gate["conditionType"] for gate in gates if gate["conditionType"] not in true]


def phase(pod: Object, seen: PodObservation) -> str:
    """Return the phase; a pod that ran never returns to Pending, whatever its containers do."""
    if seen.ended:
        return seen.ended
    if pod.get("status", {}).get("phase") == "Running":
        return "Running"
    ran = any("running" in c["state"] or c["lastState"] for c in seen.containers)
    return "Running" if ran and seen.initialized else "Pending"


def conditions(pod: Object, seen: PodObservation, now: str) -> list[Object]:
    """Return the kubelet's own conditions; those of readiness gates belong to others."""
    unready = [c["name"] for c in seen.containers if not c["ready"]]
    containers_ready = not seen.ended and seen.initialized and not unready
    unmet = unmet_gates(pod)
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(seen.ended or "")
    not_ready = (
        finished or "ContainersNotReady",
        f"containers with unready status: [{' '.join(unready)}]",
    )
    rows = [
        ("PodReadyToStartContainers", seen.sandbox and not seen.ended, ("", "")),
        ("Initialized", seen.initialized, ("ContainersNotInitialized", "")),
        ("ContainersReady", containers_ready, not_ready),
        (
            "Ready",
            containers_ready and not unmet,
            (
                "ReadinessGatesNotReady",
                "corresponding condition of pod readiness gates is not True: " + ", ".join(unmet),
            )
            if containers_ready
            else not_ready,
        ),
    ]
    known = {c["type"]: c for c in pod.get("status", {}).get("conditions") or []}
    result = []
    for kind, holds, (reason, message) in rows:
        status = "True" if holds else "False"
        old = known.get(kind, {})
        unchanged = old.get("status") == status and old.get("lastTransitionTime")
        result.append(
            {
                "type": kind,
                "status": status,
                # null removes what an earlier status said.
                "reason": None if holds else reason or None,
                "message": None if holds else message or None,
                "lastProbeTime": None,
                "lastTransitionTime": old["lastTransitionTime"] if unchanged else now,
                "observedGeneration": pod["metadata"].get("generation"),
            }
        )
    return result


def pod_status(pod: Object, seen: PodObservation, now: str) -> Object:
    """Return the body of a strategic merge on a pod's status."""
    status: Object = {
        "phase": phase(pod, seen),
        "observedGeneration": pod["metadata"].get("generation"),
        "hostIP": seen.host_ip,
        "hostIPs": [{"ip": seen.host_ip}],
        "startTime": seen.started_at,
        "conditions": conditions(pod, seen, now),
        "containerStatuses": list(seen.containers),
    }
    if seen.init_containers:
        status["initContainerStatuses"] = list(seen.init_containers)
    if seen.sandbox:
        # podIPs merges by address: a second one would be refused, so an address is never changed.
        status["podIP"] = seen.pod_ip
        status["podIPs"] = [{"ip": seen.pod_ip}]
    return status


def creating(container: Object, message: str) -> Object:
    """Return the status of a container whose pod still waits for something."""
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": "ContainerCreating", "message": message}},
        "lastState": {},
    }
