"""Draws what chaos does to a cluster, and in which order, from a seed that repeats it.

Every fault ends by itself; whether the cluster is whole again is for the one who asked to wait for.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.fleet.ground import GONE_FROM_PROC, FleetTwin, commands
from local import environment
from local.demo import rotation as demo
from local.nlb import PAUSED
from tests.integration.cluster import BROKERS, CONTROLLERS

# Longer than a broker's session of 9 s: it is fenced, and its leaders move.
BROKER_PAUSE_SECONDS = 15.0
NETWORK_PAUSE_SECONDS = 12.0
CRASHES, CRASH_EVERY_SECONDS = 6, 2.0
# Kubernetes detaches the volume of a node that is gone by force after six minutes.
RELEASED_SECONDS = 900.0


@dataclass(frozen=True)
class NodeFault:
    """One fault and the Kafka node it befalls, or is about."""

    fault: str
    node_id: int


def draw(seed: int, count: int) -> list[NodeFault]:
    """Return the disruptions of a seed: every fault comes once before any comes again."""
    chance = random.Random(seed)  # noqa: S311 - to be had again, not to be secret
    faults: list[str] = []
    while len(faults) < count:
        faults += chance.sample(sorted(FAULTS), len(FAULTS))
    return [
        NodeFault(fault, chance.choice(sorted(CONTROLLERS if fault in ON_CONTROLLERS else BROKERS)))
        for fault in faults[:count]
    ]


def broker_stopped(ground: FleetTwin, node_id: int) -> None:
    """Its process gets a SIGTERM that nobody announced."""
    ground.restart(node_id, signal.SIGTERM)


def node_killed(ground: FleetTwin, node_id: int) -> None:
    """Its process is gone at once."""
    ground.restart(node_id, signal.SIGKILL)


def broker_paused(ground: FleetTwin, node_id: int) -> None:
    """Its process stands still until it is fenced, and goes on."""
    pid = ground.signal_broker(node_id, signal.SIGSTOP)
    time.sleep(BROKER_PAUSE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def node_lost(ground: FleetTwin, node_id: int) -> None:
    """Its instance ends without anybody being asked."""
    instance_id = _instance(ground, node_id)
    ground.cluster.twin.aws("ec2").terminate_instances(InstanceIds=[instance_id])
    ground.wait(
        lambda: _instance(ground, node_id) not in ("", instance_id),
        f"node {node_id} is on another instance than {instance_id}",
        RELEASED_SECONDS,
    )


def node_leaves(ground: FleetTwin, node_id: int) -> None:
    """Its instance is terminated through its group."""
    _wait_until_released(ground, demo.terminate(ground.cluster.twin, node_id).instance_id)


def handler_killed(ground: FleetTwin, node_id: int) -> None:
    """Its node leaves, and the node termination handler dies as it is told to stop."""
    rotation = demo.terminate(ground.cluster.twin, node_id)
    ground.wait(
        lambda: [
            fact
            for fact in ground.cluster.facts("pod_stopping")
            if fact["at"] >= rotation.terminated_call_at
        ],
        f"node {node_id} is told to stop",
    )
    _kill(ground, lambda words: words[0].endswith("node-termination-handler"))
    _wait_until_released(ground, rotation.instance_id)


def functions_crash(ground: FleetTwin, node_id: int) -> None:
    """Its node leaves, and the functions' processes die every two seconds meanwhile."""
    rotation = demo.terminate(ground.cluster.twin, node_id)
    for _ in range(CRASHES):
        time.sleep(CRASH_EVERY_SECONDS)
        _kill(ground, lambda words: "awslambdaric" in words)
    _wait_until_released(ground, rotation.instance_id)


def api_server_restarted(ground: FleetTwin, node_id: int) -> None:
    """A node leaves while Kubernetes's API server is killed and started again."""
    twin = ground.cluster.twin
    rotation = demo.terminate(twin, node_id)
    (server,) = [child for child in twin.processes.children if child.name == "kube-apiserver"]
    command = [str(word) for word in server.popen.args]  # type: ignore[union-attr]
    server.popen.kill()
    twin.processes.stop(server)
    again = twin.processes.start(server.name, command, environment=environment.base(twin.place))
    twin.processes.wait_until(again, twin.api.ready, within_seconds=120, what="/readyz answers ok")
    _wait_until_released(ground, rotation.instance_id)


def network_paused(ground: FleetTwin, node_id: int) -> None:
    """Clients' bytes to and from a broker stand still, connections and all."""
    admin = ground.admin()
    try:
        ports = {b["broker_id"]: b["port"] for b in admin.describe_cluster()["brokers"]}
    finally:
        admin.close()
    paused = ground.place.path(PAUSED)
    paused.write_text(f"{ports[node_id]}\n")
    try:
        time.sleep(NETWORK_PAUSE_SECONDS)
    finally:
        paused.unlink()


FAULTS: Mapping[str, Callable[[FleetTwin, int], None]] = {
    "broker stopped": broker_stopped,
    "broker killed": node_killed,
    "broker paused": broker_paused,
    "controller killed": node_killed,
    "node lost": node_lost,
    "node leaves": node_leaves,
    "handler killed": handler_killed,
    "functions crash": functions_crash,
    "API server restarted": api_server_restarted,
    "network paused": network_paused,
}
ON_CONTROLLERS = frozenset({"controller killed"})


def _wait_until_released(ground: FleetTwin, instance_id: str) -> None:
    ground.cluster.released(instance_id, RELEASED_SECONDS)


def _instance(ground: FleetTwin, node_id: int) -> str:
    """Return the instance a Kafka node is on; empty while it is on none."""
    pod = ground.cluster.pods().get(node_id)
    name = (pod or {}).get("spec", {}).get("nodeName")
    if not name:
        return ""
    nodes = {
        n["metadata"]["name"]: n for n in ground.cluster.twin.api.get("/api/v1/nodes")["items"]
    }
    provider = nodes.get(name, {}).get("spec", {}).get("providerID", "")
    return str(provider).rpartition("/")[2]


def _kill(ground: FleetTwin, is_one: Callable[[list[str]], bool]) -> None:
    """Kill this twin's processes of a kind, and nobody else's."""
    ours = f"127.{ground.place.number}.".encode(), str(ground.place.directory).encode()
    for pid, words in commands():
        with contextlib.suppress(*GONE_FROM_PROC):
            if is_one(words):
                variables = Path("/proc", str(pid), "environ").read_bytes()
                if any(mark in variables for mark in ours):
                    os.kill(pid, signal.SIGKILL)
