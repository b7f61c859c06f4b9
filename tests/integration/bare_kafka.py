"""Bare Kafka nodes, without a twin around them: started, killed, paused, emptied, looked at."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.health.node import NodeObservation, Role
from core.health.rules import RuleSet, is_alive, is_ready, liveness, readiness
from infra.alerts.metrics import KAFKA_ALLOW
from local import environment
from local.kafka import jars
from local.kafka.observer import ObservedNode, Observer
from local.kafka.run import in_place
from local.place import Place, claim_place
from local.processes import Child, Processes

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 150.0
DIRECTORIES = 2
CLUSTER_ID, ANOTHER_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
TEMPLATE = """\
node.id={node_id}
process.roles={roles}
controller.quorum.voters={voters}
controller.listener.names=CONTROLPLANE
listener.security.protocol.map=CONTROLPLANE:PLAINTEXT,REPLICATION:PLAINTEXT
listeners={listeners}
log.dirs={directories}
default.replication.factor=2
min.insync.replicas=1
offsets.topic.replication.factor=1
num.recovery.threads.per.data.dir=1
metric.reporters=io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter
kafka.metrics.reporters=io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter
prometheus.metrics.reporter.listener=http://{host}:9404
prometheus.metrics.reporter.allowlist={allow}
"""


@contextmanager
def ground(directory: Path) -> Iterator[tuple[Place, Processes]]:
    """Yield a place of one's own, and the processes that end with the block."""
    jars.fetch()
    with claim_place() as claim:
        place = Place(claim.number, directory)
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            yield place, processes
        finally:
            processes.close()


class BareCluster:
    """A cluster of nodes by id and role; nothing runs until `start`.

    `settings` are lines beside the template's; of two about one setting the later one counts.
    """

    def __init__(
        self,
        place: Place,
        processes: Processes,
        roles: dict[int, Role],
        *,
        network: int,
        settings: str = "",
    ) -> None:
        self.place, self.processes, self.roles = place, processes, roles
        self._settings = settings
        self._directory = place.path(f"bare-{network}")
        self.nodes = {
            i: ObservedNode(
                i, role, f"127.{place.number}.{network}.{i + 1}", f"{self._home(i)}/scratch/"
            )
            for i, role in roles.items()
        }
        self.children: dict[int, Child] = {}
        self.observer = Observer()

    def start(self, node_id: int, *, cluster_id: str = CLUSTER_ID, allow: str = "") -> None:
        """Start a node; it formats what is empty."""
        home = self._home(node_id)
        configuration, work = home / "configuration", home / "scratch"
        configuration.mkdir(parents=True, exist_ok=True)
        for i in range(DIRECTORIES):
            self.data(node_id, i).mkdir(parents=True, exist_ok=True)
        (configuration / "server.config").write_text(self._config(node_id, allow))
        (configuration / "cluster.id").write_text(cluster_id)
        (configuration / "metadata.version").write_text("4.2-IV1")
        self.children[node_id] = self.processes.start(
            f"kafka-{self._directory.name}-{node_id}",
            [
                *(sys.executable, "-m", "local.kafka.run", "--config", str(configuration)),
                *("--work", str(work), "--address", self.nodes[node_id].host),
                *("--jars", str(jars.directory()), "--hosts", str(home / "hosts")),
            ],
            environment=environment.base(self.place),
            directory=REPOSITORY,
        )

    def data(self, node_id: int, index: int) -> Path:
        return self._home(node_id) / f"data-{index}"

    def _home(self, node_id: int) -> Path:
        return self._directory / str(node_id)

    def empty(self, node_id: int) -> None:
        for i in range(DIRECTORIES):
            shutil.rmtree(self.data(node_id, i))

    def signal(self, node_id: int, number: signal.Signals) -> None:
        os.kill(self.children[node_id].popen.pid, number)

    def kill(self, node_id: int) -> None:
        self.signal(node_id, signal.SIGKILL)
        self.children[node_id].popen.wait()

    def look(self) -> dict[int, NodeObservation]:
        self.observer.ask_cluster(self.nodes.values())
        return self.observer.look(self.nodes.values())

    def until(
        self, condition: Callable[[dict[int, NodeObservation]], bool], what: str
    ) -> dict[int, NodeObservation]:
        """Look until a condition holds; fail with what was seen last."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            seen = self.look()
            if condition(seen):
                return seen
            time.sleep(0.2)
        raise AssertionError(
            f"{what}: not within {PATIENCE_SECONDS:.0f} s.\n{table(seen.values())}"
        )

    def until_ready(self, *node_ids: int) -> dict[int, NodeObservation]:
        def all_ready(seen: dict[int, NodeObservation]) -> bool:
            return all(readiness(seen[i]).healthy for i in node_ids)

        return self.until(all_ready, f"nodes {node_ids} are ready by the strict rules")

    def bootstrap(self, node_id: int) -> str:
        return f"{self.nodes[node_id].host}:9091"

    def _config(self, node_id: int, allow: str) -> str:
        node = self.nodes[node_id]
        voters = [n for n in self.nodes.values() if n.role.is_controller]
        listeners = []
        if node.role.is_controller:
            listeners.append(f"CONTROLPLANE://{node.host}:9090")
        if node.role.is_broker:
            listeners.append(f"REPLICATION://{node.host}:9091")
        text = TEMPLATE.format(
            node_id=node_id,
            roles="broker,controller" if node.role is Role.COMBINED else node.role.value,
            voters=",".join(f"{v.node_id}@{v.host}:9090" for v in voters),
            listeners=",".join(listeners),
            directories=",".join(str(self.data(node_id, i) / "log") for i in range(DIRECTORIES)),
            host=node.host,
            allow=(allow or ",".join(KAFKA_ALLOW)).replace("\\", "\\\\"),
        )
        if node.role.is_broker:
            text += "inter.broker.listener.name=REPLICATION\n"
        text += self._settings
        return in_place(text, node.host, "")


def answers(observed: NodeObservation, rules: RuleSet) -> tuple[bool, bool]:
    """Return what the two probes answer: liveness, readiness."""
    return is_alive(liveness(observed, rules)), is_ready(readiness(observed, rules))


def table(observations: Iterable[NodeObservation], title: str = "") -> str:
    """Return what each rule set answers for each node, and the strict reason."""
    lines = [title] if title else []
    for observed in observations:
        columns = []
        for rules in RuleSet:
            lives, serves = answers(observed, rules)
            columns.append(f"{rules.value} {'alive' if lives else 'DEAD'}/"
                           f"{'ready' if serves else 'NOT READY'}")  # fmt: skip
        verdict = readiness(observed)
        lines.append(
            f"  {observed.node_id:>3} {observed.role.value:<10} | {' | '.join(columns)} | "
            f"{verdict.health.value}: {verdict.reason}"
        )
    return "\n".join(lines)
