"""Containers as processes: start, stop, restart with back-off, probes, status.

Nothing here blocks: `step` is called with the time whenever something may have changed, and says
when it wants to be called next.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.ground.errors import StillwaterError
from local.kubernetes.client import ApiError, Object
from local.kubernetes.environment import MissingReference
from local.kubernetes.images import ContainerLaunch
from local.kubernetes.node import timestamp
from local.kubernetes.probes import Answer, ProbeRun, ProbeSet, ProbeTarget, ask
from local.place import Place
from local.processes import REPOSITORY, forget, give_way, kill_group, record

FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS = 10.0, 300.0
# A container that ran this long starts again with the first back-off.
BACK_OFF_RESET_SECONDS = 600.0
CONFIG_RETRY_SECONDS = 1.0


def back_off_seconds(failures: int) -> float:
    """Return how long to wait before a restart: none after the first end, then 10 s, doubling."""
    if failures <= 1:
        return 0.0
    return float(min(FIRST_BACK_OFF_SECONDS * 2 ** (failures - 2), LAST_BACK_OFF_SECONDS))


def exit_code(returncode: int) -> int:
    """Return a process's end as a container runtime tells it: 128 + signal."""
    return 128 - returncode if returncode < 0 else returncode


def child_pids(place: Place) -> Path:
    """Return where the kubelet records its own children, apart from the rest of the twin's."""
    return place.path("pods", "pids")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """How the last run of a container ended."""

    code: int
    reason: str
    started_at: str
    finished_at: str
    container_id: str

    def as_json(self) -> Object:
        return {
            "terminated": {
                "exitCode": self.code,
                "reason": self.reason,
                "startedAt": self.started_at,
                "finishedAt": self.finished_at,
                "containerID": self.container_id,
            }
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSandbox:
    """What the containers of one pod share."""

    place: Place
    # The loopback address that stands for the pod's.
    host: str
    grace_seconds: float
    # Says how to run a container; asked again before every start.
    prepare: Callable[[Object], ContainerLaunch]
    # Called from any thread when `step` should be called.
    wake: Callable[[], None]
    prober: Executor


class Container:
    """One container of a pod over all its runs."""

    def __init__(
        self,
        spec: Object,
        around: PodSandbox,
        *,
        log: Path,
        restarts: int = 0,
    ) -> None:
        self.spec, self.name, self.restarts = spec, str(spec["name"]), restarts
        self.probes: ProbeSet | None = None
        self.last_failure = ""
        self._around, self._place, self._log = around, around.place, log
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = ("ContainerCreating", "")
        self._ended: ContainerEnd | None = None
        self._previous: ContainerEnd | None = None
        self._started_at, self._started_clock = "", 0.0
        self._container_id = ""
        self._failures = 0
        self._next_start = 0.0
        self._kill_at: float | None = None
        self._gives_way = self._stops = False

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def ready(self) -> bool:
        return self.running and self.probes is not None and self.probes.ready

    @property
    def succeeded(self) -> bool:
        return self._ended is not None and self._ended.code == 0

    @property
    def finished(self) -> bool:
        """Whether the container has ended and will not be started again."""
        return self._stops and not self.running and self._ended is not None

    def step(self, now: float) -> float:
        """Start, restart and probe as due; return when to be called again at the latest."""
        self._reap(now)
        if self.running:
            return self._watch(now)
        if self.finished:
            return float("inf")
        if now < self._next_start:
            return self._next_start
        self._start(now)
        return now

    def terminate(self) -> None:
        """Send SIGTERM to the main process, as a container runtime does."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill everything the container runs and wait for its end."""
        if self._process is not None:
            kill_group(self._process.pid)
            self._process.wait()

    def reap(self, now: float) -> bool:
        """Take in the process's end; say whether the container has stopped."""
        self._reap(now)
        return not self.running

    def status(self) -> Object:
        """Return the container's containerStatuses entry."""
        if self.running:
            state: Object = {"running": {"startedAt": self._started_at}}
        elif self._ended is not None and self.finished:
            state = self._ended.as_json()
        else:
            reason, message = self._waiting
            state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        last = self._previous if self.running or "terminated" in state else self._ended
        started = self.running and self.probes is not None and self.probes.started
        return {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": self.spec["image"],
            "containerID": self._container_id,
            "ready": self.ready or (self.finished and self.succeeded),
            "started": started,
            "restartCount": self.restarts,
            "state": state,
            "lastState": last.as_json() if last else {},
        }

    def stop_for_good(self) -> None:
        """Let no restart follow: the pod ends."""
        self._stops = True

    def _start(self, now: float) -> None:
        try:
            launch = self._around.prepare(self.spec)
        except (MissingReference, ApiError) as error:
            self._hold("CreateContainerConfigError", str(error), now + CONFIG_RETRY_SECONDS)
            return
        except StillwaterError as error:
            self._hold("CreateContainerError", str(error), now + FIRST_BACK_OFF_SECONDS)
            return
        self._log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._log.open("ab") as sink:
                process = subprocess.Popen(
                    launch.argv,
                    env=dict(launch.environment),
                    # The twin's own containers are modules of this repository.
                    cwd=REPOSITORY,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            self._failures += 1
            delay = max(FIRST_BACK_OFF_SECONDS, back_off_seconds(self._failures))
            self._hold("RunContainerError", f"{launch.argv[:1]}: {error}", now + delay)
            return
        for directory in (self._place.path("pids"), child_pids(self._place)):
            record(directory, process.pid)
        if self._ended is not None:
            self.restarts += 1
            self._previous = self._ended
        self._process, self._ended = process, None
        self._gives_way = give_way(process.pid)
        self._container_id = f"processes://{uuid.uuid4().hex}"
        self._started_at, self._started_clock = timestamp(), now
        spec = self.spec if launch.probed else {}
        self.probes = ProbeSet(spec, started_at=now, ask=lambda track: self._ask(track, launch))
        self._kill_at = None
        threading.Thread(target=self._await_end, args=(process,), daemon=True).start()

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        # Waits for the end without taking the exit code from `_reap`.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self._around.wake()

    def _hold(self, reason: str, message: str, until: float) -> None:
        self._waiting = (reason, message)
        self.last_failure = message
        self._next_start = until

    def _reap(self, now: float) -> None:
        process = self._process
        if process is None or process.poll() is None:
            return
        # The namespaces of a container die with its first process; a session does not.
        kill_group(process.pid)
        for directory in (self._place.path("pids"), child_pids(self._place)):
            forget(directory, process.pid)
        code = exit_code(process.returncode)
        self._ended = ContainerEnd(
            code=code,
            reason="Completed" if code == 0 else "Error",
            started_at=self._started_at,
            finished_at=timestamp(),
            container_id=self._container_id,
        )
        if self._kill_at is None and code:
            self.last_failure = f"it ended with exit code {code}"
        self._process = None
        if now - self._started_clock > BACK_OFF_RESET_SECONDS:
            self._failures = 0
        self._failures += 1
        delay = back_off_seconds(self._failures)
        self._next_start = now + delay
        if delay:
            self._waiting = ("CrashLoopBackOff", f"back-off {delay:.0f} s restarting {self.name}")

    def _watch(self, now: float) -> float:
        """Ask the probes that are due; stop a container that fails its liveness."""
        if self._kill_at is not None:
            if now >= self._kill_at:
                self.kill()
                self._reap(now)
                return now
            return self._kill_at
        if self.probes is None:
            return float("inf")
        next_probe = self.probes.step(now)
        if self._gives_way and self.ready and self._process is not None:
            self._gives_way = give_way(self._process.pid, 0)
        failure = self.probes.failure()
        if failure is not None:
            self.last_failure = f"{failure.role} failed: {failure.message}"
            grace = self.spec[failure.role].get("terminationGracePeriodSeconds")
            self._kill_at = now + float(self._around.grace_seconds if grace is None else grace)
            self.terminate()
            return self._kill_at
        return next_probe

    def _ask(self, track: ProbeRun, launch: ContainerLaunch) -> Answer:
        target = ProbeTarget(
            self._around.host,
            self.spec,
            launch.environment,
            launch.moved_ports,
            launch.answered_at,
        )
        probe: dict[str, Any] = self.spec[track.role]
        future = self._around.prober.submit(ask, probe, target, track.schedule.timeout_seconds)
        future.add_done_callback(lambda _: self._around.wake())
        return future


class ContainerGroup:
    """Every container of a pod; `step` and `stop` are called by the pod's own thread."""

    def __init__(self, pod: Object, around: PodSandbox) -> None:
        known = {each["name"]: each for each in pod["status"].get("containerStatuses") or []}
        metadata = pod["metadata"]

        def create(container: Object) -> Container:
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
                restarts=int(before.get("restartCount") or 0) + again,
            )
            if again:
                made.last_failure = "the kubelet was restarted"
            return made

        self.containers = [create(each) for each in pod["spec"]["containers"]]

    @property
    def outcome(self) -> str:
        """The phase of a pod whose containers have all ended."""
        return "Succeeded" if all(c.succeeded for c in self.containers) else "Failed"

    def step(self, now: float) -> float:
        """Advance every container; return when to be called again."""
        return min(container.step(now) for container in self.containers)

    def stop(self, grace_seconds: Callable[[], float], woken: threading.Event) -> None:
        """SIGTERM, then SIGKILL once the grace is over; a grace cut short meanwhile counts.

        `woken` is set when a process ends or the grace may have changed.
        """
        for container in self.containers:
            container.stop_for_good()
            if grace_seconds() > 0:
                container.terminate()
        began = time.monotonic()
        while not all(container.reap(time.monotonic()) for container in self.containers):
            left = began + grace_seconds() - time.monotonic()
            if left <= 0:
                for container in self.containers:
                    container.kill()
            else:
                woken.wait(left)
                woken.clear()
