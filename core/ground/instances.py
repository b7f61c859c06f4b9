"""Looks up what EC2 says of an instance type: the ceiling above every volume's own.

A table (core/instances.json) and not a call: `stillwater check` works without an account. A type
that is not in it is not refused, only not compared.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

# Read as a resource: on EMR this package is a wheel, not a folder.
NAME = "instances.json"
# EC2 user guide, "Amazon EBS-optimized instance types": the types whose baseline is below their
# maximum can keep up the maximum for 30 minutes at least once every 24 hours.
BURST_SECONDS = 1800.0
BYTES_PER_MB, BYTES_PER_MIB = 1000**2, 1024**2
RESERVED_MIB, RESERVED_MIB_PER_POD, EVICTION_MIB = 255, 11, 100
# Of the cores from one number to another, so much of each.
RESERVED_CPU_MILLIS = ((0, 1, 60.0), (1, 2, 10.0), (2, 4, 5.0), (4, 10_000, 2.5))


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
    # Network interfaces, and the IPv4 addresses of each, its own among them.
    interfaces: int
    interface_addresses: int

    @property
    def addressable_pods(self) -> int:
        """Pods that the network plugin has addresses for; two take the node's own.

        Source: EKS user guide, "Choosing an optimal Amazon EC2 node instance type", eni-max-pods.
        """
        return self.interfaces * (self.interface_addresses - 1) + 2

    @property
    def kept_addresses(self) -> int:
        """Addresses of its subnet that it keeps: of the interface in use and of one more.

        Source: amazon-vpc-cni-k8s, docs/eni-and-ip-target.md, WARM_ENI_TARGET, 1 by default.
        """
        return min(self.interfaces, 2) * self.interface_addresses

    @property
    def allocatable_memory_mib(self) -> int:
        """What pods may ask for: without EKS's reservation and the kubelet's eviction threshold.

        Source: amazon-eks-ami, nodeadm, `getMemoryMebibytesToReserve` and its evictionHard.
        """
        reserved = RESERVED_MIB + RESERVED_MIB_PER_POD * self.addressable_pods
        return self.memory_mib - reserved - EVICTION_MIB

    @property
    def allocatable_cpu_millis(self) -> int:
        """What pods may ask for: without what EKS reserves of each core, less of every further one.

        Source: amazon-eks-ami, nodeadm, `getCPUMillicoresToReserve`.
        """
        reserved = sum(
            share * max(0, min(self.vcpus, last) - first)
            for first, last, share in RESERVED_CPU_MILLIS
        )
        return int(1000 * self.vcpus - reserved)

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
class InstanceTypes:
    """Instance types by name, and where they were read."""

    source: str
    types: Mapping[str, InstanceType]


@functools.cache
def table() -> InstanceTypes:
    """Return the table this release ships."""
    stored = json.loads((resources.files("core") / NAME).read_text(encoding="utf-8"))
    columns = stored["columns"]
    return InstanceTypes(
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
        interfaces=int(values["interfaces"]),
        interface_addresses=int(values["interface_addresses"]),
    )


# Service Quotas' names of what on-demand machines share, by the letters their types begin with.
STANDARD_FAMILIES = "acdhimrtz"
STANDARD_QUOTA = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
QUOTA_OF_FAMILY: Mapping[str, str] = {
    "g": "Running On-Demand G and VT instances",
    "gr": "Running On-Demand G and VT instances",
    "vt": "Running On-Demand G and VT instances",
    "p": "Running On-Demand P instances",
    "f": "Running On-Demand F instances",
    "x": "Running On-Demand X instances",
    "inf": "Running On-Demand Inf instances",
    "trn": "Running On-Demand Trn instances",
    "dl": "Running On-Demand DL instances",
    "hpc": "Running On-Demand HPC instances",
    "u": "Running On-Demand High Memory instances",
}
_LETTERS = re.compile(r"[a-z]+")


def vcpu_quota(instance_type: str) -> str | None:
    """Return Service Quotas' name of the vCPUs that a type's on-demand machines count for.

    >>> vcpu_quota("im4gn.large") == STANDARD_QUOTA, vcpu_quota("inf2.xlarge"), vcpu_quota("mac2.m")
    (True, 'Running On-Demand Inf instances', None)
    """
    found = _LETTERS.match(instance_type)
    family = found[0] if found else ""
    # Macs are dedicated hosts, of another quota.
    if family == "mac" or not family:
        return None
    usual = STANDARD_QUOTA if family[0] in STANDARD_FAMILIES else None
    return QUOTA_OF_FAMILY.get(family, usual)
