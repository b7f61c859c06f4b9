"""Finds where a pod's port really is, for programs that cannot be told where to listen.

Most pods listen on the loopback address that stands for theirs. A program that always listens on
every address of the machine gets a free port instead of its own, noted here by the kubelet and
read by whoever dials the pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from local.place import Place

FOLDER = "moved-ports"
LOOPBACK = "127.0.0.1"


def note(place: Place, pod_ip: str, moved: Mapping[int, int]) -> None:
    """Note where a pod's ports went; a pod that is started again overwrites them."""
    folder = place.path(FOLDER)
    folder.mkdir(exist_ok=True)
    for port, actual in moved.items():
        fresh = folder / f".{pod_ip}:{port}"
        fresh.write_text(str(actual))
        fresh.replace(folder / f"{pod_ip}:{port}")


def dial(place: Place, address: str, port: int) -> tuple[str, int] | None:
    """Return where this machine listens for an address of the VPC, or None for any other."""
    try:
        return LOOPBACK, int(place.path(FOLDER, f"{address}:{port}").read_text())
    except FileNotFoundError:
        pass
    try:
        return place.socket_address(address), port
    except ValueError:
        return None
