"""A provisioned cluster on a twin, and what a bench does to it beside what its operator would."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kafka.admin import ConfigResource, KafkaAdminClient
from rich.console import Console

from bench.fleet.seen import Stretch
from bench.waiting import until
from core.ground import naming
from core.health.rules import RuleSet
from core.views import ClusterView
from local import twin as twins
from local.commands.layers import TwinLayers
from local.commands.setup import prepare_tools
from local.demo import load, result
from local.demo import spec as demo_spec
from local.kubernetes.strimzi_model import RULES_VARIABLE
from local.processes import GIVES_WAY

# The tests' cluster is the instrument: it reads, waits and puts under load.
from tests.integration.cluster import BROKERS, Cluster, Load

WHOLE_SECONDS = 240.0
WARM_UP_SECONDS, STEADY_SECONDS = 10.0, 20.0
# A broker that dies without a word counts as in sync until its session of 9 s is over.
FENCED_BY_SECONDS = 12.0
# A poll that is under way when its mapping is disabled still takes what comes.
POLLS_END_SECONDS = 5.0
GONE_FROM_PROC = (OSError, ValueError)
# As Linux weighs it: a quarter of a processor that two want.
NICENESS = "5"


@dataclass
class FleetTwin:
    """One cluster; `watched` tells whether the toolkit's functions hear anything."""

    cluster: Cluster
    brokers: frozenset[int] = BROKERS
    watched: bool = True
    _mappings: list[str] = field(default_factory=list)

    @property
    def place(self) -> Any:
        return self.cluster.twin.place

    def wait(self, holds: Callable[[], object], what: str, seconds: float = WHOLE_SECONDS) -> None:
        """Wait for something that comes by itself."""
        alive = self.cluster.twin.check_alive
        until(holds, what, within_seconds=seconds, look_seconds=0.3, alive=alive)

    def is_whole(self) -> bool:
        """Say whether all brokers and controllers are in sync and their groups at rest."""
        view = self.cluster.kafka()
        if view is None or not all_in_sync(view, self.brokers):
            return False
        if self.watched and self.cluster.ledger.open_incidents():
            return False
        groups = self.cluster.twin.aws("autoscaling").describe_auto_scaling_groups()
        ours = set(self.cluster.outputs["auto_scaling_groups"].values())
        at_rest = [
            [instance["LifecycleState"] for instance in group["Instances"]]
            == ["InService"] * group["MinSize"]
            for group in groups["AutoScalingGroups"]
            if group["AutoScalingGroupName"] in ours
        ]
        return len(at_rest) == len(ours) and all(at_rest)

    def settle(self, seconds: float = WHOLE_SECONDS) -> None:
        self.wait(self.is_whole, "the cluster is whole", seconds)

    def ready(self, node_id: int) -> bool:
        """Say whether a Kafka node's pod is Ready."""
        pod = self.cluster.pods().get(node_id)
        conditions = (pod or {}).get("status", {}).get("conditions") or []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def java(self, node_id: int) -> int | None:
        """Return the process of a Kafka node, or None while it has none."""
        pod = self.cluster.pods().get(node_id)
        if pod is None:
            return None
        config = str(self.place.path("pods", pod["metadata"]["uid"], "kafka", "server.config"))
        for pid, words in commands():
            if words[0].endswith("java") and words[-1] == config:
                return pid
        return None

    def signal_broker(self, node_id: int, number: signal.Signals) -> int:
        """Send a Kafka node's process a signal, once it has one; return its pid."""
        self.wait(lambda: self.java(node_id), f"node {node_id} runs")
        pid = self.java(node_id)
        assert pid is not None
        os.kill(pid, number)
        return pid

    def restart(self, node_id: int, number: signal.Signals) -> None:
        """End a node's process; return when another runs and nobody takes it for the old one."""
        gone = self.signal_broker(node_id, number)
        at = time.monotonic()
        self.wait(lambda: self.java(node_id) not in (None, gone), f"node {node_id} runs again")
        time.sleep(max(0.0, at + FENCED_BY_SECONDS - time.monotonic()))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let the toolkit's functions hear nothing for the block, as if there were none."""
        functions = self.cluster.twin.aws("lambda")
        mappings = [
            m["UUID"] for m in functions.list_event_source_mappings()["EventSourceMappings"]
        ]
        for uuid in mappings:
            functions.update_event_source_mapping(UUID=uuid, Enabled=False)
        self.watched = False
        time.sleep(POLLS_END_SECONDS)
        try:
            yield
        finally:
            self._purge()
            for uuid in mappings:
                functions.update_event_source_mapping(UUID=uuid, Enabled=True)
            self.watched = True

    @contextlib.contextmanager
    def slow_follower(self, node_id: int) -> Iterator[None]:
        """Keep a broker's replicas out of sync for the block: it returns, and gets no records.

        It is Ready and unfenced, and says of itself that nothing is under-replicated.
        """
        self._throttle("1")
        try:
            self.restart(node_id, signal.SIGTERM)
            self.wait(lambda: self.ready(node_id) and self._behind(node_id), f"{node_id} lags")
            yield
        finally:
            self._throttle(str(10**9))

    @contextlib.contextmanager
    def under_load(
        self,
        replicas: Mapping[int, Sequence[int]] | None = None,
        *,
        steady_seconds: float = STEADY_SECONDS,
    ) -> Iterator[tuple[Load, Stretch]]:
        """Put the cluster under the demo's load; yield it with the steady stretch before.

        `replicas` says on which brokers each partition is, the preferred one first; without it
        Kafka places them.
        """
        with self.cluster.under_load(replicas) as running:
            time.sleep(WARM_UP_SECONDS)
            since = time.time()
            time.sleep(steady_seconds)
            yield running, Stretch(since, time.time())

    def samples(self) -> list[Mapping[str, Any]]:
        return list(result.samples(self.cluster.twin))

    def admin(self) -> KafkaAdminClient:
        servers, settings = self.cluster.bootstrap.split(","), self.cluster.access()()
        return KafkaAdminClient(bootstrap_servers=servers, **settings)

    def _behind(self, node_id: int) -> bool:
        view = self.cluster.kafka()
        return view is not None and any(
            node_id in p.replicas and node_id not in p.isr
            for p in view.partitions
            if p.topic == load.TOPIC
        )

    def _throttle(self, rate: str) -> None:
        """Let leaders send the load's topic to replicas out of sync at a rate.

        What in-sync replicas fetch counts as well, and is not held back: a rate below theirs leaves
        the others nothing. A follower's own throttle would let its first fetch bring all it missed.
        """
        every = {"leader.replication.throttled.replicas": "*"}
        limit = {"leader.replication.throttled.rate": rate}
        brokers = [ConfigResource("broker", str(id_), limit) for id_ in sorted(self.brokers)]
        admin = self.admin()
        try:
            admin.alter_configs(
                [ConfigResource("topic", load.TOPIC, every), *brokers], raise_on_unknown=False
            )
        finally:
            admin.close()

    def _purge(self) -> None:
        queues = self.cluster.twin.aws("sqs")
        for url in queues.list_queues().get("QueueUrls", []):
            queues.purge_queue(QueueUrl=url)


def all_in_sync(view: ClusterView, brokers: frozenset[int] = BROKERS) -> bool:
    """Say whether every broker is there, every voter caught up, and every replica in sync."""
    return (
        not view.stale
        and view.brokers == brokers
        and not view.fenced
        and all(voter.caught_up for voter in view.voters)
        and all(set(p.isr) == set(p.replicas) for p in view.partitions)
    )


def commands() -> Iterator[tuple[int, list[str]]]:
    """Yield every process of this machine that can be read, with its command line."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(*GONE_FROM_PROC):
            words = (entry / "cmdline").read_text().rstrip("\0").split("\0")
            yield int(entry.name), words


def brokers_of(pool: Mapping[str, Any]) -> frozenset[int]:
    """Return the node ids of a pool that has nodes in every zone."""
    first, reserved = int(pool["first_node_id"]), int(pool["node_ids_per_zone"])
    count, zones = int(pool.get("nodes_per_zone", 1)), range(len(demo_spec.ZONES))
    return frozenset(n for z in zones for n in naming.node_ids(first, reserved, z)[:count])


def probes() -> str:
    """Return by which rules Kafka's pods are probed; STILLWATER_HEALTH_RULES names others."""
    return os.environ.get(RULES_VARIABLE, RuleSet.SHIPPED.value)


@contextlib.contextmanager
def provision(
    console: Console,
    logs: Path,
    *,
    brokers_per_zone: int = 1,
    changes: Mapping[str, Any] | None = None,
) -> Iterator[FleetTwin]:
    """Provision the demo's cluster on a twin of its own, probed as Strimzi's pods are on EKS.

    There nobody can replace Strimzi's probes, so the toolkit has to hold with them, and so have
    its peers. The twin's strict rules would decide bench.rotation's lagging rows: a broker out of
    sync since it started is not Ready by them, the disruption budget then refuses the eviction,
    and the peer would be spared what it does on EKS.

    Functions and brokers that start give way to those that serve: on EKS they have processors of
    their own.
    """
    os.environ[RULES_VARIABLE] = probes()
    os.environ.setdefault(GIVES_WAY, NICENESS)
    prepare_tools(console)
    with twins.running(console.log, keep_logs=logs) as twin:
        spec = {**demo_spec.spec(twin.place), **(changes or {})}
        (pool,) = (pool for pool in spec["pools"] if pool["role"] == "broker")
        pool["nodes_per_zone"] = brokers_per_zone
        written = demo_spec.path(twin.place)
        written.write_text(yaml.safe_dump(spec, sort_keys=False))
        layers = TwinLayers(twin, written)
        cluster = Cluster(twin, layers, layers.up(console.log))
        ground = FleetTwin(cluster, brokers_of(pool))
        ground.settle()
        yield ground
