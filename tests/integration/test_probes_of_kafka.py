"""Kafka's pods are probed by the strict rules, by an agent that costs next to nothing; metrics are
reached through the API server, by those who may."""

import json
import os
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import urllib3

from core.health.kafka import snapshot, vetoes
from core.health.node import Metric
from handlers.adapters.pods import PodExporters
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster

pytestmark = pytest.mark.integration
GROUP = "stillwater:handlers"
NAMESPACE = "kafka"  # the ClusterSpec's default
MEASURED_SECONDS = 10.0


def told(cluster: Cluster) -> dict[str, Any]:
    url = cluster.twin.place.url("kafka-health")
    with urllib.request.urlopen(f"{url}/v1/nodes", timeout=10) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found


def all_healthy(cluster: Cluster) -> dict[str, Any] | None:
    found = told(cluster)
    whole = len(found) == len(BROKERS | CONTROLLERS)
    return found if whole and all(v["strict"]["ready"] for v in found.values()) else None


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_every_node_is_well_by_every_rule_set_and_probed_by_the_strict(cluster: Cluster) -> None:
    found = cluster.until(lambda: all_healthy(cluster), "all of Kafka is ready by the strict rules")
    assert all(v[rules]["alive"] for v in found.values() for rules in v)
    for pod in cluster.pods().values():
        (container,) = pod["spec"]["containers"]
        for probe, question in (("readinessProbe", "ready"), ("livenessProbe", "alive")):
            asked = container[probe]["httpGet"]["path"]
            assert asked == f"/v1/{question}/{pod['metadata']['name']}?rules=strict"


def test_no_probe_restarted_a_node_whatever_else_was_done_to_it(cluster: Cluster) -> None:
    # Another test freezes it, on a slow machine for longer than a probe is patient.
    frozen = max(BROKERS)
    ours = {pod["metadata"]["name"] for node_id, pod in cluster.pods().items() if node_id != frozen}
    for fact in cluster.facts("container_restarted"):
        assert fact["pod"] not in ours or "livenessProbe failed" not in fact["why"], fact


def test_looking_at_all_of_kafka_takes_little_of_a_core(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.until(lambda: all_healthy(cluster), "all of Kafka is ready by the strict rules")
    (agent,) = [c for c in cluster.twin.processes.children if c.name == "health"]
    before = cpu_seconds(agent.popen.pid)
    time.sleep(MEASURED_SECONDS)
    share = (cpu_seconds(agent.popen.pid) - before) / MEASURED_SECONDS
    with capsys.disabled():
        print(f"\nthe health agent takes {share:.1%} of a core for 6 nodes")  # noqa: T201
    assert share < 0.5


class AsHandlers:
    """The API server asked as a function's group would be: RBAC decides."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = cluster.twin.api

    def text(self, path: str, timeout_seconds: float) -> str:
        headers = self._api._headers() | {"Impersonate-User": "tick", "Impersonate-Group": GROUP}
        answer: urllib3.BaseHTTPResponse = self._api._pool.request(
            "GET", self._api.server + path, headers=headers, timeout=timeout_seconds
        )
        assert answer.status == 200, answer.data
        return answer.data.decode()


def test_the_functions_read_the_metrics_of_every_kafka_pod(cluster: Cluster) -> None:
    cluster.until(lambda: all_healthy(cluster), "all of Kafka is ready by the strict rules")
    found = PodExporters(AsHandlers(cluster), NAMESPACE).scrape(told(cluster))  # type: ignore[arg-type]
    assert set(found.metrics) == BROKERS | CONTROLLERS
    assert all(found.metrics[i].count(Metric.BROKER_STATE) == 3 for i in BROKERS)
    assert {found.metrics[i].raft_state for i in CONTROLLERS} == {"leader", "follower"}
    taken = snapshot(time.time(), found.metrics, found.silent)
    assert (dict(taken.silent), vetoes(taken)) == ({}, ())
