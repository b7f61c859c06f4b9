"""Limits the size and speed of volumes other than gp3's; gp3's are in ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.refusals.fields import values
from local.refusals.limits import first_about, limit, outside
from local.refusals.refusal import Refusal, Wanted


@dataclass(frozen=True, slots=True)
class DiskRange:
    """GiB of a type, and of those that are given IOPS how many, at most so many per GiB."""

    gib: tuple[int, int]
    iops: tuple[int, int] | None = None
    iops_per_gib: int = 0


RANGES: Mapping[str, DiskRange] = {
    "gp2": DiskRange((1, 16_384)),
    "io1": DiskRange((4, 16_384), (100, 64_000), 50),
    "io2": DiskRange((4, 65_536), (100, 256_000), 1000),
    "standard": DiskRange((1, 1024)),
}


@limit(
    "ec2/launchTemplate:LaunchTemplate",
    source="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html",
)
def sizes_of_disks(wanted: Wanted) -> Iterator[Refusal]:
    """Within the ranges of their type."""
    for volume in values(wanted.inputs, "blockDeviceMappings.*.ebs"):
        known = RANGES.get(str(volume.get("volumeType")))
        if known is not None:
            yield from _volume_refusals(volume, known)


def _volume_refusals(volume: Mapping[str, Any], known: DiskRange) -> Iterator[Refusal]:
    kind, size, iops = volume.get("volumeType"), volume.get("volumeSize"), volume.get("iops")
    per_gib = known.iops_per_gib * int(size or 0)
    at = "blockDeviceMappings"
    yield from first_about(
        "RunInstances",
        "InvalidParameterValue",
        at,
        (
            outside(size, *known.gib),
            f"Volume of {size}GiB is not within {known.gib[0]} to {known.gib[1]} GiB of {kind}.",
        ),
        (
            known.iops is not None and outside(iops, *known.iops),
            f"Volume iops of {iops} is out of range for {kind}.",
        ),
        (
            size and known.iops is not None and iops is not None and int(iops) > per_gib,
            f"Iops to volume size ratio is too high; maximum is {known.iops_per_gib} of {kind}.",
        ),
    )
