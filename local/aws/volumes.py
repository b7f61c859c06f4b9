"""EBS in the twin: a volume's modification passes through AWS's states, and says so as AWS does.

moto modifies at once, any number of times, and announces nothing. On AWS the new size is usable
while the volume is still being optimised; what takes hours there takes seconds here. Four
modifications in any 24 hours, each after the one before is completed; a volume never shrinks; gp3's
ranges and ratios: what EC2 allows is written a second time here, beside core.volumes, because it is
what that is tried against.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend

from local.aws import events
from local.aws.instances import Agenda

DAY = timedelta(hours=24)
MOST_IN_A_DAY = 4
SIZES, IOPS, THROUGHPUTS = (1, 65_536), (3000, 80_000), (125, 2000)
IOPS_PER_GIB = 500
MIB_PER_S_PER_IOPS = 0.25


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
    """Raise EC2's error unless it would modify a volume now.

    `state` is its latest modification's, `starts` are when its modifications began.
    """
    for code, message in _wrong_with(current, target):
        raise EC2ClientError(code, message)
    if state in {"modifying", "optimizing"}:
        raise EC2ClientError(
            "IncorrectModificationState",
            f"Volume {volume_id} cannot be modified in modification state {state.upper()}",
        )
    recent = sorted(start for start in starts if start > now - DAY)
    if len(recent) >= MOST_IN_A_DAY:
        free = (recent[-MOST_IN_A_DAY] + DAY).astimezone(UTC)
        raise EC2ClientError(
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


# How long each state lasts, by default.
MODIFYING_SECONDS = 0.5
OPTIMIZING_SECONDS = 2.0
OPTIMIZING_VARIABLE = "STILLWATER_OPTIMIZING_SECONDS"


class ShownModification:
    """One modification, as DescribeVolumesModifications shows it."""

    def __init__(self, volume: Any, target: VolumeShape) -> None:
        original = shape_of(volume)
        self.volume = volume
        self.volume_id = volume.id
        self.modification_state = "modifying"
        self.progress = 0
        self.start_time = datetime.now(UTC)
        self.end_time: datetime | None = None
        self.original_size, self.target_size = original.size_gib, target.size_gib
        self.original_iops, self.target_iops = original.iops, target.iops
        self.original_throughput = original.throughput_mib_per_s
        self.target_throughput = target.throughput_mib_per_s
        self.original_volume_type = self.target_volume_type = volume.volume_type
        self.original_multi_attach_enabled = self.target_multi_attach_enabled = False

    def get_filter_value(self, name: str) -> Any:
        """Return what moto's filters compare."""
        return getattr(self, name.replace("-", "_"), None)

    def optimize(self) -> None:
        """Let the volume have what was asked; the size may be used from now on."""
        self.modification_state, self.progress = "optimizing", 50
        self.volume.size, self.volume.iops = self.target_size, self.target_iops
        self.volume.throughput = self.target_throughput

    def complete(self) -> None:
        self.modification_state, self.progress = "completed", 100
        self.end_time = datetime.now(UTC)


def shape_of(volume: Any) -> VolumeShape:
    """Return moto's volume; a gp3 volume that was asked for nothing has what gp3 includes."""
    return VolumeShape(int(volume.size), int(volume.iops or 3000), int(volume.throughput or 125))


def announce(backend: Any, volume_id: str, event: str, result: str, request_id: str) -> None:
    """Send an EBS Volume Notification."""
    arn = f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:volume/{volume_id}"
    events.put(
        backend.account_id,
        backend.region_name,
        source="aws.ec2",
        detail_type="EBS Volume Notification",
        detail={"result": result, "cause": "", "event": event, "request-id": request_id},
        resources=[arn],
    )


def install(agenda: Agenda) -> None:
    """Put these modifications in the place of moto's."""
    optimizing = float(os.environ.get(OPTIMIZING_VARIABLE) or OPTIMIZING_SECONDS)

    def modify_volume(
        backend: Any,
        volume_id: str,
        target_size: Any = None,
        target_volume_type: str | None = None,
        target_iops: Any = None,
        target_throughput: Any = None,
        *_: Any,
        **__: Any,
    ) -> Any:
        volume = backend.get_volume(volume_id)
        if target_volume_type not in {None, volume.volume_type}:
            raise EC2ClientError("InvalidParameterValue", "The twin changes no volume's type.")
        current = shape_of(volume)
        target = VolumeShape(
            int(target_size or current.size_gib),
            int(target_iops or current.iops),
            int(target_throughput or current.throughput_mib_per_s),
        )
        modification = begin(volume, target)
        say = partial(announce, backend, volume_id, "modifyVolume", request_id=str(uuid.uuid4()))
        modified_at = time.time() + MODIFYING_SECONDS
        for at, step, state in (
            (modified_at, modification.optimize, "optimizing"),
            (modified_at + optimizing, modification.complete, "completed"),
        ):
            agenda.add(at, step)
            agenda.add(at, partial(say, state))
        return volume

    def describe(backend: Any, volume_ids: Any = None, filters: Any = None) -> list[Any]:
        moto: list[Any] = moto_describe(backend, volume_ids, filters)
        # EC2 tells of the latest alone.
        return list({each.volume_id: each for each in moto}.values())

    moto_describe = EBSBackend.describe_volumes_modifications
    EBSBackend.modify_volume = modify_volume
    EBSBackend.describe_volumes_modifications = describe


def begin(volume: Any, target: VolumeShape) -> ShownModification:
    """Begin a modification; raises EC2's own error where it allows none."""
    known = volume.modifications
    check(
        volume.id,
        shape_of(volume),
        target,
        state=known[-1].modification_state if known else None,
        starts=[each.start_time for each in known],
        now=datetime.now(UTC),
    )
    modification = ShownModification(volume, target)
    known.append(modification)
    return modification
