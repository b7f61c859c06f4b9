"""The probe against real Kafka: good attempts with every broker, and what a killed one costs."""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from kafka.admin import KafkaAdminClient

from core.health.node import Role
from core.settings import codec
from core.settings.prometheus import ATTEMPTS, FAILED, SECONDS, ProbeSettings
from handlers import probing
from local.place import Place, claim_place
from local.processes import Processes
from tests.integration.bare_kafka import REPOSITORY, BareCluster

pytestmark = pytest.mark.integration
NODES = dict.fromkeys((0, 1, 2), Role.COMBINED)
TOPIC = "stillwater-probe"
LIMIT_SECONDS = 90.0
Page = dict[str, float]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Processes]]:
    with claim_place() as claim:
        place = Place(claim.number, tmp_path_factory.mktemp("probe"))
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            yield place, processes
        finally:
            processes.close()


@pytest.fixture(scope="module")
def cluster(ground: tuple[Place, Processes]) -> BareCluster:
    made = BareCluster(*ground, NODES, network=3)
    for node_id in NODES:
        made.start(node_id)
    made.until_ready(*NODES)
    return made


@pytest.fixture(scope="module")
def page(ground: tuple[Place, Processes], cluster: BareCluster) -> Callable[[], Page]:
    place, processes = ground
    settings = ProbeSettings(
        bootstrap=tuple(cluster.bootstrap(node_id) for node_id in NODES),
        security="PLAINTEXT",
        user="nobody",
        topic=TOPIC,
        replication_factor=3,
        latency_seconds=3.0,
        host=f"127.{place.number}.3.99",
    )
    told = {codec.SETTINGS: codec.write(codec.document(settings))}
    probe = processes.start(
        "probe",
        [sys.executable, "-m", "stillwater.inside", "probe"],
        environment={"PATH": os.environ["PATH"], **told},
        directory=REPOSITORY,
    )

    def read() -> Page:
        assert probe.popen.poll() is None, probe.log.read_text()
        try:
            with urllib.request.urlopen(f"http://{settings.host}:{settings.port}/metrics") as said:
                lines = said.read().decode().splitlines()
        except OSError:
            return {}
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    return read


def until(page: Callable[[], Page], holds: Callable[[Page], bool]) -> Page:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds(found := page()):
        assert time.monotonic() < deadline, json.dumps(found, indent=1)
        time.sleep(0.3)
    return found


def count(page: Page, name: str, broker: int, **labels: str) -> float:
    said = "".join(f',{key}="{value}"' for key, value in labels.items())
    return page.get(f'{name}{{broker="{broker}"{said}}}', 0.0)


def read_back(page: Page, broker: int) -> float:
    return count(page, f"{SECONDS}_count", broker, step="consume")


def failed(page: Page, broker: int) -> float:
    return sum(count(page, FAILED, broker, step=step) for step in ("produce", "consume"))


def test_every_broker_leads_a_partition_and_is_attempted_without_a_failure(
    cluster: BareCluster, page: Callable[[], Page]
) -> None:
    found = until(page, lambda each: all(read_back(each, n) >= 5 for n in NODES))
    assert [failed(found, node_id) for node_id in NODES] == [0.0] * len(NODES)
    assert all(count(found, ATTEMPTS, node_id) >= 5 for node_id in NODES)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap(0))
    assert set(probing.partitions(admin, TOPIC)) == set(NODES)
    admin.close()


@pytest.mark.long
def test_a_killed_broker_burns_budget_until_another_leads_and_then_no_more(
    cluster: BareCluster, page: Callable[[], Page]
) -> None:
    before = until(page, lambda each: all(read_back(each, n) >= 1 for n in NODES))
    cluster.kill(2)
    burnt = until(page, lambda each: failed(each, 2) > failed(before, 2))
    after = until(page, lambda each: read_back(each, 2) > read_back(burnt, 2) + 3)
    # It is another broker's partition now, and its clients are served again.
    settled = until(page, lambda each: read_back(each, 2) > read_back(after, 2) + 3)
    assert failed(settled, 2) - failed(after, 2) <= 1
