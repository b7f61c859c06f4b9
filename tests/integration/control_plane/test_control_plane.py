"""The control plane as a whole: what it listens on, what it refuses, what it leaves behind.

A second control plane is started where two are the point, and where one is stopped or cannot start.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from core.ground.errors import StillwaterError
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError, administrator
from local.place import Place, claim_place
from local.processes import Processes, start_time_ticks

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration


def _listening(pid: int) -> set[str]:
    """Return the addresses a process listens on."""
    shown = subprocess.run(
        ["ss", "-H", "-l", "-t", "-n", "-p"], capture_output=True, text=True, check=True
    )
    lines = [line for line in shown.stdout.splitlines() if f"pid={pid}," in line]
    return {line.split()[3].rpartition(":")[0] for line in lines}


def test_every_program_listens_on_an_address_of_its_twin_alone(plane: Plane) -> None:
    prefix = f"127.{plane.place.number}."
    for child in plane.processes.children:
        assert all(address.startswith(prefix) for address in _listening(child.popen.pid)), child


def test_two_twins_run_side_by_side_and_a_stopped_one_leaves_no_process(
    plane: Plane, programs: Mapping[str, Path], tmp_path: Path
) -> None:
    with claim_place() as claim:
        place = Place(claim.number, tmp_path)
        place.save()
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            second = control_plane.start(processes, place, programs)
            pids = [child.popen.pid for child in processes.children]
            assert len(pids) == 4
            second.apply(
                "/api/v1/namespaces/only-here",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-here"}},
                field_manager="test",
            )
            names = {
                item["metadata"]["name"] for item in plane.api.get("/api/v1/namespaces")["items"]
            }
            assert "only-here" not in names
        finally:
            processes.close()
    assert [start_time_ticks(pid) for pid in pids] == [None] * 4


def test_a_program_that_cannot_start_is_named_with_its_last_words(
    programs: Mapping[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "etcd"
    broken.write_text("#!/bin/sh\necho no room >&2\nexit 3\n")
    broken.chmod(0o755)
    with claim_place() as claim:
        place = Place(claim.number, tmp_path / "place")
        place.path("pids").mkdir(parents=True)
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            with pytest.raises(StillwaterError, match=r"etcd ended with exit code 3.*\nno room"):
                control_plane.start(processes, place, {**programs, "etcd": broken})
        finally:
            processes.close()


def test_a_stranger_is_refused_and_the_api_server_is_verified(plane: Plane, tmp_path: Path) -> None:
    server = plane.place.url("apiserver", "https")
    with pytest.raises(ApiError) as refusal:
        Api(server, "guessed", control_plane.ca_file(plane.place)).get("/api/v1/nodes")
    assert refusal.value.status == 401
    other = plane.place.path("pki", "sts-ca.crt")
    with pytest.raises(ApiError, match="certificate verify failed"):
        Api(server, "guessed", other).get("/api/v1/nodes")


def test_the_kubeconfig_is_the_administrators_and_private(plane: Plane) -> None:
    path = plane.place.path("kubeconfig")
    assert path.stat().st_mode & 0o077 == 0
    assert yaml.safe_load(path.read_text())["current-context"] == "twin"
    assert administrator(plane.place).get("/api/v1/namespaces/default")["kind"] == "Namespace"


def test_a_pod_gets_its_service_account_token_and_the_clusters_authority(plane: Plane) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks-for-a-token"},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    made = plane.api.post("/api/v1/namespaces/default/pods", pod)
    try:
        assert any(v["name"].startswith("kube-api-access-") for v in made["spec"]["volumes"])
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": 600,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": made["metadata"]["name"],
                    "uid": made["metadata"]["uid"],
                },
            },
        }
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        token = plane.api.post(path, request)["status"]["token"]
        bundle = plane.api.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
        server = plane.place.url("apiserver", "https")
        with pytest.raises(ApiError, match="system:serviceaccount:default:default"):
            Api(server, token, ca_pem=bundle["data"]["ca.crt"]).get("/api/v1/nodes")
    finally:
        plane.api.delete(
            "/api/v1/namespaces/default/pods/asks-for-a-token", {"gracePeriodSeconds": 0}
        )


def test_the_api_server_is_reachable_inside_the_vpc_under_its_mapped_address(plane: Plane) -> None:
    subsets = plane.api.get("/api/v1/namespaces/default/endpoints/kubernetes")["subsets"]
    address = subsets[0]["addresses"][0]["ip"]
    assert plane.place.socket_address(address) == plane.place.host("apiserver")


@pytest.mark.long
def test_a_node_that_stops_renewing_its_lease_is_noticed_within_the_promised_time(
    plane: Plane,
) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "dies"},
        "status": {"conditions": [ready]},
    }
    plane.api.post("/api/v1/nodes", node)
    started = time.monotonic()
    limit = control_plane.NODE_MONITOR_GRACE_SECONDS + control_plane.NODE_MONITOR_PERIOD_SECONDS
    try:
        status = "True"
        # Twice the limit tells a slow machine from a wrong setting: the default is 50 s.
        while status == "True" and time.monotonic() - started < 2 * limit:
            time.sleep(0.5)
            conditions = plane.api.get("/api/v1/nodes/dies")["status"]["conditions"]
            status = next(c["status"] for c in conditions if c["type"] == "Ready")
        assert status == "Unknown"
        assert time.monotonic() - started >= control_plane.NODE_MONITOR_GRACE_SECONDS / 2
    finally:
        plane.api.delete("/api/v1/nodes/dies")
