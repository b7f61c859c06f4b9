"""Brokers come and go under load: a stand-in for Cruise Control moves replicas, none is lost."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import urllib3
import yaml
from kafka import KafkaProducer
from rich.console import Console

from cli import grow
from cli.provision import Asked
from cli.rotate import Rotations, selection
from core.ground.errors import InvalidInput
from core.rotation.rebalance import Mode
from local import twin as twins
from local.commands.layers import TwinLayers
from local.demo import spec as demo_spec
from local.twin import Twin
from tests.integration.cluster import BROKERS, Cluster
from tests.integration.conftest import LOGS

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(2400)]
ADDED = frozenset({11, 21, 31})
BALLAST, BALLAST_MIB, MIB = "ballast", 60, 1024**2
RUN_SECONDS = 600.0


@pytest.fixture
def twin(tools: None, machines: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Twin]:
    with twins.running(lambda _sentence: None, keep_logs=LOGS / "growth") as running:
        monkeypatch.setenv("STILLWATER_TWIN", str(running.place.directory))
        yield running


def describe(twin: Twin, **broker: Any) -> None:
    """Describe the demo's cluster with Cruise Control, and with changes of its brokers' pool."""
    described = demo_spec.spec(twin.place)
    described["kafka"]["rebalance"] = {"throttle_mib_per_s": 1}
    described["pools"][1] |= broker
    demo_spec.path(twin.place).write_text(yaml.safe_dump(described, sort_keys=False))


def up(twin: Twin, wanted: Asked) -> None:
    """Bring up what `grow` asks for, as `stillwater up --yes` does outside of a twin."""
    engine = TwinLayers(twin, demo_spec.path(twin.place)).layers
    engine.layers, engine.scope = wanted.layers, wanted.scope
    engine.up()


def fill(cluster: Cluster) -> None:
    """Write as much as takes a while to copy at the throttle."""
    cluster.create_topic(BALLAST, num_partitions=12, replication_factor=3)
    servers = cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", **cluster.access()())
    for number in range(2 * BALLAST_MIB):
        producer.send(BALLAST, bytes(MIB // 2), partition=number % 12)
    producer.close()


def holders(cluster: Cluster) -> set[int]:
    view = cluster.kafka()
    assert view is not None
    return {broker for partition in view.partitions for broker in partition.replicas}


def end_empty_nodes(cluster: Cluster) -> None:
    """End the nodes that no broker is on any more, as a person does."""
    homes = {pod["spec"]["nodeName"] for pod in cluster.pods().values()}
    nodes = cluster.twin.api.get("/api/v1/nodes", labelSelector="stillwater.dev/pool=broker")
    for node in nodes["items"]:
        if node["metadata"]["name"] not in homes:
            cluster.twin.aws("autoscaling").terminate_instance_in_auto_scaling_group(
                InstanceId=node["spec"]["providerID"].rpartition("/")[2],
                ShouldDecrementDesiredCapacity=True,
            )


def is_as_before(cluster: Cluster) -> bool:
    """Say whether the first brokers alone serve everything, and each incident is over."""
    # The stand-in unregisters no broker that went: Kafka counts it as fenced.
    view = cluster.kafka()
    if view is None or view.brokers - view.fenced != BROKERS or cluster.ledger.open_incidents():
        return False
    return all(set(each.isr) == set(each.replicas) for each in view.partitions)


def is_told(twin: Twin) -> bool:
    page = urllib3.request("GET", f"{twin.place.url('slack')}/").data.decode()
    return "partitions move · harbour-grow-11-21-31" in page


def moved(twin: Twin, mode: Mode) -> threading.Thread:
    """Grow or shrink as a person who has agreed does, beside what the test asks meanwhile."""
    growth = grow.Growth.named("local", mode, ())
    assert set(growth.brokers) == ADDED
    run = partial(grow.run, growth, Console(), partial(up, twin), plan_only=False, yes=True)
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_brokers_are_added_balanced_and_removed_under_load_and_nothing_is_lost(twin: Twin) -> None:
    describe(twin)
    layers = TwinLayers(twin, demo_spec.path(twin.place))
    cluster = Cluster(twin, layers, layers.up(lambda _sentence: None))
    cluster.settle()
    fill(cluster)
    with cluster.under_load() as load:
        describe(twin, nodes_per_zone=2, spare_nodes_per_zone=0)
        growing = moved(twin, "add-brokers")
        rotations = Rotations.named("local")
        everything = selection(everything=True, node_ids=[], pools=[], zones=[])

        def refused() -> bool:
            try:
                plan = rotations.ask("plan", selection=everything)["plan"]
            except InvalidInput:
                return False  # A broker that starts runs on no node yet.
            said = "Cruise Control moves replicas for KafkaRebalance harbour-grow-11-21-31"
            return said in str(plan)

        cluster.until(refused, "a rotation waits for the rebalance", RUN_SECONDS)
        growing.join(RUN_SECONDS)
        assert not growing.is_alive()
        assert holders(cluster) == BROKERS | ADDED
        cluster.until(partial(is_told, twin), "Slack says the rebalance", RUN_SECONDS)
        describe(twin, nodes_per_zone=1, spare_nodes_per_zone=1)
        shrinking = moved(twin, "remove-brokers")
        shrinking.join(RUN_SECONDS)
        assert not shrinking.is_alive()
        assert holders(cluster) <= BROKERS
        cluster.until(lambda: set(cluster.pods()) & ADDED == set(), "the brokers are gone")
        end_empty_nodes(cluster)
        cluster.until(lambda: is_as_before(cluster), "three brokers are whole", RUN_SECONDS)
        summary = load.finish()
    assert summary["lost"] == 0
