"""Addresses of pods inside their node's subnet, as the VPC CNI hands them out."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Collection

# AWS keeps the first four addresses of a subnet and the last.
RESERVED_AT_START, RESERVED_AT_END = 4, 1
# 10.N.250.x and 10.N.251.x stand for the twin's own services and its load balancer (Place).
SERVICE_OCTETS = (250, 251)


class Addresses:
    """Hands out each subnet's addresses in turn, so that a freed one rests before it returns.

    Instances get theirs from EC2 in rising order, so pods start at the middle of the subnet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        self._held: dict[str, str] = {}

    def keep(self, uid: str, address: str) -> str:
        """Note that a pod already has an address, after a restart of the kubelet."""
        with self._lock:
            self._held[uid] = address
        return address

    def take(self, uid: str, cidr: str, others: Collection[str]) -> str:
        """Return a free address of the subnet for a pod; `others` are in use elsewhere."""
        network = ipaddress.IPv4Network(cidr)
        size = network.num_addresses
        with self._lock:
            taken = {*self._held.values(), *others}
            start = self._next.get(cidr, size // 2)
            for offset in range(size):
                position = (start + offset) % size
                if not RESERVED_AT_START <= position < size - RESERVED_AT_END:
                    continue
                address = network[position]
                if address.packed[2] in SERVICE_OCTETS or str(address) in taken:
                    continue
                self._next[cidr] = position + 1
                self._held[uid] = str(address)
                return str(address)
        raise ValueError(f"The subnet {cidr} has no free address left for a pod.")

    def give_back(self, uid: str) -> None:
        with self._lock:
            self._held.pop(uid, None)
