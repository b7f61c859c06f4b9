"""Kafka nodes as bare processes: three controllers and three brokers, nothing else on the machine.

They are started by the same program as a pod's container in the twin, so that a node with an empty
directory formats it with the cluster's id and its own, as it would there.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import urllib3
from kafka.admin import ConfigResource, KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from bench.waiting import until
from core.ground.errors import StillwaterError
from local import environment
from local.demo.load import unfenced_brokers
from local.kafka import jars
from local.kafka.container import CLUSTER_ID, METADATA_VERSION, POD_ADDRESS, SERVER_CONFIG
from local.place import Place, claim_place
from local.processes import Child, Processes

REPOSITORY = Path(__file__).resolve().parents[2]
CONTROLLERS, BROKERS = (0, 1, 2), (10, 11, 12)
CONTROL_PORT, CLIENT_PORT, METRICS_PORT = 9090, 9092, 9404
START_SECONDS, STOP_SECONDS = 180.0, 90.0
VOLUME = "/var/lib/kafka/data-0"
# Replication is throttled to a twentieth of a production broker's rate, so what a fetch brings and
# how long a throttled fetcher waits shrink with it; else one response is seconds of the rate.
IN_PROPORTION = {
    "replica.fetch.max.bytes": 128 * 1024,
    "replica.fetch.response.max.bytes": 512 * 1024,
    "replica.fetch.backoff.ms": 100,
}
BYTES_IN = re.compile(
    r"^kafka_server_brokertopicmetrics_replicationbytesin\w*(?:\{\})? (\S+)$", re.MULTILINE
)


class BenchNodes:
    """The cluster's processes and directories, and what can be asked of them."""

    def __init__(
        self,
        place: Place,
        processes: Processes,
        jars_directory: Path,
        of_brokers: Mapping[str, int] = IN_PROPORTION,
    ) -> None:
        self.place, self._processes, self._jars = place, processes, jars_directory
        self._of_brokers = of_brokers
        self._children: dict[int, Child] = {}
        self._http = urllib3.PoolManager(retries=False, timeout=0.5)

    @property
    def bootstrap(self) -> list[str]:
        return [f"{self.host(node)}:{CLIENT_PORT}" for node in BROKERS]

    def host(self, node: int) -> str:
        return self.place.socket_address(f"10.{self.place.number}.20.{node + 1}")

    def start(self, node: int, environment_more: dict[str, str] | None = None) -> None:
        """Start a node; a directory without meta.properties is formatted first."""
        home = self.place.path("nodes", str(node))
        home.mkdir(parents=True, exist_ok=True)
        release = ".".join(jars.version().split(".")[:2])
        for name, text in (
            (SERVER_CONFIG, self._config(node)),
            (CLUSTER_ID, "AAAAAAAAAAAAAAAAAAAAAA"),
            (METADATA_VERSION, release),
        ):
            (home / name).write_text(text)
        self._children[node] = self._processes.start(
            f"node-{node}",
            [
                *(sys.executable, "-m", "local.kafka.run", "--config", str(home)),
                *("--work", str(home / "work"), "--address", self.host(node)),
                *("--jars", str(self._jars), "--hosts", str(self.place.path("hosts"))),
                f"--mount={VOLUME}={self._volume(node)}",
            ],
            environment={**environment.base(self.place), **(environment_more or {})},
            directory=REPOSITORY,
        )

    def stop(self, node: int, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop a node, cleanly unless another signal is given, and wait until it is gone."""
        child = self._children.pop(node)
        child.popen.send_signal(number)
        child.popen.wait(STOP_SECONDS)
        self._processes.stop(child)

    def empty(self, node: int) -> None:
        """Take all that a stopped node has stored, as the loss of an instance store does."""
        shutil.rmtree(self._volume(node))

    def check_alive(self) -> None:
        for child in self._children.values():
            if not child.alive:
                raise StillwaterError(f"{child.name} ended; its last lines:\n{child.tail()}")

    def wait_until_up(self) -> None:
        until(
            lambda: (
                unfenced_brokers(lambda: {"bootstrap_servers": self.bootstrap}) == list(BROKERS)
            ),
            "every broker is up",
            within_seconds=START_SECONDS,
            look_seconds=0.5,
            alive=self.check_alive,
        )

    def log_bytes(self, node: int, topic: str) -> int:
        """Return the bytes of a topic's records in a node's directory."""
        return sum(segment.stat().st_size for segment in self._segments(node, topic))

    def last_append(self, node: int, topic: str) -> float:
        """Return when a record was last written to a node's directory, in epoch seconds."""
        return max(segment.stat().st_mtime for segment in self._segments(node, topic))

    def replication_bytes_in(self, node: int) -> float | None:
        """Return what a node has fetched since it started; None while it does not answer."""
        try:
            answer = self._http.request("GET", f"http://{self.host(node)}:{METRICS_PORT}/metrics")
        except urllib3.exceptions.HTTPError:
            return None
        found = BYTES_IN.search(answer.data.decode())
        return float(found.group(1)) if found else 0.0

    def all_in_sync(self, topic: str, among: Sequence[int]) -> bool:
        """Say whether every replica is in sync, as the brokers asked know it; not known is no."""
        addresses = [f"{self.host(node)}:{CLIENT_PORT}" for node in among]
        try:
            admin = KafkaAdminClient(bootstrap_servers=addresses)
        except KafkaError:
            return False
        try:
            partitions = admin.describe_topics([topic])[0]["partitions"]
        except KafkaError:
            # The client asks whichever broker it likes: also the one that is just starting.
            return False
        finally:
            admin.close()
        return all(set(p["replica_nodes"]) == set(p["isr_nodes"]) for p in partitions)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic whose replicas are throttled while they are not in sync."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        configuration = {
            "min.insync.replicas": "2",
            "follower.replication.throttled.replicas": "*",
        }
        try:
            admin.create_topics([NewTopic(topic, partitions, 3, topic_configs=configuration)])
        finally:
            admin.close()

    def throttle(self, node: int, bytes_per_s: int) -> None:
        """Limit what a node's replicas that are not in sync may fetch."""
        rate = {"follower.replication.throttled.rate": str(bytes_per_s)}
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.alter_configs([ConfigResource("broker", str(node), rate)], raise_on_unknown=False)
        except KafkaError as error:
            raise StillwaterError(f"Broker {node} could not be throttled: {error!r}.") from None
        finally:
            admin.close()

    def _volume(self, node: int) -> Path:
        directory = self.place.path("volumes", str(node))
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def _segments(self, node: int, topic: str) -> Iterator[Path]:
        return self.place.path("volumes", str(node)).glob(f"kafka-log/{topic}-*/*.log")

    def _config(self, node: int) -> str:
        controller = node in CONTROLLERS
        listener = (
            f"CONTROLPLANE://{POD_ADDRESS}:{CONTROL_PORT}"
            if controller
            else f"REPLICATION://{POD_ADDRESS}:{CLIENT_PORT}"
        )
        voters = ",".join(f"{id_}@{self.host(id_)}:{CONTROL_PORT}" for id_ in CONTROLLERS)
        settings = {
            "node.id": node,
            "process.roles": "controller" if controller else "broker",
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLPLANE",
            "inter.broker.listener.name": "REPLICATION",
            "listener.security.protocol.map": "CONTROLPLANE:PLAINTEXT,REPLICATION:PLAINTEXT",
            "listeners": listener,
            "log.dirs": f"{VOLUME}/kafka-log",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 3,
            "auto.leader.rebalance.enable": "false",
            "kafka.metrics.reporters": "io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter",
            "metric.reporters": "io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter",
            "prometheus.metrics.reporter.listener": f"http://{POD_ADDRESS}:{METRICS_PORT}",
            # All of them are 350 ms a scrape.
            "prometheus.metrics.reporter.allowlist": "kafka_server_brokertopicmetrics_repl.*",
            **({} if controller else self._of_brokers),
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())


@contextmanager
def running(of_brokers: Mapping[str, int] = IN_PROPORTION) -> Iterator[BenchNodes]:
    """Run the nodes until the block ends, its brokers so set; nothing of them is left."""
    with claim_place() as place:
        place.directory.mkdir(parents=True, exist_ok=True)
        place.path("hosts").touch()
        processes = Processes(
            place.path("pids"), place.path("logs"), held=place.held, cleared=place.directory
        )
        nodes = BenchNodes(place, processes, jars.fetch(), of_brokers)
        try:
            for node in (*CONTROLLERS, *BROKERS):
                nodes.start(node)
            nodes.wait_until_up()
            yield nodes
        finally:
            processes.close()
