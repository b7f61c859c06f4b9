"""Reads amounts as Kubernetes and the JVM write them: 8Gi, 500m, 4e9; -Xmx6g."""

from __future__ import annotations

import re
from decimal import Decimal

# As the API server takes it: 100Gi, 1e11, 107374182400000m.
QUANTITY = re.compile(r"\+?(\d+\.?\d*|\.\d+)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?")
UNITS: dict[str, Decimal] = {
    **{f"{unit}i": Decimal(1024 ** (n + 1)) for n, unit in enumerate("KMGTPE")},
    **{unit: Decimal(1000 ** (n + 1)) for n, unit in enumerate("kMGTPE")},
    **{unit: Decimal(1000) ** -(n + 1) for n, unit in enumerate("mun")},
}
GIB_PER_TIB = 1024
HEAP = re.compile(r"-Xmx(\d+)([kKmMgGtT]?)")
JVM_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def quantity(written: object) -> Decimal | None:
    """Return an amount of Kubernetes', exactly, or None where it is none.

    >>> quantity("2Ki"), quantity("700m") == quantity("0.7"), quantity("100GiB")
    (Decimal('2048'), True, None)
    """
    found = QUANTITY.fullmatch(str(written))
    if found is None:
        return None
    amount, unit, exponent = found.groups()
    return Decimal(amount) * (UNITS[unit] if unit else Decimal(10) ** int(exponent or 0))


def heap(options: str) -> int | None:
    """Return the most bytes a JVM's options give its heap; the last one holds."""
    found = HEAP.findall(options)
    return int(found[-1][0]) * JVM_UNITS[found[-1][1].lower()] if found else None
