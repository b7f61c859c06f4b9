"""λ health and `stillwater health` on the shared cluster: whole, and with a broker frozen."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli import health as command
from core.health.cluster import Kind
from local.place import PLACE_VARIABLE
from tests.integration.cluster import BROKERS, CONTROLLERS, Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
FROZEN = max(BROKERS)
# An examination's own bound, and what a cold start on a busy machine adds to it.
BOUND_SECONDS = 14.0
COLD_SECONDS = 20.0


def invoke(cluster: Cluster) -> tuple[int, Mapping[str, Any]]:
    """Return λ health's status code and body, as any caller in the account gets them."""
    name = cluster.outputs["functions"]["health"]
    answer = cluster.twin.aws("lambda").invoke(FunctionName=name)
    payload = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, payload
    return payload["statusCode"], json.loads(payload["body"])


def parts(body: Mapping[str, Any], kind: Kind) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in body["parts"] if part["kind"] == kind}


def show(body: Mapping[str, Any], status_code: int) -> None:
    """Print the verdicts as the command does; pytest shows them with -rP, or where a test fails."""
    Console(width=160).print(command.page(command.Examined(status_code, body)))


def run_command(cluster: Cluster, *, as_json: bool = False) -> tuple[int, str]:
    written = io.StringIO()
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv(PLACE_VARIABLE, str(cluster.twin.place.directory))
        console = Console(file=written, width=160)
        code = command.shown("local", console, watch=False, as_json=as_json)
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


def test_a_whole_cluster_answers_200_with_every_part(cluster: Cluster) -> None:
    status, body = cluster.until(
        lambda: (found := invoke(cluster))[0] == 200 and found, "the cluster is healthy", 120
    )
    show(body, status)
    assert (body["status"], body["missing"]) == ("healthy", [])
    assert set(parts(body, Kind.BROKER)) == {str(n) for n in BROKERS}
    assert set(parts(body, Kind.CONTROLLER)) == {str(n) for n in CONTROLLERS}
    assert len(parts(body, Kind.POD)) == len(BROKERS | CONTROLLERS)
    assert {part["status"] for part in body["parts"]} == {"healthy"}
    assert body["seconds"] < BOUND_SECONDS

    code, page = run_command(cluster)
    assert code == 0, page
    assert "3 of 3 healthy" in page
    code, line = run_command(cluster, as_json=True)
    assert (code, json.loads(line)["status"]) == (0, "healthy")


def test_a_frozen_broker_costs_the_answer_no_time_and_the_cluster_its_health(
    cluster: Cluster,
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
        show(body, status)
        status, body = cluster.until(
            lambda: (
                (found := examined())[0] == 503
                and parts(found[1], Kind.BROKER)[str(FROZEN)]["status"] == "unhealthy"
                and found
            ),
            "the broker is fenced, and said to be",
            120,
        )
        show(body, status)
        assert body["status"] == "degraded"
        assert "fenced" in parts(body, Kind.BROKER)[str(FROZEN)]["reason"]
        assert parts(body, Kind.QUORUM)["quorum"]["status"] == "healthy"
        code, page = run_command(cluster)
        assert code == 1, page
        assert f"Broker {FROZEN} is fenced" in page
    assert max(bounds) < BOUND_SECONDS + COLD_SECONDS
    cluster.settle()
