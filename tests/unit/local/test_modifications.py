"""local.aws.volumes: EC2's limits on a volume's modification, with its codes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from local.aws.volumes import RefusedModification, VolumeShape, check

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
VOLUME = VolumeShape(100, 3000, 125)


def ago(*hours: float) -> list[datetime]:
    return [NOW - timedelta(hours=each) for each in hours]


@pytest.mark.parametrize(
    ("target", "state", "hours", "code", "words"),
    [
        (VolumeShape(90, 3000, 125), None, (), "InvalidParameterValue", "smaller than existing"),
        (VolumeShape(100, 2999, 125), None, (), "InvalidParameterValue", "minimum is 3000"),
        (VolumeShape(100, 80_001, 125), None, (), "InvalidParameterValue", "maximum is 80000"),
        (VolumeShape(100, 3000, 2001), None, (), "InvalidParameterValue", "maximum is 2000"),
        (VolumeShape(100, 50_001, 125), None, (), "InvalidParameterValue", "500 IOPS per GiB"),
        (VolumeShape(100, 3000, 751), None, (), "InvalidParameterValue", "0.250000 MiBps per iops"),
        (VolumeShape(65_537, 3000, 125), None, (), "VolumeModificationSizeLimitExceeded", "65536"),
        (
            VolumeShape(110, 3000, 125),
            "optimizing",
            (1,),
            "IncorrectModificationState",
            "OPTIMIZING",
        ),
        (
            VolumeShape(110, 3000, 125),
            "completed",
            (23, 10, 5, 1),
            "VolumeModificationRateExceeded",
            "2026-11-20T13:00:00Z",
        ),
    ],
)
def test_ec2_refuses_with_its_own_code(
    target: VolumeShape, state: str | None, hours: tuple[float, ...], code: str, words: str
) -> None:
    with pytest.raises(RefusedModification) as refused:
        check("vol-1", VOLUME, target, state=state, starts=ago(*hours), now=NOW)
    assert refused.value.code == code
    assert words in refused.value.message


@pytest.mark.parametrize("hours", [(), (1,), (23, 10, 5), (25, 23, 10, 5), (24, 10, 5, 1)])
def test_a_fourth_modification_in_24_hours_is_allowed(hours: tuple[float, ...]) -> None:
    target = VolumeShape(110, 4000, 250)
    check("vol-1", VOLUME, target, state="completed", starts=ago(*hours), now=NOW)
