"""Decides which modifications of a volume EC2 allows, in its codes and words; time is passed in.

Four modifications in any 24 hours, each after the one before is completed; a volume never shrinks;
gp3's ranges and ratios. Written a second time here, beside core.volumes, because it is what that is
tried against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY = timedelta(hours=24)
MOST_IN_A_DAY = 4
SIZES, IOPS, THROUGHPUTS = (1, 65_536), (3000, 80_000), (125, 2000)
IOPS_PER_GIB = 500
MIB_PER_S_PER_IOPS = 0.25


class RefusedModification(Exception):
    """EC2 refuses a modification."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True)
class VolumeShape:
    """What may be modified of a gp3 volume."""

    size_gib: int
    iops: int
    throughput_mib_per_s: int


def check(
    volume_id: str,
    current: VolumeShape,
    target: VolumeShape,
    *,
    state: str | None,
    starts: Sequence[datetime],
    now: datetime,
) -> None:
    """Raise Refused unless EC2 would modify a volume now.

    `state` is its latest modification's, `starts` are when its modifications began.
    """
    for code, message in _wrong_with(current, target):
        raise RefusedModification(code, message)
    if state in {"modifying", "optimizing"}:
        raise RefusedModification(
            "IncorrectModificationState",
            f"Volume {volume_id} cannot be modified in modification state {state.upper()}",
        )
    recent = sorted(start for start in starts if start > now - DAY)
    if len(recent) >= MOST_IN_A_DAY:
        free = (recent[-MOST_IN_A_DAY] + DAY).astimezone(UTC)
        raise RefusedModification(
            "VolumeModificationRateExceeded",
            "You've reached the maximum modification rate per volume limit. Up to "
            f"{MOST_IN_A_DAY} modifications are allowed per volume in a rolling 24-hour period; "
            f"the next is allowed at {free:%Y-%m-%dT%H:%M:%SZ}.",
        )


def _wrong_with(current: VolumeShape, target: VolumeShape) -> Iterator[tuple[str, str]]:
    wrong = "InvalidParameterValue"
    if target.size_gib < current.size_gib:
        yield wrong, "New size cannot be smaller than existing size."
    if target.size_gib > SIZES[1]:
        yield "VolumeModificationSizeLimitExceeded", f"Maximum size of a gp3 is {SIZES[1]} GiB."
    for what, value, (least, most) in (
        ("iops", target.iops, IOPS),
        ("throughput", target.throughput_mib_per_s, THROUGHPUTS),
    ):
        if value < least:
            yield wrong, f"Volume {what} of {value} is too low; minimum is {least}."
        if value > most:
            yield wrong, f"Volume {what} of {value} is too high; maximum is {most}."
    # The included IOPS are every volume's, however small.
    if target.iops > max(IOPS[0], IOPS_PER_GIB * target.size_gib):
        yield (
            wrong,
            (
                f"Iops to volume size ratio of {target.iops / target.size_gib:f} is too high; "
                f"maximum is {IOPS_PER_GIB} IOPS per GiB"
            ),
        )
    if target.throughput_mib_per_s > MIB_PER_S_PER_IOPS * target.iops:
        yield (
            wrong,
            (
                f"Throughput (MiBps) to iops ratio of "
                f"{target.throughput_mib_per_s / target.iops:f} is too high; maximum is "
                f"{MIB_PER_S_PER_IOPS:f} MiBps per iops"
            ),
        )
