"""A controller, a broker and Connect workers as bare processes, to be frozen, thawed and killed.

Their own, since a Kafka that is frozen is of no use to anybody else.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import StillwaterError
from core.health.connect import Answer, Mode, Worker, worker_verdict
from core.health.verdict import HealthVerdict
from handlers.adapters.connect import ask, directly
from handlers.adapters.kafka import KafkaAdmin
from local.kafka import jars
from local.kafka.run import jvm
from local.place import Place, claimed
from local.processes import Child, Processes

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
CONTROLLER, BROKER = "controller", "broker"
MAIN = {
    Mode.DISTRIBUTED: "org.apache.kafka.connect.cli.ConnectDistributed",
    Mode.STANDALONE: "org.apache.kafka.connect.cli.ConnectStandalone",
}
HOSTS = {CONTROLLER: 1, BROKER: 2, Mode.DISTRIBUTED.value: 11, Mode.STANDALONE.value: 12}
# The default of core.cluster's timings: longer than a worker's own 10 s.
PROBE_SECONDS = 12.0
STARTUP_SECONDS = 120.0


@dataclass(frozen=True)
class Probed:
    """What one probe of a worker saw, and the verdict on it."""

    answers: tuple[Answer, ...]
    verdict: HealthVerdict


@dataclass
class Workers:
    """The processes by name, and how each is asked."""

    processes: Processes
    place: Place
    java: list[str]
    children: dict[str, Child] = field(default_factory=dict)
    started_at: dict[str, float] = field(default_factory=dict)

    def host(self, name: str) -> str:
        return f"127.{self.place.number}.9.{HOSTS[name]}"

    def start(self, name: str, main: str, settings: Mapping[str, str]) -> None:
        path = self.write(name, settings)
        self.children[name] = self.processes.start(name, [*self.java, main, str(path)])
        self.started_at[name] = time.monotonic()

    def write(self, name: str, settings: Mapping[str, str]) -> Path:
        path = self.place.path(f"{name}.properties")
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self.children[name].popen.pid, number)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        for name in names:
            self.signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            for name in names:
                self.signal(name, signal.SIGCONT)

    def start_worker(self, mode: Mode) -> None:
        self.start(mode.value, MAIN[mode], worker_settings(self, mode))

    def kafka_answers(self) -> bool:
        try:
            return not KafkaAdmin([f"{self.host(BROKER)}:9092"], "PLAINTEXT").read().stale
        except StillwaterError:
            return False

    def probe(self, mode: Mode, *, kafka_answers: bool | None = None) -> Probed:
        """Ask a worker as λ health does, and judge it by what is known of its process."""
        answers = ask(directly(self.host(mode.value)), PROBE_SECONDS)
        worker = Worker(
            name=mode.value,
            mode=mode,
            running=self.children[mode.value].alive,
            running_seconds=time.monotonic() - self.started_at[mode.value],
            startup_seconds=STARTUP_SECONDS,
            kafka_answers=kafka_answers,
        )
        return Probed(answers, worker_verdict(worker, answers))


def kafka_settings(workers: Workers, role: str) -> dict[str, str]:
    node_id = HOSTS[role]
    listener = ("CONTROLLER", 9090) if role == CONTROLLER else ("PLAIN", 9092)
    return {
        "process.roles": role,
        "node.id": str(node_id),
        "controller.quorum.voters": f"{HOSTS[CONTROLLER]}@{workers.host(CONTROLLER)}:9090",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT",
        "listeners": f"{listener[0]}://{workers.host(role)}:{listener[1]}",
        **({"inter.broker.listener.name": "PLAIN"} if role == BROKER else {}),
        "log.dirs": str(workers.place.path(f"data-{role}")),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "8388608",
    }


def worker_settings(workers: Workers, mode: Mode) -> dict[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    shared = {
        "bootstrap.servers": f"{workers.host(BROKER)}:9092",
        "key.converter": converter,
        "value.converter": converter,
        "plugin.discovery": "service_load",
        "listeners": f"http://{workers.host(mode.value)}:8083",
    }
    if mode is Mode.STANDALONE:
        return {**shared, "offset.storage.file.filename": str(workers.place.path("offsets"))}
    topics = ("config", "offset", "status")
    return {
        **shared,
        "group.id": "tide",
        **{f"{topic}.storage.topic": f"tide-{topic}" for topic in topics},
        **{f"{topic}.storage.replication.factor": "1" for topic in topics},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }


@contextmanager
def running(folder: Path) -> Iterator[Workers]:
    """Yield a controller and a broker that answer, and no worker yet."""
    with claimed() as claim:
        place = Place(claim.number, folder)
        hosts = place.path("hosts")
        hosts.touch()
        processes = Processes(place.path("pids"), place.path("logs"))
        workers = Workers(processes, place, jvm(jars.fetch(), hosts))
        try:
            for role in (CONTROLLER, BROKER):
                config = workers.write(role, kafka_settings(workers, role))
                tool = [*workers.java, "kafka.tools.StorageTool", "format"]
                subprocess.run(
                    [*tool, "-t", CLUSTER_ID, "-c", str(config)], check=True, capture_output=True
                )
                workers.start(role, "kafka.Kafka", kafka_settings(workers, role))
            processes.wait_until(
                workers.children[BROKER],
                lambda: _listens(workers.host(BROKER)) and workers.kafka_answers(),
                within_seconds=120,
                what="the broker answers",
            )
            yield workers
        finally:
            for child in workers.children.values():
                if child.alive:
                    os.kill(child.popen.pid, signal.SIGCONT)
            processes.close()


def _listens(host: str) -> bool:
    try:
        socket.create_connection((host, 9092), 1).close()
    except OSError:
        return False
    return True
