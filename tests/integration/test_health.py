"""λ health and `stillwater health` on the shared cluster: whole, and with a broker frozen."""

import io
import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli import health as command
from core.health.verdict import PartKind
from local.kubernetes.strimzi_roller import is_ready
from local.place import PLACE_VARIABLE
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster
from tests.integration.health_function import (
    BOUND_SECONDS,
    COLD_SECONDS,
    invoke,
    name_of,
    parts,
    show,
)
from tests.integration.retold import retell

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
FROZEN = max(BROKERS)
TOPIC = "lagoon"


def run_command(cluster: Cluster, *, as_json: bool = False) -> tuple[int, str]:
    written = io.StringIO()
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv(PLACE_VARIABLE, str(cluster.twin.place.directory))
        console = Console(file=written, width=160)
        code = command.show("local", console, watch=False, as_json=as_json)
    return code, written.getvalue()


@contextmanager
def frozen(cluster: Cluster, node_id: int) -> Iterator[None]:
    """Freeze a broker's process for the block: its sockets accept, and nobody answers."""
    pid = pid_of(cluster, node_id)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def pid_of(cluster: Cluster, node_id: int) -> int:
    """Return the Java process of a Kafka node's pod, by the configuration it was started with."""
    uid = cluster.pods()[node_id]["metadata"]["uid"]
    config = str(cluster.twin.place.path("pods", uid)).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended since
                continue
            if b"kafka.Kafka" in arguments and arguments[-2].startswith(config):
                found.append(int(entry.name))
    (pid,) = found
    return pid


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[str]:
    """A topic on every broker, so that one that is away is missed."""
    cluster.create_topic(TOPIC, num_partitions=3, replication_factor=3)
    cluster.until(
        lambda: (view := cluster.kafka()) and any(p.topic == TOPIC for p in view.partitions),
        "the topic is there",
        120,
    )
    cluster.settle()
    yield TOPIC
    cluster.delete_topic(TOPIC)


def test_a_whole_cluster_answers_200_with_every_part(cluster: Cluster) -> None:
    status, body = cluster.until(
        lambda: (found := invoke(cluster))[0] == 200 and found, "the cluster is healthy", 120
    )
    show(status, body)
    assert (body["status"], body["missing"]) == ("healthy", [])
    assert set(parts(body, PartKind.BROKER)) == {str(n) for n in BROKERS}
    assert set(parts(body, PartKind.CONTROLLER)) == {str(n) for n in CONTROLLERS}
    assert len(parts(body, PartKind.POD)) == len(BROKERS | CONTROLLERS)
    # Each node's own exporter was read, through the API server.
    assert len(parts(body, PartKind.METADATA)) == len(BROKERS | CONTROLLERS)
    assert {part["status"] for part in body["parts"]} == {"healthy"}
    assert body["seconds"] < BOUND_SECONDS

    code, page = run_command(cluster)
    assert code == 0, page
    assert "3 of 3 healthy" in page
    code, line = run_command(cluster, as_json=True)
    assert (code, json.loads(line)["status"]) == (0, "healthy")


@pytest.mark.long
def test_a_frozen_broker_costs_the_answer_no_time_and_the_cluster_its_health(
    cluster: Cluster, topic: str
) -> None:
    bounds = []

    def examined() -> tuple[int, Mapping[str, Any]]:
        started = time.monotonic()
        found = invoke(cluster)
        bounds.append(time.monotonic() - started)
        return found

    with frozen(cluster, FROZEN):
        # Not fenced yet: whoever asks the frozen one waits, and asks the next meanwhile.
        status, body = examined()
        show(status, body)
        status, body = cluster.until(
            lambda: (
                (found := examined())[0] == 503
                and parts(found[1], PartKind.BROKER)[str(FROZEN)]["status"] == "unhealthy"
                and found
            ),
            "the broker is fenced, and said to be",
            120,
        )
        show(status, body)
        assert body["status"] == "degraded"
        assert "fenced" in parts(body, PartKind.BROKER)[str(FROZEN)]["reason"]
        assert parts(body, PartKind.QUORUM)["quorum"]["status"] == "healthy"
        behind = parts(body, PartKind.PARTITIONS)["partitions"]
        assert behind["status"] == "degraded", behind
        code, page = run_command(cluster)
        assert code == 1, page
        assert f"Broker {FROZEN} is fenced" in page
        # The kubelet's probes ask by the strict rules: the load balancer sends it nobody more.
        cluster.until(lambda: not is_ready(cluster.pods()[FROZEN]), "its pod is not Ready", 120)
    assert max(bounds) < BOUND_SECONDS + COLD_SECONDS
    cluster.until(lambda: is_ready(cluster.pods()[FROZEN]), "its pod is Ready again", 120)
    cluster.settle()


@pytest.fixture
def mute() -> Iterator[str]:
    """An address that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        yield f"{host}:{port}"


def test_the_answer_comes_in_time_though_nobody_else_gives_one(cluster: Cluster, mute: str) -> None:
    with retell(
        cluster,
        name_of(cluster),
        variables={"AWS_ENDPOINT_URL_DYNAMODB": f"http://{mute}"},
        kafka_bootstrap=[mute, mute],
        # The bound follows the probes' time: a short one makes a quick test.
        connect_probe_seconds=3,
    ):
        started = time.monotonic()
        status, body = invoke(cluster)
        seconds = time.monotonic() - started
    show(status, body)
    assert (status, body["status"]) == (500, "unknown")
    assert {part["status"] for part in body["parts"]} == {"unknown"}
    # Whom else to ask stands in the ledger, and this function has only just started.
    assert body["missing"] == ["the ledger"]
    assert body["seconds"] < 3 + 2 + 5
    assert seconds < 3 + 2 + COLD_SECONDS
