"""Lets a program of the twin resolve the cluster's names as a pod would: from the hosts file first.

The JVMs are told of that file by an option of theirs; Python has none, so the one function every
client ends in is replaced, in this process alone.
"""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any


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
