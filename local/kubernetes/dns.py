"""The names of pods and Services, as CoreDNS would answer them: a hosts file for the twin's JVMs.

`-Djdk.net.hosts.file` names it. Pods listen on loopback addresses, so that is where names lead, and
a Service's name leads straight to its pods: there is no kube-proxy, and ports are left as they are.
Python has no such option, so `install` replaces the one function that every client ends in, in its
own process alone.
"""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from local.kubernetes.client import ENDED_PHASES, Object, has_condition
from local.place import Place

FILE_NAME = "hosts"
CLUSTER_DOMAIN = "svc.cluster.local"
# Changes within this time are written together.
SETTLE_SECONDS = 0.05


def _forms(name: str, namespace: str) -> list[str]:
    """Return a name as it is written in full and as a resolver's search list allows."""
    return [
        f"{name}.{namespace}.{CLUSTER_DOMAIN}",
        f"{name}.{namespace}.svc",
        f"{name}.{namespace}",
    ]


def _is_selected(service: Object, pod: Object) -> bool:
    """Say whether a Service leads to a pod: by its labels, ready or published before it is."""
    selector = service["spec"].get("selector")
    labels = pod["metadata"].get("labels") or {}
    if not selector or service["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    early = service["spec"].get("publishNotReadyAddresses", False)
    return all(labels.get(k) == v for k, v in selector.items()) and (early or has_condition(pod))


def names(pods: Iterable[Object], services: Iterable[Object]) -> list[tuple[str, str]]:
    """Return (pod address, name) for every name, in a stable order.

    A pod's own name is published before it is ready: Kafka's voters need each other to become so.
    """
    rows: set[tuple[str, str]] = set()
    living = [
        pod
        for pod in pods
        if pod["status"].get("podIP") and pod["status"].get("phase") not in ENDED_PHASES
    ]
    services = list(services)
    for pod in living:
        metadata, spec, address = pod["metadata"], pod["spec"], pod["status"]["podIP"]
        host = spec.get("hostname") or metadata["name"]
        if spec.get("subdomain"):
            own = _forms(f"{host}.{spec['subdomain']}", metadata["namespace"])
            rows.update((address, name) for name in own)
        for service in services:
            if _is_selected(service, pod):
                name = service["metadata"]["name"]
                rows.update((address, form) for form in _forms(name, metadata["namespace"]))
                if service["spec"].get("clusterIP") == "None":
                    own = _forms(f"{host}.{name}", metadata["namespace"])
                    rows.update((address, form) for form in own)
    return sorted(rows, key=lambda row: (row[1], row[0]))


def render(rows: Iterable[tuple[str, str]], place: Place) -> str:
    """Return the hosts file: this machine's own names, then the cluster's."""
    own = sorted({"localhost", socket.gethostname()})
    lines = [f"127.0.0.1 {' '.join(own)}"]
    prefix = f"10.{place.number}."
    lines += [
        f"{place.socket_address(address)} {name}"
        for address, name in rows
        if address.startswith(prefix)
    ]
    return "\n".join(lines) + "\n"


class HostsFile:
    """Keeps <place>/hosts current in a thread of its own; a reader sees the old file or the new."""

    def __init__(
        self,
        place: Place,
        pods: Callable[[], Iterable[Object]],
        services: Callable[[], Iterable[Object]],
    ) -> None:
        self.path: Path = place.path(FILE_NAME)
        self._place, self._pods, self._services = place, pods, services
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._written = ""

    def start(self) -> None:
        self.write()
        threading.Thread(target=self._run, name="hosts file", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._changed.set()

    def changed(self) -> None:
        """A pod or Service may have changed."""
        self._changed.set()

    def write(self) -> None:
        text = render(names(self._pods(), self._services()), self._place)
        if text != self._written:
            fresh = self.path.with_name(f".{self.path.name}.fresh")
            fresh.write_text(text)
            fresh.replace(self.path)
            self._written = text

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._changed.wait()
            self._stopped.wait(SETTLE_SECONDS)
            self._changed.clear()
            self.write()


def address_of(hosts: str, name: str) -> str | None:
    """Return the first address that a hosts file gives a name."""
    for line in hosts.splitlines():
        address, _, names = line.partition(" ")
        if name in names.split():
            return address
    return None


def install(hosts: Path) -> None:
    """Resolve through `hosts` from now on; the file is read anew for every name."""
    system = socket.getaddrinfo

    @functools.wraps(system)
    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        known = None
        if isinstance(host, str) and hosts.exists():
            known = address_of(hosts.read_text(), host)
        return system(known or host, *arguments, **options)

    socket.getaddrinfo = look_up
