"""Defines what every controller's pod gets from its node, and what it is denied there.

A limit on processor time is given to none: a controller that is throttled answers a lost node late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.cluster.limits import Request

# Container: none of Linux's capabilities; these controllers open no port below 1024.
NO_CAPABILITIES: dict[str, Any] = {"capabilities": {"drop": ["ALL"]}}
# Pod: the container runtime's filter of system calls, which Kubernetes leaves off by default.
FILTERED_CALLS: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
# The kubelet keeps 50 MiB of a container's log at most (containerLogMaxSize and -MaxFiles), and
# these controllers write nothing else.
DISK_REQUEST_MIB, DISK_LIMIT_MIB = 64, 256


def resources(request: Request, *, memory_limit_mib: int | None = None) -> dict[str, Any]:
    """Return requests, and the memory and disk at which a leak ends the pod and not its node."""
    return {
        "requests": {
            "cpu": f"{request.cpu_millis}m",
            "memory": f"{request.memory_mib}Mi",
            "ephemeral-storage": f"{DISK_REQUEST_MIB}Mi",
        },
        "limits": {
            "memory": f"{memory_limit_mib or request.memory_mib}Mi",
            "ephemeral-storage": f"{DISK_LIMIT_MIB}Mi",
        },
    }


def off_kafkas_machines(pool_labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the affinity to nodes on which no Kafka is meant to run.

    That is a preference: where all nodes are Kafka's, a pod on them answers, and one that waits
    for another does not.
    """
    expressions = [
        {"key": key, "operator": "NotIn", "values": list(values)}
        if values
        else {"key": key, "operator": "DoesNotExist"}
        for key, values in sorted(pool_labels.items())
    ]
    preferred = [{"weight": 100, "preference": {"matchExpressions": expressions}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
