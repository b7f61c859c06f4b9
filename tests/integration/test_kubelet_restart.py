"""A kubelet that ends, orderly and not, and comes back.

It takes every pod of its twin along, Kafka's too, so this test has a twin of its own.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local import twin as twins
from local.processes import start_time_ticks
from tests.integration.nodes import (
    PODS,
    STUBBORN,
    World,
    make_subnets,
    pids_in,
    pod_body,
    python,
    ready_once,
    world_on,
)
from tests.integration.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.integration


@pytest.fixture
def world(tools: None, machines: None) -> Iterator[World]:
    with twins.running(lambda _: None) as own, world_on(own, make_subnets(own)["a"]) as made:
        yield made


@pytest.mark.long
def test_a_kubelet_that_comes_back_starts_its_pods_again_on_the_same_address(
    world: World, tmp_path: Path
) -> None:
    instance = world.launch("busy")
    until(lambda: world.ready_node(instance), "the node is ready")
    starts = tmp_path / "starts"
    body = pod_body("phoenix", "busy", *python(STUBBORN), str(starts))
    body["spec"]["containers"][0]["readinessProbe"] = ready_once(str(starts))
    world.api.post(PODS, body)
    before = until(lambda: world.ready_pod("phoenix"), "the pod is ready")
    (kubelet,) = [c for c in world.twin.processes.children if c.name == "kubelet" and c.alive]

    world.twin.processes.stop(kubelet, grace_seconds=PATIENCE_SECONDS)
    assert kubelet.popen.returncode == 0, "it was killed for being slow"
    assert start_time_ticks(pids_in(starts)[0]) is None
    crashed = world.twin.start_program("kubelet", "local.kubernetes.kubelet")
    until(lambda: len(pids_in(starts)) == 2, "it runs again")
    os.killpg(crashed.popen.pid, signal.SIGKILL)
    crashed.popen.wait()
    assert start_time_ticks(pids_in(starts)[1]), "a crash leaves the process to the next kubelet"
    world.twin.start_program("kubelet", "local.kubernetes.kubelet")
    until(lambda: len(pids_in(starts)) == 3, "it runs a third time")
    assert start_time_ticks(pids_in(starts)[1]) is None

    def restarted() -> dict[str, Any] | None:
        found = world.ready_pod("phoenix")
        return found if found and found["status"]["containerStatuses"][0]["restartCount"] else None

    after = until(restarted, "the pod is ready")
    assert after["status"]["podIP"] == before["status"]["podIP"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
