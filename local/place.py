"""Finds where one twin lives: directory, loopback addresses, and the claim that keeps two apart.

Every address in 127.0.0.0/8 is this machine on Linux, so a twin takes a number N and owns
127.N.0.0/16. Its VPC is 10.N.0.0/16, and a pod that reports 10.N.x.y listens on 127.N.x.y.
Two twins therefore share no address, and every service keeps the port its documentation names.

Most pods listen on the loopback address that stands for theirs. A program that always listens on
every address of the machine gets a free port instead of its own, noted here by the kubelet and
read by whoever dials the pod.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from core.ground.errors import Conflict, StillwaterError

PLACE_VARIABLE = "STILLWATER_TWIN"
FIRST_NUMBER, LAST_NUMBER = 11, 90
# A name in the kernel's abstract socket namespace, which reaches as far as the loopback addresses
# do: every user of this machine, but not the inside of a container.
CLAIM = "stillwater-twin-"

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
    "slack": (10, 8065),
    "kafka-health": (11, 8080),
}


def cache_directory() -> Path:
    """Return the per-user cache: built tools, jars and the homes of running twins."""
    named = os.environ.get("STILLWATER_CACHE")
    if named:
        return Path(named).resolve()
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home.resolve() / "stillwater"


def make_cache() -> Path:
    """Make the per-user cache; raise StillwaterError where nothing can be written to it."""
    try:
        cache = cache_directory()
        cache.mkdir(parents=True, exist_ok=True)
        # Not os.access: it knows nothing of a read-only file system, nor of a full one.
        (cache / ".writable").write_text("yes")
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StillwaterError(
            f"The cache of built tools cannot be written ({reason}): set STILLWATER_CACHE to a "
            f"directory of yours with 10 GB to spare."
        ) from None
    return cache


@dataclass(frozen=True)
class Place:
    """One twin's number and directory; everything it writes or listens on follows from them."""

    number: int
    directory: Path
    # What keeps the number taken for as long as anybody holds it: open files of the claimer.
    held: tuple[int, ...] = field(default=(), compare=False, repr=False)

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
def claim_place(cache: Path | None = None) -> Iterator[Place]:
    """Claim a free number for as long as this process lives, or one that it hands `held` to.

    Both locks are the kernel's, so a crashed twin frees its number by dying. What it left in its
    directory is cleared on the next claim.
    """
    homes = (cache or cache_directory()) / "twins"
    homes.mkdir(parents=True, exist_ok=True)
    for number in range(FIRST_NUMBER, LAST_NUMBER + 1):
        with ExitStack() as held:
            try:
                locks = (_hold_addresses(held, number), _hold_directory(held, homes, number))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EWOULDBLOCK):
                    raise
                continue
            yield Place(number, homes / str(number), locks)
            return
    raise Conflict(
        f"All {LAST_NUMBER - FIRST_NUMBER + 1} twin numbers are taken on this machine; "
        f"stop one of the running demos (their homes are in {homes}) and try again."
    )


def _hold_addresses(held: ExitStack, number: int) -> int:
    """Keep the number's addresses from other users and other caches."""
    name = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    name.bind(f"\0{CLAIM}{number}")
    return name.fileno()


def _hold_directory(held: ExitStack, homes: Path, number: int) -> int:
    """Keep the number's directory from a container that shares the cache but not the addresses."""
    handle = os.open(homes / f"{number}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    held.callback(os.close, handle)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def taken_places(cache: Path | None = None) -> list[Place]:
    """Return the places of this user's twins that somebody holds at this moment."""
    homes = (cache or cache_directory()) / "twins"
    found = []
    for stored in sorted(homes.glob("*/place.json")):
        # A twin that ends meanwhile takes its directory away.
        with suppress(OSError, ValueError, KeyError):
            place = Place.load(stored.parent)
            if _is_held(homes / f"{place.number}.lock"):
                found.append(place)
    return found


def _is_held(lock: Path) -> bool:
    handle = os.open(lock, os.O_RDONLY)
    try:
        # Shared, so that two who ask do not take each other for a twin.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def check_addresses(place: Place) -> None:
    """Raise Conflict when a program that is no twin listens where this one's services go.

    A listener on every address of the machine (0.0.0.0:6443) also has this twin's.
    """
    for service in SERVICES:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((place.host(service), place.port(service)))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise Conflict(
                    f"The twin's {service} needs {place.host(service)}:{place.port(service)} and "
                    f"another program listens there, perhaps on every address of this machine. "
                    f"Find it with `ss -ltnp 'sport = :{place.port(service)}'`, stop it, and try "
                    f"again."
                ) from None


MOVED_PORTS = "moved-ports"
LOOPBACK = "127.0.0.1"


def note_moved_ports(place: Place, pod_ip: str, moved: Mapping[int, int]) -> None:
    """Note where a pod's ports went; a pod that is started again overwrites them."""
    folder = place.path(MOVED_PORTS)
    folder.mkdir(exist_ok=True)
    for port, actual in moved.items():
        fresh = folder / f".{pod_ip}:{port}"
        fresh.write_text(str(actual))
        fresh.replace(folder / f"{pod_ip}:{port}")


def dial(place: Place, address: str, port: int) -> tuple[str, int] | None:
    """Return where this machine listens for an address of the VPC, or None for any other."""
    try:
        return LOOPBACK, int(place.path(MOVED_PORTS, f"{address}:{port}").read_text())
    except FileNotFoundError:
        pass
    try:
        return place.socket_address(address), port
    except ValueError:
        return None
