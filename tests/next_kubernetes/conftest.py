"""The API server of Kubernetes 1.37 with its alpha Evictions, and etcd: no node, no controller."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.eks.api import Api
from local.kubernetes.pki import Authority, service_account_key
from local.processes import Processes
from local.tools import tool_path

HOST = "127.0.0.1"
ADMIN, GATE = "the-administrators-token", "the-gates-token"
GATE_GROUP = "stillwater:gate"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Server:
    """Where it is, who vouches for it, and its administrator."""

    endpoint: str
    ca_pem: str
    admin: Api


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("next")
    processes = Processes(directory / "pids", directory / "logs")
    try:
        yield _started(processes, directory)
    finally:
        processes.close()


def _started(processes: Processes, directory: Path) -> Server:
    clients, peers, port = (_free_port() for _ in range(3))
    authority = Authority.create(directory, "ca")
    serving = authority.issue(directory, "apiserver", [HOST])
    signing = service_account_key(directory)
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{ADMIN},admin,admin,"system:masters"\n{GATE},gate,gate,"{GATE_GROUP}"\n')
    etcd = f"http://{HOST}:{clients}"
    peer = f"http://{HOST}:{peers}"
    processes.start(
        "etcd",
        [
            str(tool_path("etcd")),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        ],
    )
    child = processes.start(
        "next-kube-apiserver",
        [
            str(tool_path("next-kube-apiserver")),
            f"--etcd-servers={etcd}",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            f"--service-account-key-file={signing}",
            f"--service-account-signing-key-file={signing}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=172.20.0.0/16",
            "--feature-gates=EvictionRequestAPI=true",
            "--runtime-config=lifecycle.k8s.io/v1alpha1=true",
        ],
    )
    endpoint = f"https://{HOST}:{port}"
    admin = Api(endpoint, ADMIN, directory / "ca.crt")
    processes.wait_until(child, admin.ready, within_seconds=START_SECONDS, what="/readyz answers")
    return Server(endpoint, (directory / "ca.crt").read_text(), admin)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])
