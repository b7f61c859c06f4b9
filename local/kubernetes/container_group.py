"""The containers of one pod: the init containers one by one, then all others, and their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from local.kubernetes.client import Object
from local.kubernetes.containers import Container, PodSandbox


class ContainerGroup:
    """Every container of a pod; `step` and `stop` are called by the pod's own thread."""

    def __init__(self, pod: Object, around: PodSandbox) -> None:
        spec = pod["spec"]
        policy = str(spec.get("restartPolicy") or "Always")
        init_policy = "Never" if policy == "Never" else "OnFailure"
        known = {
            entry["name"]: entry
            for group in ("initContainerStatuses", "containerStatuses")
            for entry in pod["status"].get(group) or []
        }
        metadata = pod["metadata"]

        def create(container: Object, restart_policy: str) -> Container:
            name = container["name"]
            # Processes of an earlier kubelet were killed when its successor started, so what ran
            # then is being started again now.
            before = known.get(name, {})
            again = "running" in (before.get("state") or {})
            log = f"{metadata['namespace']}_{metadata['name']}_{name}.log"
            made = Container(
                container,
                around,
                log=around.place.path("logs", "pods", log),
                restart_policy=restart_policy,
                restarts=int(before.get("restartCount") or 0) + again,
            )
            if again:
                made.last_failure = "the kubelet was restarted"
            return made

        self.main = [create(c, policy) for c in spec["containers"]]
        self.init = [
            create(c, c.get("restartPolicy") or init_policy)
            for c in spec.get("initContainers") or []
        ]

    @property
    def initialized(self) -> bool:
        return all(_lets_go_on(container) for container in self.init)

    @property
    def finished(self) -> bool:
        """Whether every container of the pod proper has ended for good."""
        return all(container.finished for container in self.main)

    @property
    def outcome(self) -> str:
        """The phase of a pod whose containers have all ended."""
        return "Succeeded" if all(c.succeeded for c in self.main) else "Failed"

    def step(self, now: float) -> float:
        """Advance every container that may run now; return when to be called again."""
        wake_at = float("inf")
        for container in self.init:
            wake_at = min(wake_at, container.step(now))
            if not _lets_go_on(container):
                return wake_at
        return min([wake_at, *(container.step(now) for container in self.main)])

    def stop(self, grace_seconds: Callable[[], float], woken: threading.Event) -> None:
        """SIGTERM, then SIGKILL once the grace is over; a grace cut short meanwhile counts.

        `woken` is set when a process ends or the grace may have changed.
        """
        everything = [*self.main, *self.init]
        for container in everything:
            container.stop_for_good()
            if grace_seconds() > 0:
                container.terminate()
        began = time.monotonic()
        while not all(container.reap(time.monotonic()) for container in everything):
            left = began + grace_seconds() - time.monotonic()
            if left <= 0:
                for container in everything:
                    container.kill()
            else:
                woken.wait(left)
                woken.clear()


def _lets_go_on(container: Container) -> bool:
    """Say whether an init container is done, or runs beside the others and is ready."""
    side_car = container.spec.get("restartPolicy") == "Always"
    return container.ready if side_car else container.finished
