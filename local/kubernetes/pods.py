"""One pod on one node, from its binding to its final delete: address, volumes, containers, end.

Each pod has a thread, which sleeps until the API, a process or a clock gives it something to do.
The order of its end is what keeps a volume safe: processes stop, the node drops the volume from
volumesInUse, and only then does the pod's object go.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from core.ground.errors import StillwaterError
from local.journal import Journal
from local.kubernetes import images
from local.kubernetes.client import ENDED_PHASES, Api, ApiError, Object, find
from local.kubernetes.containers import Container, ContainerGroup, PodSandbox
from local.kubernetes.environment import MissingReference, PodVolumes, resolve
from local.kubernetes.node import NodeAgent, timestamp, volume_name
from local.place import Place

# AWS keeps the first four addresses of a subnet and the last.
RESERVED_AT_START, RESERVED_AT_END = 4, 1
# 10.N.250.x and 10.N.251.x stand for the twin's own services and its load balancer (Place).
SERVICE_OCTETS = (250, 251)


class Addresses:
    """Hands out each subnet's addresses in turn, so that a freed one rests before it returns.

    Instances get theirs from EC2 in rising order, so pods start at the middle of the subnet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        self._held: dict[str, str] = {}

    def keep(self, uid: str, address: str) -> str:
        """Note that a pod already has an address, after a restart of the kubelet."""
        with self._lock:
            self._held[uid] = address
        return address

    def take(self, uid: str, cidr: str, others: Collection[str]) -> str:
        """Return a free address of the subnet for a pod; `others` are in use elsewhere."""
        network = ipaddress.IPv4Network(cidr)
        size = network.num_addresses
        with self._lock:
            taken = {*self._held.values(), *others}
            start = self._next.get(cidr, size // 2)
            for offset in range(size):
                position = (start + offset) % size
                if not RESERVED_AT_START <= position < size - RESERVED_AT_END:
                    continue
                address = network[position]
                if address.packed[2] in SERVICE_OCTETS or str(address) in taken:
                    continue
                self._next[cidr] = position + 1
                self._held[uid] = str(address)
                return str(address)
        raise ValueError(f"The subnet {cidr} has no free address left for a pod.")

    def give_back(self, uid: str) -> None:
        with self._lock:
            self._held.pop(uid, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObservation:
    """What the kubelet knows of one pod at one moment."""

    pod_ip: str
    host_ip: str
    started_at: str
    # Volumes are mounted and the address is the pod's own.
    sandbox: bool
    containers: Sequence[Object]
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
    return "Running" if ran else "Pending"


def conditions(pod: Object, seen: PodObservation, now: str) -> list[Object]:
    """Return the kubelet's own conditions; those of readiness gates belong to others."""
    unready = [c["name"] for c in seen.containers if not c["ready"]]
    containers_ready = not seen.ended and seen.sandbox and not unready
    unmet = unmet_gates(pod)
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(seen.ended or "")
    not_ready = (
        finished or "ContainersNotReady",
        f"containers with unready status: [{' '.join(unready)}]",
    )
    rows = [
        ("PodReadyToStartContainers", seen.sandbox and not seen.ended, ("", "")),
        ("Initialized", seen.sandbox, ("ContainersNotInitialized", "")),
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


LOG = logging.getLogger(__name__)


class PodGone(Exception):
    """The pod's object is gone, or its name belongs to another pod by now."""


class PodReport:
    """Writes a pod's status when it changed, and each change once to the journal."""

    def __init__(self, api: Api, journal: Journal, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        self._api, self._journal, self._node = api, journal, node
        self._namespace, self._name, self._uid = (
            metadata["namespace"],
            metadata["name"],
            metadata["uid"],
        )
        self.path = f"/api/v1/namespaces/{self._namespace}/pods/{self._name}"
        self._published: Object = {}
        self._told: set[str] = set()
        self._restarts = 0

    def write(self, pod: Object, seen: PodObservation, containers: Sequence[Container]) -> bool:
        """Bring the API up to date; say whether it is. Raises PodGone."""
        body = pod_status(pod, seen, timestamp())
        if _without_times(body) == self._published:
            return True
        try:
            self._api.strategic(
                f"{self.path}/status", {"metadata": {"uid": self._uid}, "status": body}
            )
        except ApiError as error:
            if error.status in {404, 409}:
                raise PodGone from error
            LOG.info("Status of %s/%s: %s", self._namespace, self._name, error)
            return False
        self._published = _without_times(body)
        self._tell_changes(body, seen, containers)
        return True

    def tell(self, event: str, **fields: object) -> None:
        self._journal.write(
            "kubelet", event, namespace=self._namespace, pod=self._name, node=self._node, **fields
        )

    def _tell_changes(
        self, body: Object, seen: PodObservation, containers: Sequence[Container]
    ) -> None:
        if any(container.running for container in containers):
            self._tell_once("pod_started", address=seen.pod_ip)
        true = {c["type"] for c in body["conditions"] if c["status"] == "True"}
        if "ContainersReady" in true:
            # What a pod with readiness gates is before it is Ready.
            self._tell_once("pod_containers_ready", address=seen.pod_ip)
        if "Ready" in true:
            self._tell_once("pod_ready", address=seen.pod_ip)
        elif "pod_ready" in self._told and not seen.ended:
            self._told -= {"pod_ready", "pod_containers_ready"}
            self.tell("pod_unready")
        restarts = sum(container.restarts for container in containers)
        if restarts > self._restarts:
            why = next((c.last_failure for c in containers if c.last_failure), "")
            self.tell("container_restarted", restarts=restarts, why=why)
        self._restarts = restarts

    def _tell_once(self, event: str, **fields: object) -> None:
        if event not in self._told:
            self._told.add(event)
            self.tell(event, **fields)


def _without_times(body: Object) -> Object:
    """Return a status without the times that change whenever it is computed."""
    conditions: list[dict[str, Any]] = body["conditions"]
    plain = [{k: v for k, v in c.items() if k != "lastTransitionTime"} for c in conditions]
    return {**body, "conditions": plain}


DEFAULT_GRACE_SECONDS = 30.0
# A pod whose object is already gone (a forced delete) still gets this long to stop.
FORCED_GRACE_SECONDS = 2.0
RETRY_SECONDS = 0.5
MOUNT_RETRY_SECONDS = 1.0
LONGEST_SLEEP_SECONDS = 30.0


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


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The machine under a pod is gone, or this program ends: nobody waits for a word from it."""

    grace_seconds: float
    why: str
    root_lost: bool = False  # with what the machine's root volume held of the pod


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
        self._report = PodReport(shared.api, shared.journal, pod, node.name)
        self._wake = threading.Event()
        self._removed = False
        self._abandoned: Abandoned | None = None
        self._volumes = PodVolumes(shared.api, shared.place, pod)
        self._claimed: list[str] = []
        self._containers: ContainerGroup | None = None
        self._waiting = ""
        self._ip = ""
        self._host_ip = node.instance.private_ip
        self._started_at = pod["status"].get("startTime") or timestamp()
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

    def abandon(self, grace_seconds: float, why: str, *, root_lost: bool = False) -> None:
        """Stop the processes within a grace, and say nothing to the API."""
        if self._abandoned is None or grace_seconds < self._abandoned.grace_seconds:
            self._abandoned = Abandoned(grace_seconds, why, root_lost)
        self.wake()

    @property
    def _ending(self) -> bool:
        deleting = bool(self._pod["metadata"].get("deletionTimestamp"))
        return self._removed or deleting or self._abandoned is not None

    def _run(self) -> None:
        try:
            if self._pod["status"].get("phase") not in ENDED_PHASES:
                self._live()
            self._end()
        except Exception:
            LOG.exception("Pod %s/%s is no longer looked after.", self.namespace, self.name)
        finally:
            self._shared.addresses.give_back(self.uid)

    def _live(self) -> None:
        """Mount, start and look after the containers until they are ended."""
        self._ip = self._address()
        if not self._mount():
            return
        containers = self._containers = ContainerGroup(self._pod, self._surroundings())
        while not self._ending:
            wake_at = containers.step(time.monotonic())
            settled = self._sync()
            self._refresh_volumes()
            longest = LONGEST_SLEEP_SECONDS if settled else RETRY_SECONDS
            pause = min(wake_at - time.monotonic(), longest)
            if pause > 0:
                self._wake.wait(pause)
            self._wake.clear()

    def _address(self) -> str:
        instance = self.node.instance
        if self._pod["spec"].get("hostNetwork"):
            return instance.private_ip
        known = self._pod["status"].get("podIP")
        if known:
            return self._shared.addresses.keep(self.uid, known)
        others = self._shared.used_addresses()
        return self._shared.addresses.take(self.uid, instance.subnet_cidr, others)

    def _mount(self) -> bool:
        """Wait for the pod's volumes and write its files; return False when the pod ends first."""
        while not self._ending:
            try:
                if self._attach_volumes():
                    self._volumes.write(pod_ip=self._ip, host_ip=self._host_ip)
                    return True
                self._waiting = "its volumes are not attached yet"
            except (MissingReference, ApiError) as error:
                self._waiting = str(error)
                LOG.info("Pod %s/%s waits: %s", self.namespace, self.name, error)
            self._sync()
            self._wake.wait(MOUNT_RETRY_SECONDS)
            self._wake.clear()
        return False

    def _attach_volumes(self) -> bool:
        """Claim the pod's EBS volumes on the node; say whether all of them are attached."""
        handles = self._volumes.claims()
        if handles is None:
            return False
        names = [volume_name(handle) for handle in handles.values()]
        if names and self._claimed != names:
            self.node.claim(names, self.uid)
            self._claimed = names
        return set(names) <= self.node.attached_volumes()

    def _surroundings(self) -> PodSandbox:
        grace = self._pod["spec"].get("terminationGracePeriodSeconds")
        return PodSandbox(
            place=self._shared.place,
            host=self._shared.place.socket_address(self._ip),
            grace_seconds=DEFAULT_GRACE_SECONDS if grace is None else float(grace),
            prepare=self._prepare,
            wake=self.wake,
            prober=self._shared.prober,
        )

    def _prepare(self, container: Object) -> images.ContainerLaunch:
        """Say how a container runs; raises MissingReference, ApiError or StillwaterError."""
        place = self._shared.place
        environment = resolve(
            self._pod,
            container,
            pod_ip=self._ip,
            host_ip=self._host_ip,
            base=images.base_environment(place, self._pod),
            lookup=self._look_up,
        )
        launch = images.launch(
            images.ContainerRequest(
                place=place,
                cluster=self.node.instance.cluster,
                pod=self._pod,
                container=container,
                environment=environment,
                mounts=self._volumes.mounts_of(container),
                pod_ip=self._ip,
            )
        )
        if launch.note:
            self._report.tell("image_stands_in", container=container["name"], note=launch.note)
        return launch

    def _look_up(self, kind: str, name: str) -> Object | None:
        resource = {"ConfigMap": "configmaps", "Secret": "secrets"}[kind]
        return find(self._shared.api, f"/api/v1/namespaces/{self.namespace}/{resource}/{name}")

    def _refresh_volumes(self) -> None:
        try:
            self._volumes.refresh(pod_ip=self._ip, host_ip=self._host_ip)
        except StillwaterError as error:
            LOG.warning("Volumes of %s/%s stay as they are: %s", self.namespace, self.name, error)

    def _sync(self, ended: str | None = None) -> bool:
        """Write the pod's status if it changed; say whether the API has the current one."""
        group = self._containers
        waiting = [creating(c, self._waiting) for c in self._pod["spec"]["containers"]]
        seen = PodObservation(
            pod_ip=self._ip,
            host_ip=self._host_ip,
            started_at=self._started_at,
            sandbox=group is not None,
            containers=[c.status() for c in group.containers] if group else waiting,
            ended=ended,
        )
        try:
            return self._report.write(self._pod, seen, group.containers if group else [])
        except PodGone:
            self._removed = True
            return True

    def _end(self) -> None:
        """Wait until the pod is to go, stop it, release what it used, delete its object."""
        group = self._containers
        while not self._ending:
            self._wake.wait()
            self._wake.clear()
        self._tell_why()
        began = time.monotonic()
        if group is not None:
            group.stop(self._grace_seconds, self._wake)
        if self._abandoned is not None:
            if self._abandoned.root_lost:
                self._volumes.remove()
            self._report.tell("pod_killed", why=self._abandoned.why)
            return
        if group is not None and not self._removed:
            self._sync(group.outcome)
        self._volumes.remove()
        self.node.release(self._claimed, self.uid)
        self._delete()
        self._report.tell("pod_gone", stop_seconds=round(time.monotonic() - began, 3))

    def _tell_why(self) -> None:
        if self._abandoned is not None:
            return
        conditions = self._pod["status"].get("conditions") or []
        target = next((c for c in conditions if c["type"] == "DisruptionTarget"), None)
        if target is not None:
            self._report.tell(
                "pod_evicted", reason=target.get("reason"), message=target.get("message")
            )
        self._report.tell("pod_stopping", grace_seconds=self._grace_seconds())

    def _grace_seconds(self) -> float:
        """Return the time containers have from the moment they are told to stop."""
        if self._abandoned is not None:
            return self._abandoned.grace_seconds
        if self._removed:
            return FORCED_GRACE_SECONDS
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds")
        return DEFAULT_GRACE_SECONDS if grace is None else float(grace)

    def _delete(self) -> None:
        """Remove the pod's object; the uid keeps a namesake made meanwhile alive."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while not self._removed and self._abandoned is None:
            try:
                self._shared.api.delete(self._report.path, body)
            except ApiError as error:
                if error.status in {404, 409}:
                    return
                LOG.warning("Delete of %s/%s: %s", self.namespace, self.name, error)
                self._wake.wait(RETRY_SECONDS)
                self._wake.clear()
            else:
                return
