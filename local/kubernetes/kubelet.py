"""The twin's kubelet: one program for every node of the cluster.

It watches EC2 for instances the cluster owns. Each becomes a Node, and the pods bound to it run as
processes; an instance that ends takes its processes with it, and its Node goes a moment later, as
the cloud provider's node lifecycle controller would have it. One whose root volume is replaced
boots anew: its processes are killed, what is on its root is lost, and other volumes are kept.

Run it as `python -m local.kubernetes.kubelet` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from core.ground.errors import InvalidInput
from local.environment import Delays
from local.journal import Journal
from local.kubernetes.client import Api, ApiError, Informer, Object, administrator
from local.kubernetes.cloud import (
    RUNNING,
    CloudError,
    InstanceCloud,
    RunningInstance,
    client,
    instance_id_of,
)
from local.kubernetes.containers import child_pids
from local.kubernetes.control_plane import NODE_LEASE_RENEWAL_SECONDS
from local.kubernetes.dns import HostsFile
from local.kubernetes.node import NodeAgent
from local.kubernetes.pods import Addresses, PodWorker, Shared
from local.place import Place
from local.processes import kill_recorded, stop_event

POLL_SECONDS = 0.5
# From "running" to the kubelet's first word, and the steps after it. A real node takes half a
# minute; the order is the same.
BOOT_SECONDS = 0.5
NETWORK_READY_SECONDS = 0.5
CSI_DRIVER_SECONDS = 0.5
RECONSTRUCTION_SECONDS = 5.0
NODE_DELETE_SECONDS = 1.5
PROBE_THREADS = 6
# Within the five seconds a program of the twin has to end.
SHUTDOWN_GRACE_SECONDS = 3.0
LOG = logging.getLogger(__name__)


def boot_seconds(known: Object | None, *, rebooted: bool) -> float:
    """Return how long a machine boots before its kubelet speaks; not at all where only that ended.

    Of one that was launched EC2 has waited for the machine already; one whose root volume was
    replaced is called running all the while.
    """
    if known is None:
        return BOOT_SECONDS
    return BOOT_SECONDS + Delays.from_env().boot_seconds if rebooted else 0.0


@dataclass
class Machine:
    """One running instance and what the kubelet runs on it."""

    agent: NodeAgent
    boot: str | None = None  # what it has booted from
    # Set when the instance has ended: nothing is reported from here any more.
    ended: threading.Event = field(default_factory=threading.Event)
    registered: bool = False


class Kubelet:
    """Nodes and pods of one twin."""

    def __init__(
        self,
        place: Place,
        api: Api,
        cloud: InstanceCloud,
        facts: Journal,
        stopped: threading.Event,
    ) -> None:
        self._api, self._cloud, self._journal = api, cloud, facts
        self._stopped = stopped
        self._lock = threading.Lock()
        self._machines: dict[str, Machine] = {}
        self._workers: dict[str, PodWorker] = {}
        self._refused: set[str] = set()
        self._missing_since: dict[str, float] = {}
        self._prober = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")
        self._shared = Shared(
            place=place,
            api=api,
            journal=facts,
            addresses=Addresses(),
            prober=self._prober,
            used_addresses=self._used_addresses,
        )
        # Processes of an earlier kubelet cannot be looked after by this one: they are killed, and
        # their containers start again on the same volumes and addresses.
        kill_recorded(child_pids(place))
        self._hosts = HostsFile(
            place,
            lambda: list(self._pods.objects.values()),
            lambda: list(self._services.objects.values()),
        )
        self._nodes = Informer(api, "/api/v1/nodes", self._on_node)
        self._pods = Informer(api, "/api/v1/pods", self._on_pod, fieldSelector="spec.nodeName!=")
        self._services = Informer(api, "/api/v1/services", lambda *_: self._hosts.changed())

    def run(self) -> None:
        """Look after the cluster until stopped; then end every process within five seconds."""
        for informer in (self._nodes, self._pods, self._services):
            informer.wait_synced(30)
        self._hosts.start()
        threading.Thread(target=self._beat, name="heartbeats", daemon=True).start()
        while not self._stopped.wait(POLL_SECONDS):
            try:
                self._reconcile(self._cloud.states(), time.monotonic())
            except CloudError as error:
                LOG.warning("EC2 did not answer: %s", error)
        self._shut_down()

    def _reconcile(self, states: dict[str, str], now: float) -> None:
        """Boot what runs and is new, end what no longer runs, delete the Nodes of what is gone."""
        for instance_id, state in states.items():
            if state == RUNNING and instance_id not in self._machines:
                self._boot(instance_id)
        for instance_id, machine in list(self._machines.items()):
            current = states.get(instance_id)
            boot = None if current is None else self._cloud.boot(instance_id)
            if current == RUNNING and boot != machine.boot:
                self._reboot(machine, boot)
            if current != RUNNING:
                self._end(machine, orderly=current is not None)
            dark = boot is None and machine.boot is not None
            # One that was stopped and runs again boots again.
            if current is None or (current == RUNNING and machine.ended.is_set() and not dark):
                del self._machines[instance_id]
        self._delete_nodes_without_instance(states, now)

    def _boot(self, instance_id: str) -> None:
        try:
            instance = self._cloud.describe(instance_id)
        except InvalidInput as error:
            if instance_id not in self._refused:
                self._refused.add(instance_id)
                LOG.warning("Instance %s does not join: %s", instance_id, error)
                self._journal.write(
                    "kubelet", "node_refused", instance_id=instance_id, why=str(error)
                )
            return
        boot = self._cloud.boot(instance_id)
        machine = Machine(NodeAgent(self._api, instance, self._journal, boot=boot or ""), boot)
        self._machines[instance_id] = machine
        threading.Thread(
            target=self._join, args=(machine, instance), name=f"boot {instance_id}", daemon=True
        ).start()

    def _join(self, machine: Machine, instance: RunningInstance) -> None:
        """Register a node step by step, as far as its instance lives."""
        agent = machine.agent
        known = self._nodes.objects.get(("", instance.node_name))
        boots_seconds = boot_seconds(
            known, rebooted=known is not None and agent.has_rebooted(known)
        )
        if boots_seconds and machine.ended.wait(boots_seconds):
            return
        while not machine.ended.is_set():
            try:
                agent.register()
                machine.registered = True
                node = self._nodes.objects.get(("", agent.name))
                if node is not None:
                    agent.observe(node)
                self._adopt(machine)
                if machine.ended.wait(NETWORK_READY_SECONDS):
                    return
                agent.become_ready()
                if machine.ended.wait(CSI_DRIVER_SECONDS):
                    return
                agent.register_driver()
                if not machine.ended.wait(RECONSTRUCTION_SECONDS):
                    agent.forget_unclaimed()
            except ApiError as error:
                LOG.warning("Node %s tries again: %s", agent.name, error)
                machine.ended.wait(1.0)
            else:
                return

    def _end(self, machine: Machine, *, orderly: bool) -> None:
        """Stop a machine's processes: at once when it is gone, orderly while EC2 shuts it down."""
        grace = machine.agent.instance.config.shutdown_grace_seconds if orderly else 0.0
        first = not machine.ended.is_set()
        machine.ended.set()
        if first or not orderly:
            for worker in self._workers_of(machine.agent):
                worker.abandon(grace, "its instance has ended")

    def _reboot(self, machine: Machine, boot: str | None) -> None:
        """Kill what runs on a machine whose root volume is another one, or gone."""
        if machine.ended.is_set():
            return
        machine.ended.set()
        self._journal.write("kubelet", "node_reboots", node=machine.agent.name, boot=boot or "")
        for worker in self._workers_of(machine.agent):
            worker.abandon(0.0, "its machine boots from another root volume", root_lost=True)

    def _workers_of(self, agent: NodeAgent) -> list[PodWorker]:
        with self._lock:
            return [worker for worker in self._workers.values() if worker.node is agent]

    def _delete_nodes_without_instance(self, states: dict[str, str], now: float) -> None:
        missing = {}
        for (_, name), node in self._nodes.objects.items():
            provider_id = node["spec"].get("providerID") or ""
            instance_id = instance_id_of(provider_id)
            if not provider_id.startswith("aws://") or instance_id in states:
                continue
            missing[name] = self._missing_since.get(name, now)
            if now - missing[name] < NODE_DELETE_SECONDS:
                continue
            try:
                body = {"preconditions": {"uid": node["metadata"]["uid"]}}
                self._api.delete(f"/api/v1/nodes/{name}", body)
                self._journal.write("kubelet", "node_gone", node=name, instance_id=instance_id)
            except ApiError as error:
                LOG.info("Node %s: %s", name, error)
        self._missing_since = missing

    def _beat(self) -> None:
        while not self._stopped.wait(NODE_LEASE_RENEWAL_SECONDS):
            for machine in list(self._machines.values()):
                if machine.registered and not machine.ended.is_set():
                    try:
                        machine.agent.heartbeat()
                    except ApiError as error:
                        LOG.warning("Heartbeat of %s: %s", machine.agent.name, error)

    def _machine_named(self, name: str) -> Machine | None:
        return next(
            (
                machine
                for machine in list(self._machines.values())
                if machine.agent.name == name and not machine.ended.is_set()
            ),
            None,
        )

    def _on_node(self, event: str, node: Object) -> None:
        name = node["metadata"]["name"]
        machine = self._machine_named(name)
        if machine is None or event == "DELETED":
            return
        seen = machine.agent.observed
        before = bool((seen.get("spec") or {}).get("unschedulable"))
        after = bool(node["spec"].get("unschedulable"))
        machine.agent.observe(node)
        if seen and before != after:
            fact = "node_cordoned" if after else "node_uncordoned"
            self._journal.write("kubelet", fact, node=name)
        for worker in self._workers_of(machine.agent):
            worker.wake()

    def _on_pod(self, event: str, pod: Object) -> None:
        self._hosts.changed()
        uid = pod["metadata"]["uid"]
        with self._lock:
            worker = self._workers.get(uid)
        if worker is not None and event == "DELETED":
            worker.removed()
            with self._lock:
                self._workers.pop(uid, None)
        elif worker is not None:
            worker.update(pod)
        elif event != "DELETED":
            self._bind(pod)

    def _bind(self, pod: Object) -> None:
        """Start a pod that is new here, if its node is."""
        # A list after a lost watch shows a namesake without the end of the one before it.
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        with self._lock:
            before = [w for w in self._workers.values() if (w.namespace, w.name) == key]
        for namesake in before:
            namesake.removed()
        machine = self._machine_named(pod["spec"]["nodeName"])
        if machine is not None and machine.registered:
            self._start(pod, machine)

    def _adopt(self, machine: Machine) -> None:
        """Start the pods that were bound to a node before it registered here."""
        for pod in self._pods.objects.values():
            if pod["spec"].get("nodeName") == machine.agent.name:
                self._start(pod, machine)

    def _start(self, pod: Object, machine: Machine) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            known = self._workers.get(uid)
            # A machine that was stopped and runs again starts its pods anew.
            if known is not None and known.node is machine.agent:
                return
            worker = PodWorker(pod, machine.agent, self._shared)
            self._workers[uid] = worker
            worker.start()

    def _used_addresses(self) -> set[str]:
        pods = {pod["status"].get("podIP", "") for pod in self._pods.objects.values()}
        return pods | {m.agent.instance.private_ip for m in list(self._machines.values())}

    def _shut_down(self) -> None:
        with self._lock:
            workers = list(self._workers.values())
        for machine in list(self._machines.values()):
            machine.ended.set()
        for worker in workers:
            worker.abandon(SHUTDOWN_GRACE_SECONDS, "the kubelet ends")
        deadline = time.monotonic() + SHUTDOWN_GRACE_SECONDS + 1.0
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        self._hosts.stop()
        kill_recorded(child_pids(self._shared.place))


def main() -> None:
    """Run the kubelet of the twin named by STILLWATER_TWIN until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    place = Place.load()
    api = administrator(place)
    cloud = InstanceCloud(client("ec2", place))
    Kubelet(place, api, cloud, Journal(place), stop_event()).run()
    # Informers and probes are daemon threads that may sit in a read; nothing is left to finish.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
