"""A controller, a broker and Connect workers as bare processes, to be frozen, thawed and killed.

Their own, since a Kafka that is frozen is of no use to anybody else.
"""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import urllib3

from core.ground.constants import CONNECT_REST_PORT
from core.ground.errors import StillwaterError
from core.health.connect import Mode, RestResponse, Worker, worker_verdict
from core.health.node import Role
from core.health.verdict import HealthVerdict
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.pods import CONNECT_SECONDS, Fetch, ask, timed_answer
from local.kafka import jars
from local.kafka.run import jvm
from local.place import Place, cache_directory
from local.processes import Child, Processes
from local.tools.build import making
from tests.integration.bare_kafka import BareCluster, ground
from tests.integration.pipes import answer, hang
from tests.integration.waiting import until

CONTROLLER, BROKER = "controller", "broker"
# Workers by name: as the twin's Kafka has them, and one of the last release without GET /health.
WORKER, ALONE, OLDER = "distributed", "standalone", "distributed-3.8"
MAIN = {
    Mode.DISTRIBUTED: "org.apache.kafka.connect.cli.ConnectDistributed",
    Mode.STANDALONE: "org.apache.kafka.connect.cli.ConnectStandalone",
}
MODES = {WORKER: Mode.DISTRIBUTED, ALONE: Mode.STANDALONE, OLDER: Mode.DISTRIBUTED}
HOSTS = {WORKER: 11, ALONE: 12, OLDER: 13}
CONNECTOR = "lines"
KAFKA_SETTINGS = """\
default.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
# The default of core.cluster's timings: longer than a worker's own 10 s.
PROBE_SECONDS = 12.0
# On a machine that is slow none of the states below may be called late.
STARTUP_SECONDS = 600.0


def directly(host: str) -> Fetch:
    """Return a way to ask a worker on this network."""

    def fetch(path: str, seconds: float) -> RestResponse:
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, seconds), read=seconds)
        url = f"http://{host}:{CONNECT_REST_PORT}{path}"
        with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
            return timed_answer(path, lambda: pool.request("GET", url, preload_content=False))

    return fetch


def jars_of_3_8() -> Path:
    """Fetch a worker of Kafka 3.8 once, into the per-user cache."""
    pom = Path(__file__).with_name("poms") / "connect-3.8.xml"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    home = cache_directory() / "connect" / f"3.8-{digest}"
    with making(home, lambda: None) as staging:
        if staging is not None:
            jars.copy_dependencies(pom, staging, "The jars of Kafka 3.8")
    return home


@dataclass(frozen=True)
class Probed:
    """What one probe of a worker saw, and the verdict on it."""

    answers: tuple[RestResponse, ...]
    verdict: HealthVerdict


@dataclass
class Workers:
    """The processes by name, and how each is asked."""

    processes: Processes
    place: Place
    bootstrap: str
    java: list[str]
    children: dict[str, Child]
    started_at: dict[str, float] = field(default_factory=dict)

    def host(self, name: str) -> str:
        return f"127.{self.place.number}.9.{HOSTS[name]}"

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

    def start_worker(self, name: str) -> None:
        path = self.place.path(f"{name}.properties")
        settings = worker_settings(self, name)
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = jvm(jars_of_3_8(), self.place.path("hosts")) if name == OLDER else self.java
        self.children[name] = self.processes.start(name, [*java, MAIN[MODES[name]], str(path)])
        self.started_at[name] = time.monotonic()

    def kafka_answers(self) -> bool:
        try:
            return not KafkaAdmin([self.bootstrap]).read().stale
        except StillwaterError:
            return False

    def probe(
        self,
        name: str,
        *,
        kafka_answers: bool | None = None,
        startup_seconds: float = STARTUP_SECONDS,
    ) -> Probed:
        """Ask a worker as λ health does, and judge it by what is known of its process."""
        answers = ask(directly(self.host(name)), PROBE_SECONDS)
        worker = Worker(
            name=name,
            mode=MODES[name],
            running=self.children[name].alive,
            running_seconds=time.monotonic() - self.started_at[name],
            startup_seconds=startup_seconds,
            kafka_answers=kafka_answers,
        )
        return Probed(answers, worker_verdict(worker, answers))

    def start_connector(self) -> None:
        """Run a connector on the distributed worker, one of whose settings is in a file."""
        lines, settings = self.place.path("lines.txt"), self._settings_file()
        lines.touch()
        settings.write_text(f"file={lines}\n")
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "topic": "lines",
            "file": f"${{file:{settings}:file}}",
        }
        until(
            lambda: self._rest("PUT", "/config", config).status in {200, 201},
            "the connector is accepted",
        )
        until(self._runs, "the connector and its task run")

    @contextmanager
    def herder_blocked(self) -> Iterator[None]:
        """Block the worker's tick thread: it restarts a connector and waits for that file.

        What a store of secrets does that hangs. Kafka is well all the while.
        """
        settings = self._settings_file()
        aside = settings.with_suffix(".aside")
        hang(settings, aside)
        try:
            # Nothing is answered before the connector has started.
            self._rest("POST", "/restart", seconds=1.0)
            yield
        finally:
            until(lambda: answer(settings, aside), "the tick thread waits for the file")

    def _settings_file(self) -> Path:
        return self.place.path("connector.properties")

    def _runs(self) -> bool:
        said = self._rest("GET", "/status")
        if said.status != 200:
            return False
        states = [said.json()["connector"], *said.json()["tasks"]]
        return len(states) > 1 and all(each["state"] == "RUNNING" for each in states)

    def _rest(
        self, method: str, path: str, document: object = None, seconds: float = 60.0
    ) -> urllib3.BaseHTTPResponse:
        """Call the connector's resource; no answer in time is one without a status."""
        url = f"http://{self.host(WORKER)}:8083/connectors/{CONNECTOR}{path}"
        try:
            return urllib3.request(method, url, json=document, timeout=seconds, retries=False)
        except urllib3.exceptions.TimeoutError:
            return urllib3.HTTPResponse(status=0)


def worker_settings(workers: Workers, name: str) -> dict[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    shared = {
        "bootstrap.servers": workers.bootstrap,
        "key.converter": converter,
        "value.converter": converter,
        "plugin.discovery": "service_load",
        "listeners": f"http://{workers.host(name)}:8083",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    if MODES[name] is Mode.STANDALONE:
        return {**shared, "offset.storage.file.filename": str(workers.place.path("offsets"))}
    topics = ("config", "offset", "status")
    return {
        **shared,
        "group.id": name,
        **{f"{topic}.storage.topic": f"{name}-{topic}" for topic in topics},
        **{f"{topic}.storage.replication.factor": "1" for topic in topics},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }


@contextmanager
def running(folder: Path) -> Iterator[Workers]:
    """Yield a controller and a broker that answer, and no worker yet."""
    with ground(folder) as (place, processes):
        roles = {0: Role.CONTROLLER, 1: Role.BROKER}
        kafka = BareCluster(place, processes, roles, network=8, settings=KAFKA_SETTINGS)
        for node_id in roles:
            kafka.start(node_id)
        kafka.until_ready(*roles)
        hosts = place.path("hosts")
        hosts.touch()
        started = {CONTROLLER: kafka.children[0], BROKER: kafka.children[1]}
        yield Workers(processes, place, kafka.bootstrap(1), jvm(jars.fetch(), hosts), started)
