"""Limits a gp3 volume: its ranges, the ratios between them, the steps this project asks for.

Everything that sizes a volume stands on this page: the ClusterSpec's own checks, the advisor and
the storage report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S
from core.instances import InstanceType

# EC2 API, ModifyVolume and CreateVolume; before 2025 the maxima were 16 TiB, 16,000 and 1,000, and
# outposts and some partitions still have those.
SMALLEST_GIB, LARGEST_GIB = 1, 65_536
LEAST_IOPS, MOST_IOPS = GP3_INCLUDED_IOPS, 80_000
LEAST_MIB_PER_S, MOST_MIB_PER_S = GP3_INCLUDED_MIB_PER_S, 2000
IOPS_PER_GIB = 500
IOPS_PER_MIB_PER_S = 4

# A change of performance is a VolumeAttributesClass that exists beforehand, so there are few; an
# instance's own limit joins them as the last.
IOPS_STEPS = (
    *(3000, 4000, 6000, 8000, 12_000, 16_000),
    *(20_000, 24_000, 32_000, 40_000, 48_000, 64_000, MOST_IOPS),
)
MIB_PER_S_STEPS = (125, 187, 250, 375, 500, 750, 1000, 1500, MOST_MIB_PER_S)


@dataclass(frozen=True, slots=True)
class Performance:
    """What a volume does in a second."""

    iops: int = LEAST_IOPS
    throughput_mib_per_s: int = LEAST_MIB_PER_S

    def __str__(self) -> str:
        return f"{self.iops} IOPS and {self.throughput_mib_per_s} MiB/s"

    def covers(self, other: Performance) -> bool:
        """Say whether nothing of another performance is missing here."""
        return self.iops >= other.iops and self.throughput_mib_per_s >= other.throughput_mib_per_s


UNLIMITED = Performance(MOST_IOPS, MOST_MIB_PER_S)
INCLUDED = Performance()


@dataclass(frozen=True, slots=True)
class Gp3:
    """One gp3 volume."""

    size_gib: int
    performance: Performance = INCLUDED

    @property
    def iops(self) -> int:
        return self.performance.iops

    @property
    def throughput_mib_per_s(self) -> int:
        return self.performance.throughput_mib_per_s

    def of_size(self, size_gib: int) -> Gp3:
        return replace(self, size_gib=size_gib)


def refusals(volume: Gp3) -> list[str]:
    """Return what EC2 would refuse of a volume, a sentence each, with the remedy."""
    return [
        *_outside("size_gib", volume.size_gib, SMALLEST_GIB, LARGEST_GIB),
        *_outside("iops", volume.iops, LEAST_IOPS, MOST_IOPS),
        *_outside(
            "throughput_mib_per_s", volume.throughput_mib_per_s, LEAST_MIB_PER_S, MOST_MIB_PER_S
        ),
        *ratios(volume),
    ]


def ratios(volume: Gp3) -> Iterator[str]:
    """Return where a volume's IOPS exceed its size, or its throughput its IOPS."""
    if volume.iops > most_iops(volume.size_gib):
        yield (
            f"iops {volume.iops} exceeds gp3's {IOPS_PER_GIB} per GiB "
            f"({IOPS_PER_GIB * volume.size_gib} for {volume.size_gib} GiB); raise size_gib or "
            f"lower iops"
        )
    if least_iops(volume.throughput_mib_per_s) > max(volume.iops, LEAST_IOPS):
        yield (
            f"throughput_mib_per_s {volume.throughput_mib_per_s} exceeds gp3's "
            f"{1 / IOPS_PER_MIB_PER_S} per IOPS ({volume.iops / IOPS_PER_MIB_PER_S:.0f} for "
            f"{volume.iops} IOPS); raise iops or lower it"
        )


def _outside(setting: str, value: int, least: int, most: int) -> list[str]:
    if least <= value <= most:
        return []
    return [f"{setting} {value} is outside gp3's {least} to {most}; choose one within"]


def most_iops(size_gib: int) -> int:
    """Return the IOPS a volume of this size may have; every one has the included ones."""
    return max(LEAST_IOPS, min(MOST_IOPS, IOPS_PER_GIB * size_gib))


def least_iops(throughput_mib_per_s: int) -> int:
    """Return the IOPS that must be provisioned for a throughput."""
    return max(LEAST_IOPS, IOPS_PER_MIB_PER_S * throughput_mib_per_s)


def instance_ceiling(
    instance: InstanceType, others: Iterable[Performance] = (), *, bursting: bool = False
) -> Performance:
    """Return what an instance gives one volume, beside the other volumes of its node.

    Its baseline; its burst, which may end while a broker still catches up, only where somebody
    accepts that. What gp3 includes costs nothing and cannot be lowered, so no ceiling is below it.
    """
    beside = list(others)
    iops = instance.ebs_burst_iops if bursting else instance.ebs_iops
    throughput = instance.ebs_burst_mib_per_s if bursting else instance.ebs_mib_per_s
    return Performance(
        max(LEAST_IOPS, min(MOST_IOPS, iops - sum(o.iops for o in beside))),
        max(
            LEAST_MIB_PER_S,
            min(
                MOST_MIB_PER_S,
                throughput - sum(o.throughput_mib_per_s for o in beside),
            ),
        ),
    )


def lesser(
    allowed: Performance,
    instance: InstanceType | None,
    others: Iterable[Performance] = (),
    *,
    bursting: bool = False,
) -> Performance:
    """Return the most that is allowed and an instance gives; of one not known, the allowed."""
    if instance is None:
        return allowed
    sustained = instance_ceiling(instance, others, bursting=bursting)
    return Performance(
        min(allowed.iops, sustained.iops),
        min(allowed.throughput_mib_per_s, sustained.throughput_mib_per_s),
    )


def steps(floor: Performance, ceiling: Performance) -> tuple[Performance, ...]:
    """Return every performance between two that this project asks for, the least first.

    The two are among them; one with less IOPS than its throughput needs is not.
    """
    return tuple(
        Performance(iops, throughput)
        for throughput in _between(
            MIB_PER_S_STEPS, floor.throughput_mib_per_s, ceiling.throughput_mib_per_s
        )
        for iops in _between(IOPS_STEPS, floor.iops, ceiling.iops)
        if iops >= least_iops(throughput)
    )


def _between(known: tuple[int, ...], least: int, most: int) -> list[int]:
    return sorted({least, max(least, most), *(step for step in known if least < step < most)})


def step_for(
    wanted: Performance, floor: Performance, ceiling: Performance, size_gib: int
) -> Performance:
    """Return the least step that covers what is wanted, or the most there is.

    A volume too small for the IOPS gets those it may have, and the throughput they carry.
    """
    most = most_iops(size_gib)
    possible = [each for each in steps(floor, ceiling) if each.iops <= most] or [floor]
    covering = [each for each in possible if each.covers(wanted)]
    if covering:
        return min(covering, key=lambda each: (each.throughput_mib_per_s, each.iops))
    return max(possible, key=lambda each: _gain_order(each, wanted))


def _gain_order(each: Performance, wanted: Performance) -> tuple[int, int, int, int]:
    """Order performances that do not suffice: what is had of the wanted, then the less to pay."""
    return (
        min(each.throughput_mib_per_s, wanted.throughput_mib_per_s),
        min(each.iops, wanted.iops),
        -each.throughput_mib_per_s,
        -each.iops,
    )
