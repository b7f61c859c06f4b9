"""Reads a pod's state in Kubernetes: scheduled, started, Ready, which readiness gates it waits for.

Kubernetes knows processes and probes, and nothing of Kafka: a pod that is Ready here may still be
a broker that leads nothing (core.health.kafka). A gate is the load balancer's own word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.health.verdict import Health, HealthVerdict, degraded, healthy, not_known, unhealthy

# How long a pod may take from its making to Ready; a broker's log recovery may take longer.
STARTUP_SECONDS = 300.0


# The kubelet's words for a container that is on its way; every other one needs somebody.
ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})


# And those of the scheduler, for a pod that another node may take.
HOMELESS = frozenset({"Unschedulable", "SchedulingGated", "SchedulerError"})


LONGEST_SAID = 240


Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """Why a pod does not start: Kubernetes' own word, and a clause that names the cause."""

    word: str = ""
    cause: str = ""


def is_hopeless(word: str) -> bool:
    """Say whether a container that waits with this word will not come up by itself."""
    return word not in ON_ITS_WAY | HOMELESS


def trouble_of(pod: Json) -> PodTrouble:
    """Return why a pod does not start, by everything it shows; one that runs has no word."""
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    placed = conditions.get("PodScheduled", {})
    if placed.get("status") == "False":
        word = str(placed.get("reason") or "Unschedulable")
        return PodTrouble(word, f"the scheduler places it on no node ({_said(placed) or word})")
    containers = [
        *(("init container", each) for each in status.get("initContainerStatuses") or ()),
        *(("container", each) for each in status.get("containerStatuses") or ()),
    ]
    found = [_container_trouble(name, kind, each) for kind, each in containers]
    # One that fails says more than those that wait for it.
    word = next((each.word for each in found if each.word), "")
    told = next((each for each in found if each.cause), None)
    if told is not None:
        return PodTrouble(told.word or word, told.cause)
    gates = (gate["conditionType"] for gate in pod.get("spec", {}).get("readinessGates") or ())
    shut = next((g for g in gates if conditions.get(g, {}).get("status") != "True"), None)
    if word or shut is None or conditions.get("ContainersReady", {}).get("status") != "True":
        return PodTrouble(word)
    said = _said(conditions.get(shut, {}))
    return PodTrouble("", f"its readiness gate {shut} is not met{f' ({said})' if said else ''}")


def _container_trouble(pod: str, kind: str, container: Json) -> PodTrouble:
    """Return what is wrong with one container; one that waits for others has a word alone."""
    state = container.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    word = str(waiting.get("reason") or "")
    failed = bool(ended) and ended.get("exitCode") != 0
    if not (failed or is_hopeless(word)):
        return PodTrouble(word)
    last = ended or (container.get("lastState") or {}).get("terminated") or {}
    how = f" with exit code {last['exitCode']} ({last.get('reason')})" if "exitCode" in last else ""
    said = _said(waiting) or _said(last)
    remedy = (
        f"`kubectl logs {pod} -c {container.get('name')}{'' if failed else ' --previous'}` says why"
        if how
        else f"`kubectl describe pod {pod}` says why"
    )
    cause = (
        f"{kind} {container.get('name')} {f'waits in {word}' if word else 'has ended'}{how}"
        f"{f' ({said})' if said else ''}; {remedy}"
    )
    return PodTrouble(word, cause)


def _said(item: Json) -> str:
    return " ".join(str(item.get("message") or "").split()).rstrip(".")[:LONGEST_SAID]


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
    stuck: bool = False  # it will not come up by itself
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
    if pod.stuck:
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
