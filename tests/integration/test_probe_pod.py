"""`probe` in a description: a pod that Kafka lets in as a user of its own, and what it counts."""

import copy
import urllib.request
from collections.abc import Iterator

import pytest
import yaml

from core.ground import naming
from core.ground.naming import KAFKA
from core.settings.prometheus import FAILED, PORT, SECONDS
from local.commands.layers import TwinLayers
from local.demo import spec as demo_spec
from tests.integration.cluster import BROKERS, Cluster
from tests.integration.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.long]
NAME = naming.probe(demo_spec.CLUSTER)
ATTEMPTS_EACH = 5


@pytest.fixture
def probed(cluster: Cluster) -> Iterator[Cluster]:
    """The shared cluster with a probe in its description; without one again afterwards."""
    place = cluster.twin.place
    described = copy.deepcopy(demo_spec.spec(place)) | {
        "probe": {"image": "registry.example.com/stillwater-gate:0.1.0"}
    }
    path = place.path("probed.yaml")
    path.write_text(yaml.safe_dump(described))
    TwinLayers(cluster.twin, path).layers.up_one(KAFKA)
    yield cluster
    TwinLayers(cluster.twin, place.path("cluster.yaml")).layers.up_one(KAFKA)
    cluster.delete_topic(naming.PROBE_TOPIC)


def page(cluster: Cluster) -> dict[str, float]:
    """Return what the probe's pod tells Prometheus, nothing while it does not answer."""
    selected = f"app.kubernetes.io/name={NAME}"
    pods = cluster.twin.api.get("/api/v1/pods", labelSelector=selected)["items"]
    address = next((pod["status"].get("podIP") for pod in pods), None)
    if address is None:
        return {}
    host = cluster.twin.place.socket_address(address)
    try:
        with urllib.request.urlopen(f"http://{host}:{PORT}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_a_probe_of_the_description_reaches_every_broker_as_its_own_user(probed: Cluster) -> None:
    def read_back() -> dict[int, float]:
        found = page(probed)
        return {n: found.get(f'{SECONDS}_count{{broker="{n}",step="consume"}}', 0) for n in BROKERS}

    until(lambda: min(read_back().values()) >= ATTEMPTS_EACH, "every broker is probed")
    assert [name for name, value in page(probed).items() if name.startswith(FAILED) and value] == []
