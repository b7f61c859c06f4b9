"""Pods on nodes of the real control plane: what becomes of processes, and of their kubelet."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from local import twin as twins
from local.kubernetes.client import find
from local.processes import start_time_ticks
from local.twin import Twin
from tests.integration.nodes import (
    PODS,
    SPACE,
    STORAGE_CLASS,
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


@pytest.fixture(scope="module")
def world(twin: Twin, subnets: Mapping[str, str]) -> Iterator[World]:
    with world_on(twin, subnets["a"]) as made:
        yield made


@pytest.fixture(scope="module")
def busy(world: World) -> str:
    """Return the pool of one ready node for tests that need no more."""
    instance = world.launch("busy")
    until(lambda: world.ready_node(instance), "the node is ready")
    return "busy"


def test_a_process_that_ignores_sigterm_is_killed_when_its_grace_is_over(
    world: World, busy: str, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    body = pod_body("stubborn", busy, *python(STUBBORN), str(starts))
    body["spec"]["containers"][0]["readinessProbe"] = ready_once(str(starts))
    body["spec"]["terminationGracePeriodSeconds"] = 2
    world.api.post(PODS, body)
    until(lambda: world.ready_pod("stubborn"), "the pod is ready")
    world.api.delete(f"{PODS}/stubborn")
    # Its own grace, not the 30 s of a pod that asks for none.
    assert 2.0 <= world.stop_seconds("stubborn") < 30.0
    assert start_time_ticks(pids_in(starts)[0]) is None


def test_a_container_that_fails_its_liveness_is_restarted_and_says_so(
    world: World, busy: str, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    probe = {
        "exec": {"command": ["test", "-e", str(alive)]},
        "periodSeconds": 1,
        "timeoutSeconds": 5,
        "failureThreshold": 2,
    }
    world.api.post(PODS, pod_body("sick", busy, "sleep", "600", livenessProbe=probe))
    until(lambda: world.ready_pod("sick"), "the pod is ready")
    alive.unlink()

    def restarts() -> int:
        (container,) = world.api.get(f"{PODS}/sick")["status"]["containerStatuses"]
        return int(container["restartCount"])

    until(restarts, "the container was restarted")
    alive.touch()
    (container,) = until(lambda: world.ready_pod("sick"), "ready again")["status"][
        "containerStatuses"
    ]
    assert container["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGTERM
    # The journal hears of it after the API server does.
    (told, *_) = until(lambda: world.facts("container_restarted", "sick"), "it is told")
    assert "livenessProbe" in told["why"]


def test_a_pod_waits_for_a_config_map_and_then_sees_it(
    world: World, busy: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    body = pod_body("waiting", busy, "/bin/sh", "-c", f"echo $(GREETING) > {seen}; sleep 600")
    reference = {"name": "greetings", "key": "first"}
    body["spec"]["containers"][0]["env"] = [
        {"name": "GREETING", "valueFrom": {"configMapKeyRef": reference}}
    ]
    world.api.post(PODS, body)

    def reason() -> str:
        statuses = (world.pod("waiting") or {})["status"].get("containerStatuses") or [{}]
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason", ""))

    until(lambda: reason() == "CreateContainerConfigError", "the kubelet names the problem")
    world.api.post(
        f"{SPACE}/configmaps", {"metadata": {"name": "greetings"}, "data": {"first": "hello"}}
    )
    until(lambda: seen.exists() and seen.read_text() == "hello\n", "the container read it")


def test_a_volume_that_ec2_has_attached_elsewhere_is_refused_until_it_is_free(world: World) -> None:
    instance = world.launch("refuse")
    until(lambda: world.ready_node(instance), "the node is ready")
    stranger = world.launch("stranger")
    claims = f"{SPACE}/persistentvolumeclaims"
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "resources": {"requests": {"storage": "3Gi"}},
    }
    world.api.post(claims, {"metadata": {"name": "late"}, "spec": asked})
    body = pod_body("late", "refuse", "sleep", "600")
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "late"}}]
    world.api.post(PODS, body)
    first = until(lambda: world.ready_pod("late"), "the pod is ready")
    bound = world.api.get(f"{claims}/late")["spec"]["volumeName"]
    handle = world.api.get(f"/api/v1/persistentvolumes/{bound}")["spec"]["csi"]["volumeHandle"]
    world.api.delete(f"{PODS}/late")
    attachments = "/apis/storage.k8s.io/v1/volumeattachments"

    def attachment() -> dict[str, Any] | None:
        found = world.api.get(attachments)["items"]
        return next(
            (a for a in found if a["spec"]["source"]["persistentVolumeName"] == bound), None
        )

    until(lambda: attachment() is None, "the volume is detached")
    ec2 = world.aws("ec2")
    ec2.attach_volume(VolumeId=handle, InstanceId=stranger, Device="/dev/xvdz")
    world.api.post(PODS, body)
    error = until(
        lambda: ((attachment() or {}).get("status") or {}).get("attachError"), "a refusal"
    )
    assert "VolumeInUse" in error["message"]
    ec2.detach_volume(VolumeId=handle, InstanceId=stranger)
    again = until(lambda: world.ready_pod("late"), "the pod is ready once the volume is free")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]


def test_an_instance_that_is_terminated_takes_its_processes_and_its_node_with_it(
    world: World, tmp_path: Path
) -> None:
    instance = world.launch("doomed")
    name = until(lambda: world.ready_node(instance), "the node is ready")
    starts = tmp_path / "starts"
    body = pod_body("doomed", "doomed", *python(STUBBORN), str(starts))
    world.api.post(PODS, body)
    (pid,) = until(lambda: pids_in(starts), "the process runs")
    assert start_time_ticks(pid)
    world.aws("ec2").terminate_instances(InstanceIds=[instance])
    until(lambda: start_time_ticks(pid) is None, "the process is dead")
    until(lambda: find(world.api, f"/api/v1/nodes/{name}") is None, "the node is gone")


def test_an_instance_that_shuts_down_with_a_grace_lets_its_processes_finish(
    world: World, tmp_path: Path
) -> None:
    instance = world.launch("polite", shutdown_grace_seconds=20)
    until(lambda: world.ready_node(instance), "the node is ready")
    running, finished = tmp_path / "running", tmp_path / "finished"
    script = f"trap 'echo bye > {finished}; exit 0' TERM; touch {running}; sleep 600 & wait"
    world.api.post(PODS, pod_body("polite", "polite", "/bin/sh", "-c", script))
    until(running.exists, "the process runs")
    world.aws("ec2").terminate_instances(InstanceIds=[instance])
    until(finished.exists, "it had its say")


@pytest.fixture
def own_world(tools: None, machines: None) -> Iterator[World]:
    """A world on a twin of its own: a kubelet's end takes every pod of its twin along."""
    with twins.running(lambda _: None) as own, world_on(own, make_subnets(own)["a"]) as made:
        yield made


@pytest.mark.long
def test_a_kubelet_that_comes_back_starts_its_pods_again_on_the_same_address(
    own_world: World, tmp_path: Path
) -> None:
    world = own_world
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
