"""One pod on one node, from its binding to its final delete: volumes, containers, status, end.

Each pod has a thread, which sleeps until the API, a process or a clock gives it something to do.
The order of its end is what keeps a volume safe: processes stop, the node drops the volume from
volumesInUse, and only then does the pod's object go.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from core.errors import StillwaterError
from local.journal import Journal
from local.kubernetes import images, status
from local.kubernetes.addresses import Addresses
from local.kubernetes.client import Api, ApiError, Object
from local.kubernetes.containers import Container, Surroundings
from local.kubernetes.environment import MissingReference, resolve
from local.kubernetes.mounts import Volumes
from local.kubernetes.node import NodeAgent, timestamp, volume_name
from local.place import Place

DEFAULT_GRACE_SECONDS = 30.0
# A pod whose object is already gone (a forced delete) still gets this long to stop.
FORCED_GRACE_SECONDS = 2.0
# Within the five seconds a program of the twin has to end.
SHUTDOWN_GRACE_SECONDS = 3.0
RETRY_SECONDS = 0.5
MOUNT_RETRY_SECONDS = 1.0
TERMINAL_PHASES = ("Succeeded", "Failed")
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every pod of the kubelet uses."""

    place: Place
    api: Api
    journal: Journal
    addresses: Addresses
    prober: Executor
    # Addresses that are in use by instances and by pods of other nodes.
    used_addresses: Callable[[], Collection[str]]


class PodWorker:
    """Runs one pod; the public methods may be called from any thread and never block."""

    def __init__(self, pod: Object, node: NodeAgent, shared: Shared) -> None:
        metadata = pod["metadata"]
        self.namespace, self.name, self.uid = (
            metadata["namespace"],
            metadata["name"],
            metadata["uid"],
        )
        self.node = node
        self._pod, self._shared = pod, shared
        self._path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self._wake = threading.Event()
        self._removed = False
        self._abandoned_at: float | None = None
        self._abandon_grace = 0.0
        self._volumes = Volumes(shared.api, shared.place, pod)
        self._claimed: list[str] = []
        self._containers: list[Container] = []
        self._init: list[Container] = []
        self._sandbox = False
        self._waiting = ""
        self._ip = ""
        self._started_at = pod["status"].get("startTime") or timestamp()
        self._published: Object = {}
        self._told: set[str] = set()
        self._restarts_told = 0
        self._thread = threading.Thread(target=self._run, name=f"pod {self.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_seconds: float) -> None:
        self._thread.join(timeout_seconds)

    def wake(self) -> None:
        self._wake.set()

    def update(self, pod: Object) -> None:
        self._pod = pod
        self.wake()

    def removed(self) -> None:
        """The pod's object is gone from the API."""
        self._removed = True
        self.wake()

    def abandon(self, grace_seconds: float) -> None:
        """Stop without a word to the API: the machine is gone, or this program ends."""
        if self._abandoned_at is None or grace_seconds < self._abandon_grace:
            self._abandoned_at, self._abandon_grace = time.monotonic(), grace_seconds
        self.wake()

    @property
    def _deleting(self) -> bool:
        return self._removed or bool(self._pod["metadata"].get("deletionTimestamp"))

    @property
    def _ending(self) -> bool:
        return self._deleting or self._abandoned_at is not None

    @property
    def _phase(self) -> str:
        return str(self._pod["status"].get("phase", ""))

    def _run(self) -> None:
        try:
            if self._phase not in TERMINAL_PHASES:
                self._live()
            self._end()
        except Exception:
            LOG.exception("Pod %s/%s is no longer looked after.", self.namespace, self.name)
        finally:
            self._shared.addresses.give_back(self.uid)

    def _live(self) -> None:
        """Mount, start and look after the containers until the pod ends or is ended."""
        self._assign_address()
        if not self._mount():
            return
        self._create_containers()
        while not self._ending:
            now = time.monotonic()
            wake_at = self._step(now)
            settled = self._sync()
            if self._containers and all(c.finished for c in self._containers):
                return
            self._refresh_volumes()
            # Volumes are refreshed once a minute, so nothing sleeps longer.
            pause = min(wake_at - time.monotonic(), 30.0 if settled else RETRY_SECONDS)
            if pause > 0:
                self._wake.wait(pause)
            self._wake.clear()

    def _assign_address(self) -> None:
        known = self._pod["status"].get("podIP")
        instance = self.node.instance
        if self._pod["spec"].get("hostNetwork"):
            self._ip = instance.private_ip
        elif known:
            self._ip = self._shared.addresses.keep(self.uid, known)
        else:
            self._ip = self._shared.addresses.take(
                self.uid, instance.subnet_cidr, self._shared.used_addresses()
            )

    def _mount(self) -> bool:
        """Wait for the pod's volumes and write its files; return False when the pod ends first."""
        while not self._ending:
            try:
                if self._attached():
                    self._volumes.write(pod_ip=self._ip, host_ip=self.node.instance.private_ip)
                    self._sandbox = True
                    return True
                self._waiting = "the volumes are not attached yet"
            except (MissingReference, ApiError) as error:
                self._waiting = str(error)
                LOG.info("Pod %s/%s waits: %s", self.namespace, self.name, error)
            self._sync()
            self._wake.wait(MOUNT_RETRY_SECONDS)
            self._wake.clear()
        return False

    def _attached(self) -> bool:
        """Claim the pod's EBS volumes on the node; say whether all of them are attached."""
        handles = self._volumes.claims()
        if handles is None:
            return False
        names = [volume_name(handle) for handle in handles.values()]
        if names and self._claimed != names:
            self.node.claim(names, self.uid)
            self._claimed = names
        return set(names) <= self.node.attached()

    def _create_containers(self) -> None:
        spec, place = self._pod["spec"], self._shared.place
        grace = spec.get("terminationGracePeriodSeconds")
        around = Surroundings(
            place=place,
            host=place.socket_address(self._ip),
            grace_seconds=DEFAULT_GRACE_SECONDS if grace is None else float(grace),
            prepare=self._prepare,
            wake=self.wake,
            prober=self._shared.prober,
        )
        policy = str(spec.get("restartPolicy") or "Always")
        known = {
            entry["name"]: entry
            for group in ("initContainerStatuses", "containerStatuses")
            for entry in self._pod["status"].get(group) or []
        }

        def create(container: Object, restart_policy: str) -> Container:
            # Processes of an earlier kubelet were killed at its successor's start, so a container
            # that ran then is starting again now.
            before = known.get(container["name"], {})
            ran = "running" in (before.get("state") or {})
            return Container(
                container,
                around,
                log=place.path(
                    "logs", "pods", f"{self.namespace}_{self.name}_{container['name']}.log"
                ),
                restart_policy=restart_policy,
                restarts=int(before.get("restartCount") or 0) + ran,
            )

        self._containers = [create(c, policy) for c in spec["containers"]]
        self._init = [
            create(c, c.get("restartPolicy") or ("Never" if policy == "Never" else "OnFailure"))
            for c in spec.get("initContainers") or []
        ]

    def _prepare(self, container: Object) -> images.Launch:
        """Say how a container runs; raises MissingReference, ApiError or StillwaterError."""
        shared = self._shared
        environment = resolve(
            self._pod,
            container,
            pod_ip=self._ip,
            host_ip=self.node.instance.private_ip,
            base=images.base_environment(shared.place, self._pod),
            lookup=self._lookup,
        )
        launch = images.launch(
            images.Request(
                place=shared.place,
                cluster=self.node.instance.cluster,
                pod=self._pod,
                container=container,
                environment=environment,
                mounts=self._volumes.mounts_of(container),
                pod_ip=self._ip,
            )
        )
        if launch.note:
            self._tell("image_stands_in", container=container["name"], note=launch.note)
        return launch

    def _lookup(self, kind: str, name: str) -> Object | None:
        resource = {"ConfigMap": "configmaps", "Secret": "secrets"}[kind]
        try:
            return self._shared.api.get(f"/api/v1/namespaces/{self.namespace}/{resource}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    @property
    def _initialized(self) -> bool:
        return self._sandbox and all(_let_go_on(c) for c in self._init)

    def _step(self, now: float) -> float:
        """Advance every container that may run now: init containers one by one, then the rest."""
        wake_at = float("inf")
        for container in self._init:
            wake_at = min(wake_at, container.step(now))
            if not _let_go_on(container):
                return wake_at
        return min([wake_at, *(container.step(now) for container in self._containers)])

    def _refresh_volumes(self) -> None:
        try:
            self._volumes.refresh(pod_ip=self._ip, host_ip=self.node.instance.private_ip)
        except StillwaterError as error:
            LOG.warning("Volumes of %s/%s stay as they are: %s", self.namespace, self.name, error)

    def _sync(self, ended: str | None = None) -> bool:
        """Write the pod's status when it changed; say whether the API has the current one."""
        containers = [c.status() for c in self._containers] or [
            {
                "name": c["name"],
                "image": c["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": "ContainerCreating", "message": self._waiting}},
                "lastState": {},
            }
            for c in self._pod["spec"]["containers"]
        ]
        seen = status.Observation(
            pod_ip=self._ip,
            host_ip=self.node.instance.private_ip,
            started_at=self._started_at,
            sandbox=self._sandbox,
            initialized=self._initialized,
            containers=containers,
            init_containers=[c.status() for c in self._init],
            ended=ended,
        )
        body = status.pod_status(self._pod, seen, timestamp())
        if _without_times(body) == self._published:
            return True
        try:
            self._shared.api.strategic(
                f"{self._path}/status", {"metadata": {"uid": self.uid}, "status": body}
            )
        except ApiError as error:
            if error.status in {404, 409}:  # gone, or its name belongs to another pod by now
                self._removed = True
            LOG.info("Status of %s/%s: %s", self.namespace, self.name, error)
            return False
        self._published = _without_times(body)
        self._tell_changes(body)
        return True

    def _tell_changes(self, body: Object) -> None:
        if any(c.running for c in self._containers):
            self._tell_once("pod_started", address=self._ip)
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in body["conditions"])
        if ready:
            self._tell_once("pod_ready", address=self._ip)
        elif "pod_ready" in self._told and not self._ending:
            self._told.discard("pod_ready")
            self._tell("pod_unready")
        restarts = sum(c.restarts for c in self._containers)
        if restarts > self._restarts_told:
            why = next((c.last_failure for c in self._containers if c.last_failure), "")
            self._tell("container_restarted", restarts=restarts, why=why)
        self._restarts_told = restarts

    def _end(self) -> None:
        """Wait until the pod is to go, stop it, release what it used, delete its object."""
        if not self._ending and self._containers:
            self._sync(self._outcome())
            self.node.release(self._claimed, self.uid)
        while not self._ending:
            self._wake.wait()
            self._wake.clear()
        self._tell_why()
        began = time.monotonic()
        self._stop_containers()
        if self._abandoned_at is not None:
            self._tell("pod_killed")
            return
        if self._containers and not self._removed:
            self._sync(self._outcome())
        self._volumes.remove()
        self.node.release(self._claimed, self.uid)
        self._delete()
        self._tell("pod_gone", stop_seconds=round(time.monotonic() - began, 3))

    def _tell_why(self) -> None:
        if self._abandoned_at is not None:
            return
        conditions = self._pod["status"].get("conditions") or []
        target = next((c for c in conditions if c["type"] == "DisruptionTarget"), None)
        if target is not None:
            self._tell("pod_evicted", reason=target.get("reason"), message=target.get("message"))
        self._tell("pod_stopping", grace_seconds=self._grace())

    def _grace(self) -> float:
        """Return the seconds the containers have from the moment they are told to stop."""
        if self._abandoned_at is not None:
            return self._abandon_grace
        if self._removed:
            return FORCED_GRACE_SECONDS
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds")
        return DEFAULT_GRACE_SECONDS if grace is None else float(grace)

    def _stop_containers(self) -> None:
        """SIGTERM, then SIGKILL when the grace is over; a grace cut short meanwhile counts."""
        containers = [*self._containers, *self._init]
        for container in containers:
            container.stop_for_good()
            if self._grace() > 0:
                container.terminate()
        began = time.monotonic()
        while not all(container.reap(time.monotonic()) for container in containers):
            left = began + self._grace() - time.monotonic()
            if left <= 0:
                for container in containers:
                    container.kill()
                continue
            self._wake.wait(left)
            self._wake.clear()

    def _outcome(self) -> str:
        return "Succeeded" if all(c.succeeded for c in self._containers) else "Failed"

    def _delete(self) -> None:
        """Remove the pod's object; the uid keeps a namesake made meanwhile alive."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while not self._removed and self._abandoned_at is None:
            try:
                self._shared.api.delete(self._path, body)
            except ApiError as error:
                if error.status in {404, 409}:
                    return
                LOG.warning("Delete of %s/%s: %s", self.namespace, self.name, error)
                self._wake.wait(RETRY_SECONDS)
                self._wake.clear()
            else:
                return

    def _tell_once(self, event: str, **fields: object) -> None:
        if event not in self._told:
            self._told.add(event)
            self._tell(event, **fields)

    def _tell(self, event: str, **fields: object) -> None:
        self._shared.journal.write(
            "kubelet", event, namespace=self.namespace, pod=self.name, node=self.node.name, **fields
        )


def _let_go_on(container: Container) -> bool:
    """Say whether an init container is done, or runs beside the others and is ready."""
    side_car = container.spec.get("restartPolicy") == "Always"
    return container.ready if side_car else container.finished


def _without_times(body: Object) -> Object:
    """Return a status without the times that change whenever it is computed."""
    conditions: list[dict[str, Any]] = body["conditions"]
    plain = [{k: v for k, v in c.items() if k != "lastTransitionTime"} for c in conditions]
    return {**body, "conditions": plain}
