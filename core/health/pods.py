"""Reads a pod's state in Kubernetes: scheduled, started, Ready, which readiness gates it waits for.

Kubernetes knows processes and probes, and nothing of Kafka: a pod that is Ready here may still be
a broker that leads nothing (core.health.kafka). A gate is the load balancer's own word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.health.verdict import Health, HealthVerdict, degraded, healthy, not_known, unhealthy

# How long a pod may take from its making to Ready; a broker's log recovery may take longer.
STARTUP_SECONDS = 300.0
# The kubelet's words for a container that will not come up by itself.
HOPELESS = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "PostStartHookError",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """One pod of Kafka's or Connect's, as the API server lists it."""

    name: str
    node_id: int | None  # Kafka's; None for a Connect worker
    created_at: float | None  # epoch seconds; None: the API server does not say
    node_name: str | None = None
    unscheduled: str = ""  # the scheduler's words
    ready: bool = False
    containers_ready: bool = False
    gates: Mapping[str, bool] = field(default_factory=dict)
    started_at: float | None = None  # when its container's process did; None: it does not run
    waiting: str = ""  # the kubelet's word for why it does not, or why it ended
    # The container that `waiting` and `restarts` are about, where that is not its own.
    beside: str = ""
    restarts: int = 0
    stopping: bool = False
    unready_since: float | None = None  # epoch seconds; None: it is Ready, or nobody said

    @property
    def running(self) -> bool:
        return self.started_at is not None

    def running_seconds(self, now: float) -> float | None:
        return None if self.started_at is None else max(now - self.started_at, 0.0)


def pod_verdict(
    pod: PodSeen, now: float, startup_seconds: float = STARTUP_SECONDS
) -> HealthVerdict:
    """Return a pod's verdict; one that is not Ready may be starting for `startup_seconds`."""
    if pod.stopping:
        return degraded(f"Pod {pod.name} is being stopped.")
    if pod.node_name is None:
        why = f": {pod.unscheduled}" if pod.unscheduled else ""
        return _not_yet(pod, f"is not scheduled{why}", _since(pod, now), startup_seconds)
    if pod.waiting in HOPELESS:
        times = f" after {pod.restarts} restarts" if pod.restarts else ""
        what = f"Container {pod.beside} of pod {pod.name}" if pod.beside else f"Pod {pod.name}"
        return unhealthy(f"{what} does not start{times}: {pod.waiting}.")
    if pod.ready:
        return healthy(f"Pod {pod.name} is Ready on {pod.node_name}.")
    since = _since(pod, now)
    # One that has run for days may have been Ready until a moment ago.
    lasting = None if pod.unready_since is None else now - pod.unready_since
    closed = sorted(gate for gate, held in pod.gates.items() if not held)
    if pod.containers_ready and closed:
        # Its process is well; clients cannot reach it through the load balancer.
        return _not_yet(
            pod,
            f"waits for its readiness gate {closed[0]}",
            since,
            startup_seconds,
            Health.DEGRADED,
            lasting=lasting,
        )
    waiting = f" ({pod.waiting})" if pod.waiting else ""
    return _not_yet(pod, f"is not Ready{waiting}", since, startup_seconds, lasting=lasting)


def no_pod(what: str) -> HealthVerdict:
    """Return the verdict on what should have a pod and has none."""
    return unhealthy(f"{what} has no pod; Strimzi's cluster operator makes it one.")


def _since(pod: PodSeen, now: float) -> float | None:
    """Return for how long a pod runs, or is there; None: nobody says."""
    began = pod.created_at if pod.started_at is None else pod.started_at
    return None if began is None else now - began


def _not_yet(
    pod: PodSeen,
    said: str,
    seconds: float | None,
    limit: float,
    then: Health = Health.UNHEALTHY,
    lasting: float | None = None,
) -> HealthVerdict:
    """Judge what is not there yet by how long its pod may take; `lasting` is since it is not."""
    if seconds is None:
        # It may be starting, and may have waited for days.
        told = f"Pod {pod.name} {said.rstrip('.')}, and nothing says since when."
        return not_known(told, (f"creation time of pod {pod.name}",))
    health = Health.STARTING if seconds < limit else then
    # Clocks differ: what was made in the future was made just now.
    passed = max(seconds if lasting is None else lasting, 0.0)
    return HealthVerdict(health, f"Pod {pod.name} {said.rstrip('.')}, for {passed:.0f} s.")
