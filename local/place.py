"""Where one twin lives: its directory, its loopback addresses, and the lock that keeps two apart.

Every address in 127.0.0.0/8 is this machine on Linux, so a twin takes a number N and owns
127.N.0.0/16. Its VPC is 10.N.0.0/16, and a pod that reports 10.N.x.y listens on 127.N.x.y.
Two twins therefore share no address, and every service keeps the port its documentation names.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.errors import Conflict

PLACE_VARIABLE = "STILLWATER_TWIN"
FIRST_NUMBER, LAST_NUMBER = 11, 90

# Host part of each service's address below 127.N.250.0, and its port.
SERVICES = {
    "moto": (2, 4566),
    "etcd": (3, 2379),
    "etcd-peer": (3, 2380),
    "apiserver": (4, 6443),
    "scheduler": (5, 10259),
    "controller-manager": (6, 10257),
    "authenticator": (7, 21362),
    "sts-proxy": (8, 3128),
    "lambda": (9, 9001),
}


def cache_directory() -> Path:
    """Return the per-user cache: built tools, jars and the homes of running twins."""
    named = os.environ.get("STILLWATER_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stillwater"


@dataclass(frozen=True)
class Place:
    """One twin's number and directory; everything it writes or listens on follows from them."""

    number: int
    directory: Path

    @property
    def vpc_cidr(self) -> str:
        return f"10.{self.number}.0.0/16"

    @property
    def nlb_host(self) -> str:
        """The address clients of the load balancer dial."""
        return f"127.{self.number}.251.1"

    def host(self, service: str) -> str:
        return f"127.{self.number}.250.{SERVICES[service][0]}"

    def port(self, service: str) -> int:
        return SERVICES[service][1]

    def url(self, service: str, scheme: str = "http") -> str:
        return f"{scheme}://{self.host(service)}:{self.port(service)}"

    def socket_address(self, pod_ip: str) -> str:
        """Map an address inside the VPC to the loopback address its process listens on.

        Kubernetes refuses loopback addresses in Endpoints, so status carries 10.N.x.y.
        """
        prefix = f"10.{self.number}."
        if not pod_ip.startswith(prefix):
            raise ValueError(f"{pod_ip} is not an address of this twin's VPC {self.vpc_cidr}")
        return "127." + pod_ip.removeprefix("10.")

    def path(self, *parts: str) -> Path:
        return self.directory.joinpath(*parts)

    def save(self) -> None:
        self.path("place.json").write_text(
            json.dumps({"number": self.number, "directory": str(self.directory)})
        )

    @staticmethod
    def load(directory: Path | None = None) -> Place:
        """Read the place a child process was started in (STILLWATER_TWIN names its directory)."""
        where = directory or Path(os.environ[PLACE_VARIABLE])
        stored = json.loads((where / "place.json").read_text())
        return Place(int(stored["number"]), Path(stored["directory"]))


@contextmanager
def claimed(cache: Path | None = None) -> Iterator[Place]:
    """Claim a free number for as long as this process lives.

    The lock is the kernel's, so a crashed twin frees its number by dying. What it left in its
    directory is cleared on the next claim.
    """
    homes = (cache or cache_directory()) / "twins"
    homes.mkdir(parents=True, exist_ok=True)
    for number in range(FIRST_NUMBER, LAST_NUMBER + 1):
        handle = os.open(homes / f"{number}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        try:
            yield Place(number, homes / str(number))
        finally:
            os.close(handle)
        return
    raise Conflict(
        f"All {LAST_NUMBER - FIRST_NUMBER + 1} twin numbers are taken on this machine; "
        f"stop one of the running demos (their homes are in {homes}) and try again."
    )
