"""Looks at every Kafka node of a cluster at once, as their probes need it.

One process for all nodes: a probe that started Python for itself would cost more than the node it
asks (300 ms of CPU). Ports and processes are read from /proc, as Strimzi's scripts do, so that no
probe is a connection in Kafka's log; exporters are asked for the wanted names alone; the cluster is
asked once for all nodes. What only time can tell (that a recovery moves, that a broker was in sync
once) is remembered here; core.health decides.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from core.ground.errors import StillwaterError
from core.health.kafka import active_controller
from core.health.node import (
    CONTROL_PLANE_PORT,
    NEVER,
    PORT,
    REPLICATION_PORT,
    RUNNING,
    Metric,
    NodeMetrics,
    NodeObservation,
    Role,
    add_metrics,
    parse,
    wanted_names,
)
from core.views import ClusterView
from handlers.adapters.kafka import Access, KafkaAdmin

# Milliseconds on an idle machine; on a busy one a JVM may wait for its turn.
SCRAPE_SECONDS = 2.0
# How long the last reading of the cluster counts while nobody gives a newer one: a broker that
# stops in the middle of an answer must not make every other's health unknown.
READING_KEPT_SECONDS = 30.0
WANTED = urlencode([("name[]", name) for name in wanted_names()])
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """One Kafka node: where it listens, and what tells its process from others'."""

    node_id: int
    role: Role
    host: str
    mark: str  # stands in the command line of its JVM


@dataclass(slots=True)
class _Memory:
    """What is remembered of one run of a node's process."""

    pid: int
    running_since: float | None = None
    was_in_sync: bool = False
    left: int | None = None
    moved_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """One reading of the cluster; `view` is None when no broker answered."""

    asked_at: float
    view: ClusterView | None


class Observer:
    """Observes nodes; `look` is one round, `ask_cluster` what it takes from the cluster itself."""

    def __init__(self, access: Access | None = None) -> None:
        """Take how the cluster is asked: in the clear and without a name unless told."""
        self._access = access
        self._reading = _Reading(0.0, None)
        self._memories: dict[int, _Memory] = {}
        self._silent: frozenset[int] = frozenset()
        self._workers = ThreadPoolExecutor(max_workers=16, thread_name_prefix="scrape")

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)

    @property
    def view(self) -> ClusterView | None:
        """Return the last reading of the cluster; None where no broker answered."""
        return self._reading.view

    def ask_cluster(self, nodes: Iterable[ObservedNode]) -> None:
        """Ask whichever broker answers first for fencing, quorum and in-sync replicas.

        One whose exporter is silent comes last: a frozen broker connects, and says nothing.
        """
        asked_at = now()
        asked = sorted(
            (n for n in nodes if n.role.is_broker),
            key=lambda node: (node.node_id in self._silent, node.node_id),
        )
        try:
            addresses = [f"{n.host}:{REPLICATION_PORT}" for n in asked]
            view = KafkaAdmin(addresses, self._access).read()
        except StillwaterError:
            view = None
        if view is not None or asked_at - self._reading.asked_at > READING_KEPT_SECONDS:
            self._reading = _Reading(asked_at, view)

    def look(self, nodes: Iterable[ObservedNode]) -> dict[int, NodeObservation]:
        """Observe every node now, within the bound of one scrape."""
        every = list(nodes)
        scrapes = dict(
            zip((n.node_id for n in every), self._workers.map(scrape, every), strict=True)
        )
        self._silent = frozenset(i for i, metrics in scrapes.items() if metrics is None)
        ports, java = listening(), java_processes()
        active = active_controller(m for m in scrapes.values() if m is not None)
        return {
            node.node_id: self._observation(node, scrapes[node.node_id], active, ports, java)
            for node in every
        }

    def _observation(
        self,
        node: ObservedNode,
        metrics: NodeMetrics | None,
        active: NodeMetrics | None,
        ports: frozenset[tuple[str, int]],
        java: Mapping[str, tuple[int, float]],
    ) -> NodeObservation:
        pid, started_at = next((p for line, p in java.items() if node.mark in line), (0, None))
        observed = NodeObservation(
            node_id=node.node_id,
            role=node.role,
            now=now(),
            process=pid > 0,
            started_at=started_at,
            listening={p: (node.host, p) in ports for p in (CONTROL_PLANE_PORT, REPLICATION_PORT)},
        )
        observed = add_metrics(observed, metrics)
        observed = self._as_controllers_say(observed, active)
        return self._with_memory(self._as_cluster_says(observed), pid)

    def _as_controllers_say(
        self, observed: NodeObservation, active: NodeMetrics | None
    ) -> NodeObservation:
        if active is None or not observed.role.is_broker:
            return observed
        key = str(observed.node_id)
        state = active.sums_by_label(Metric.REGISTRATION_STATE, "broker").get(key)
        heard = active.sums_by_label(Metric.SINCE_HEARTBEAT_MS, "broker").get(key)
        return replace(
            observed,
            registration=None if state is None else int(state),
            since_heartbeat_seconds=None if heard is None else heard / 1000,
        )

    def _as_cluster_says(self, observed: NodeObservation) -> NodeObservation:
        view = self._reading.view
        if view is None:
            return observed
        if view.stale:
            return replace(observed, quorum_answers=False)
        mine, me = observed, observed.node_id
        if observed.role.is_broker:
            held = view.held_by(me)
            mine = replace(
                mine,
                fenced=me in view.fenced if me in view.brokers else None,
                not_in_sync=sum(me not in p.isr for p in held),
            )
        lags = {v.node_id: v.lag_seconds for v in view.voters}
        if observed.role.is_controller and me in lags:
            lag = lags[me]
            mine = replace(mine, voter_lag_seconds=NEVER if lag is None else lag)
        return replace(mine, quorum_answers=True)

    def _with_memory(self, observed: NodeObservation, pid: int) -> NodeObservation:
        memory = self._memories.get(observed.node_id)
        if memory is None or memory.pid != pid:
            memory = self._memories[observed.node_id] = _Memory(pid)
        if observed.recovering:
            left = sum(recovery.left for recovery in observed.recovery.values())
            if memory.left is None or left < memory.left:
                memory.left, memory.moved_at = left, observed.now
        if observed.broker_state == RUNNING and memory.running_since is None:
            memory.running_since = observed.now
        # An answer from before it ran again is about the run before: its ISRs still have it.
        fresh = memory.running_since is not None and self._reading.asked_at > memory.running_since
        if fresh and observed.not_in_sync == 0 and observed.fenced is False:
            memory.was_in_sync = True
        return replace(observed, recovery_moved_at=memory.moved_at, was_in_sync=memory.was_in_sync)


def now() -> float:
    """Return seconds since boot, the clock in which /proc tells when a process started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def scrape(node: ObservedNode) -> NodeMetrics | None:
    """Ask a node's exporter for what is wanted; None where it does not answer."""
    connection = http.client.HTTPConnection(node.host, PORT, timeout=SCRAPE_SECONDS)
    try:
        connection.request("GET", f"/metrics?{WANTED}")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return parse(text) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def listening() -> frozenset[tuple[str, int]]:
    """Return every address and port of this machine that somebody listens on, as netstat has it."""
    found: set[tuple[str, int]] = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == _LISTEN:
            address, port = local.split(":")
            octets = bytes.fromhex(address)[::-1]
            found.add((".".join(map(str, octets)), int(port, 16)))
    return frozenset(found)


def java_processes() -> dict[str, tuple[int, float]]:
    """Return the command line of every Java process, with its id and when it started."""
    ticks = os.sysconf("SC_CLK_TCK")
    found: dict[str, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if not (entry / "exe").readlink().name.startswith("java"):
                continue
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            # The name in parentheses may hold spaces; the start is the 22nd field.
            started = int((entry / "stat").read_text().rpartition(")")[2].split()[19]) / ticks
        except OSError:
            continue  # it has ended, or is not ours to look at
        found[line] = (int(entry.name), started)
    return found
