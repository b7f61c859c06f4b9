"""Runs the real Kubernetes control plane on the twin's own addresses.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each on its address of the twin,
with EKS's habits: Node and RBAC authorization, ServiceAccount admission on, tokens of AWS
identities verified by webhook. There is no kubelet here and no kube-proxy.
"""

from __future__ import annotations

import contextlib
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

from infra.eks.access import connect
from local import environment
from local.kubernetes import authenticator, egress
from local.kubernetes.client import Api, ApiError, write_kubeconfig
from local.kubernetes.pki import Authority, KeyPair, service_account_key
from local.place import Place
from local.processes import Processes

START_LIMIT_SECONDS = 60.0
SERVICE_CIDR = "172.20.0.0/16"  # EKS's own choice, and no twin's VPC
ISSUER = "https://kubernetes.default.svc"
# The twin's kubelet renews each node's Lease every NODE_LEASE_RENEWAL_SECONDS. Four missed
# renewals make a dead node: noticed within GRACE + PERIOD = 18 s of its end, while a machine too
# busy to schedule us for 12 s still keeps its nodes. Kubernetes' own default is 50 s.
NODE_LEASE_RENEWAL_SECONDS = 4
NODE_MONITOR_GRACE_SECONDS = 16
NODE_MONITOR_PERIOD_SECONDS = 2

ADMIN = "stillwater-admin"
# Who is known by a static token: user -> group. The two controllers hold exactly the rights that
# Kubernetes' own bootstrap policy gives their names, the authenticator what it is granted later.
STATIC_USERS = {
    ADMIN: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    authenticator.USER: "",
}


@dataclass(frozen=True, slots=True)
class _Files:
    authority: Authority
    serving: Mapping[str, KeyPair]
    service_account_key: Path
    tokens_file: Path
    kubeconfigs: Mapping[str, Path]
    webhook: Path
    egress: Path


def ca_file(place: Place) -> Path:
    """Return the authority that vouches for the twin's API server."""
    return place.path("pki", "apiserver-ca.crt")


def start(processes: Processes, place: Place, tools: Mapping[str, Path]) -> Api:
    """Start the four programs; return the administrator's API when the cluster takes work.

    `tools` maps each program's name to its binary. Leaves <place>/kubeconfig and
    <place>/pki/apiserver-ca.crt behind.
    """
    files, variables = _write_files(place), environment.base(place)
    etcd = processes.start("etcd", _etcd(place, tools["etcd"]), environment=variables)
    processes.wait_until(
        etcd,
        _healthy(place.url("etcd") + "/health"),
        within_seconds=START_LIMIT_SECONDS,
        what="/health answers",
    )
    server = processes.start(
        "kube-apiserver",
        _apiserver(place, tools["kube-apiserver"], files),
        environment=variables,
    )
    _, api = connect([files.kubeconfigs[ADMIN]])
    processes.wait_until(
        server, api.ready, within_seconds=START_LIMIT_SECONDS, what="/readyz answers ok"
    )
    managers = [
        processes.start(name, command(place, tools[name], files), environment=variables)
        for name, command in (
            ("kube-controller-manager", _controller_manager),
            ("kube-scheduler", _scheduler),
        )
    ]
    for child, service in zip(managers, ("controller-manager", "scheduler"), strict=True):
        processes.wait_until(
            child,
            _healthy(place.url(service, "https") + "/healthz", ca_file(place)),
            within_seconds=START_LIMIT_SECONDS,
            what="/healthz answers ok",
        )
    # Pods are refused until the controller manager has made the namespace's account.
    processes.wait_until(
        managers[0],
        lambda: _exists(api, "/api/v1/namespaces/default/serviceaccounts/default"),
        within_seconds=START_LIMIT_SECONDS,
        what="the default ServiceAccount exists",
    )
    return api


def _exists(api: Api, path: str) -> bool:
    with contextlib.suppress(ApiError):
        api.get(path)
        return True
    return False


def _healthy(url: str, ca: Path | None = None) -> Callable[[], bool]:
    context = ssl.create_default_context(cafile=ca)
    pool = urllib3.PoolManager(ssl_context=context, retries=False, timeout=2.0)

    def check() -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return pool.request("GET", url).status == 200
        return False

    return check


def _write_files(place: Place) -> _Files:
    pki = place.path("pki")
    authority = Authority.create(pki, "apiserver-ca")
    serving = {
        "apiserver": authority.issue(pki, "apiserver", _apiserver_hosts(place)),
        **{
            service: authority.issue(pki, service, [place.host(service)])
            for service in ("controller-manager", "scheduler", "authenticator")
        },
    }
    tokens = {user: secrets.token_hex(24) for user in STATIC_USERS}
    tokens_file = pki / "tokens.csv"
    tokens_file.touch(mode=0o600)
    tokens_file.write_text(
        "".join(f'{tokens[user]},{user},{user},"{STATIC_USERS[user]}"\n' for user in STATIC_USERS)
    )
    ours = {
        "server": place.url("apiserver", "https"),
        "certificate-authority": str(ca_file(place)),
    }
    kubeconfigs = {
        user: write_kubeconfig(
            place.path("kubeconfig") if user == ADMIN else pki / f"{user.rpartition(':')[2]}.yaml",
            user,
            ours,
            token=token,
        )
        for user, token in tokens.items()
    }
    return _Files(
        authority=authority,
        serving=serving,
        service_account_key=service_account_key(pki),
        tokens_file=tokens_file,
        kubeconfigs=kubeconfigs,
        webhook=authenticator.write_webhook_config(place, ca_file(place)),
        egress=egress.write_selection(place),
    )


def _advertised_address(place: Place) -> str:
    """Return the API server's address inside the VPC.

    Endpoints refuse loopback addresses, so the Service `kubernetes` names the address that
    Place.socket_address maps back to the one we listen on.
    """
    return "10." + place.host("apiserver").removeprefix("127.")


def _apiserver_hosts(place: Place) -> list[str]:
    return [
        place.host("apiserver"),
        _advertised_address(place),
        "172.20.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]


def _etcd(place: Place, binary: Path) -> list[str]:
    client, peer = place.url("etcd"), place.url("etcd-peer")
    return [
        str(binary),
        f"--data-dir={place.path('etcd')}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # A twin's state need not survive the machine, and fsync dominates a small cluster's time.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver(place: Place, binary: Path, files: _Files) -> list[str]:
    serving = files.serving["apiserver"]
    return [
        str(binary),
        f"--etcd-servers={place.url('etcd')}",
        f"--bind-address={place.host('apiserver')}",
        f"--secure-port={place.port('apiserver')}",
        f"--advertise-address={_advertised_address(place)}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--token-auth-file={files.tokens_file}",
        f"--authentication-token-webhook-config-file={files.webhook}",
        # A role mapped a moment ago must not stay refused for the default two minutes.
        "--authentication-token-webhook-cache-ttl=5s",
        "--authorization-mode=Node,RBAC",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--service-account-issuer={ISSUER}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--enable-admission-plugins=NodeRestriction",
        # There is no kube-proxy: webhooks behind Services are dialled at their endpoints.
        "--enable-aggregator-routing=true",
        f"--egress-selector-config-file={files.egress}",
        "--profiling=false",
    ]


def _controller_manager(place: Place, binary: Path, files: _Files) -> list[str]:
    return [
        *_client_of_the_api(place, binary, files, "controller-manager"),
        # Each controller acts under its own ServiceAccount, with its own bootstrap role.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.authority.files.certificate}",
        f"--node-monitor-grace-period={NODE_MONITOR_GRACE_SECONDS}s",
        f"--node-monitor-period={NODE_MONITOR_PERIOD_SECONDS}s",
        # One node a second instead of one in ten: a twin has a handful of nodes per zone.
        "--node-eviction-rate=1",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _scheduler(place: Place, binary: Path, files: _Files) -> list[str]:
    return _client_of_the_api(place, binary, files, "scheduler")


def _client_of_the_api(place: Place, binary: Path, files: _Files, name: str) -> list[str]:
    """Return what starts a program that is alone, and speaks to the API server as itself."""
    config, serving = files.kubeconfigs[f"system:kube-{name}"], files.serving[name]
    return [
        str(binary),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        f"--bind-address={place.host(name)}",
        f"--secure-port={place.port(name)}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--leader-elect=false",
        "--profiling=false",
    ]
