"""Reads blocks of addresses as a program writes them, and says which lie within which."""

from __future__ import annotations

import ipaddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network(written: object, *, strict: bool = False) -> Network | None:
    """Return a block as a network; None: it is none, or has host bits where none may be.

    >>> network("10.0.0.7/24"), network("10.0.0.7/24", strict=True), network("mars")
    (IPv4Network('10.0.0.0/24'), None, None)
    """
    try:
        return ipaddress.ip_network(str(written), strict=strict)
    except ValueError:
        return None


def is_within(block: Network | None, *around: object) -> bool:
    """Say whether a block lies in one of others; one that is none lies nowhere."""
    return any(_is_subnet(block, network(each)) for each in around)


def _is_subnet(block: Network | None, around: Network | None) -> bool:
    if isinstance(block, ipaddress.IPv4Network) and isinstance(around, ipaddress.IPv4Network):
        return block.subnet_of(around)
    if isinstance(block, ipaddress.IPv6Network) and isinstance(around, ipaddress.IPv6Network):
        return block.subnet_of(around)
    return False
