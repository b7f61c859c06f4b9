"""Reads what EC2 says of a type's network and of its disks, for the types that have a price.

Beside core.instances, which holds what limits a volume: here is what limits a catch-up, and what a
broker without a volume would have instead of one.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

# Read as a resource: on EMR this package is a wheel, not a folder.
NAME = "instance_rates.json"
BYTES_PER_GB = 1000**3
BITS_PER_BYTE = 8
# c7g, i8ge, im4gn: the g after the generation is Graviton.
_GRAVITON = re.compile(r"^[a-z]+\d+g")


@dataclass(frozen=True, slots=True)
class Rates:
    """One instance type; the network's baseline is what it sustains for ever."""

    name: str
    nvme_gb: int  # decimal, as EC2 counts them; 0 for a type without disks
    network_gbps: float

    @property
    def nvme_bytes(self) -> int:
        return self.nvme_gb * BYTES_PER_GB

    @property
    def network_bytes_per_s(self) -> float:
        return self.network_gbps * BYTES_PER_GB / BITS_PER_BYTE

    @property
    def is_graviton(self) -> bool:
        return _GRAVITON.match(self.name) is not None


@functools.cache
def table() -> Mapping[str, Rates]:
    """Return the types this release knows, by name."""
    stored = json.loads((resources.files("core") / NAME).read_text(encoding="utf-8"))
    columns = stored["columns"]
    rows = {name: dict(zip(columns, row, strict=True)) for name, row in stored["types"].items()}
    return {
        name: Rates(name, int(row["nvme_gb"]), row["network_gbps"]) for name, row in rows.items()
    }
