"""The probe against real Kafka: good attempts with every broker, and what a killed one costs."""

import os
import sys
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from kafka.admin import KafkaAdminClient

from core.health.node import Role
from core.settings import codec
from core.settings.prometheus import ATTEMPTS, FAILED, SECONDS, ProbeSettings
from handlers import probing
from tests.integration.bare_kafka import REPOSITORY, BareCluster, ground
from tests.integration.waiting import until

pytestmark = pytest.mark.integration
NODES = dict.fromkeys((0, 1, 2), Role.COMBINED)
TOPIC = "stillwater-probe"
Page = dict[str, float]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareCluster]:
    with ground(tmp_path_factory.mktemp("probe")) as made:
        cluster = BareCluster(*made, NODES, network=3)
        for node_id in NODES:
            cluster.start(node_id)
        cluster.until_ready(*NODES)
        yield cluster


@pytest.fixture(scope="module")
def page(cluster: BareCluster) -> Callable[[], Page]:
    settings = ProbeSettings(
        bootstrap=tuple(cluster.bootstrap(node_id) for node_id in NODES),
        security="PLAINTEXT",
        user="nobody",
        topic=TOPIC,
        replication_factor=3,
        latency_seconds=3.0,
        host=f"127.{cluster.place.number}.3.99",
    )
    told = {codec.SETTINGS: codec.write(codec.document(settings))}
    probe = cluster.processes.start(
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


def seen(page: Callable[[], Page], holds: Callable[[Page], bool]) -> Page:
    """Wait until a page of the probe's holds, and return it."""
    return until(lambda: found if holds(found := page()) else None, "the probe says so")


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
    found = seen(page, lambda each: all(read_back(each, n) >= 5 for n in NODES))
    assert [failed(found, node_id) for node_id in NODES] == [0.0] * len(NODES)
    assert all(count(found, ATTEMPTS, node_id) >= 5 for node_id in NODES)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap(0))
    assert set(probing.partitions(admin, TOPIC)) == set(NODES)
    admin.close()


@pytest.mark.long
def test_a_killed_broker_burns_budget_until_another_leads_and_then_no_more(
    cluster: BareCluster, page: Callable[[], Page]
) -> None:
    before = seen(page, lambda each: all(read_back(each, n) >= 1 for n in NODES))
    cluster.kill(2)
    burnt = seen(page, lambda each: failed(each, 2) > failed(before, 2))
    after = seen(page, lambda each: read_back(each, 2) > read_back(burnt, 2) + 3)
    # It is another broker's partition now, and its clients are served again.
    settled = seen(page, lambda each: read_back(each, 2) > read_back(after, 2) + 3)
    assert failed(settled, 2) - failed(after, 2) <= 1
