"""The control plane as a whole: what it listens on, what it refuses, when it misses a node."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError, administrator

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
