"""Reads amounts as Kubernetes and the JVM write them: 8Gi, 500m, 4e9; -Xmx6g."""

from __future__ import annotations

import re

QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
UNITS = DECIMAL | BINARY | {"P": 1e15}
HEAP = re.compile(r"-Xmx(\d+)([kKmMgGtT]?)")
JVM_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def quantity(written: object) -> float | None:
    """Return an amount of Kubernetes' as a number, or None where it is none.

    >>> quantity("2Ki")
    2048.0
    """
    found = QUANTITY.fullmatch(str(written))
    if found is None or found[2] not in UNITS:
        return None
    return float(found[1]) * UNITS[found[2]]


def heap(options: str) -> float | None:
    """Return the most bytes a JVM's options give its heap; the last one holds."""
    found = HEAP.findall(options)
    return float(found[-1][0]) * JVM_UNITS[found[-1][1].lower()] if found else None
