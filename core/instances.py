"""What EC2 says of the instance types Kafka may run on: the ceiling above every volume's own.

A table (core/instances.json) and not a call: `stillwater check` works without an account. A type
that is not in it is not refused, only not compared.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

# Read as a resource: on EMR this package is a wheel, not a folder.
NAME = "instances.json"
# EC2 user guide, "Amazon EBS-optimized instance types": the types whose baseline is below their
# maximum can keep up the maximum for 30 minutes at least once every 24 hours.
BURST_SECONDS = 1800.0
BYTES_PER_MB, BYTES_PER_MIB = 1000**2, 1024**2


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance type; its EBS figures are baselines, which it sustains for ever, and bursts."""

    name: str
    vcpus: int
    memory_mib: int
    ebs_mb_per_s: float
    ebs_iops: int
    # For BURST_SECONDS; of a type that does not burst, the baseline again.
    ebs_burst_mb_per_s: float
    ebs_burst_iops: int
    # Volumes it takes, the root volume among them and instance store already subtracted.
    attachments: int
    # Whether every network interface but the first takes one of them.
    attachments_shared: bool

    @property
    def ebs_mib_per_s(self) -> int:
        """The baseline in the unit of gp3's throughput, rounded down."""
        return int(self.ebs_mb_per_s * BYTES_PER_MB / BYTES_PER_MIB)

    @property
    def ebs_burst_mib_per_s(self) -> int:
        """The burst in the unit of gp3's throughput, rounded down."""
        return int(self.ebs_burst_mb_per_s * BYTES_PER_MB / BYTES_PER_MIB)

    @property
    def bursts(self) -> bool:
        """Say whether it gives its volumes more for a while than it sustains."""
        return (self.ebs_burst_mb_per_s, self.ebs_burst_iops) > (self.ebs_mb_per_s, self.ebs_iops)


@dataclass(frozen=True, slots=True)
class Table:
    """Instance types by name, and where they were read."""

    source: str
    types: Mapping[str, InstanceType]


@functools.cache
def table() -> Table:
    """Return the table this release ships."""
    stored = json.loads((resources.files("core") / NAME).read_text(encoding="utf-8"))
    columns = stored["columns"]
    return Table(
        stored["source"],
        {
            name: _row(name, dict(zip(columns, values, strict=True)))
            for name, values in stored["types"].items()
        },
    )


def _row(name: str, values: Mapping[str, float]) -> InstanceType:
    return InstanceType(
        name=name,
        vcpus=int(values["vcpus"]),
        memory_mib=int(values["memory_mib"]),
        ebs_mb_per_s=values["ebs_mb_per_s"],
        ebs_iops=int(values["ebs_iops"]),
        ebs_burst_mb_per_s=values["ebs_burst_mb_per_s"],
        ebs_burst_iops=int(values["ebs_burst_iops"]),
        attachments=int(values["attachments"]),
        attachments_shared=bool(values["attachments_shared"]),
    )
