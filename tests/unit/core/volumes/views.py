"""Volume sets for the tests: one broker's volume with room and time, and what differs from it."""

from dataclasses import replace
from typing import Any

from core.volumes.deciding import class_of
from core.volumes.series import merged_load
from core.volumes.sizing import GIB, Gp3, Performance, Policy
from core.volumes.views import (
    FillForecast,
    History,
    Hour,
    Load,
    Modification,
    ModificationState,
    VolumeSet,
    VolumeView,
)

NOW = 1_800_000_000.0
HOUR, DAY = 3600.0, 86_400.0
IDLE = Load(
    volume_exceeded_share=0.0, instance_exceeded_share=0.0, iops_p999=1.0, bytes_per_s_p999=1.0
)
LOOKED = History(known_since=NOW - 30 * DAY, looked_at=NOW - 300)


def ended_modification(
    ago: float,
    target: Gp3 | None = None,
    state: ModificationState = ModificationState.COMPLETED,
    **given: Any,
) -> Modification:
    """A modification that began so many seconds ago."""
    return Modification(
        started_at=NOW - ago, state=state, target=target or Gp3(100), **{"kind": "grow", **given}
    )


def history(*modifications: Modification) -> History:
    return replace(LOOKED, modifications=modifications)


def view(volume: Gp3 = Gp3(100), **changed: Any) -> VolumeView:  # noqa: B008 - frozen
    given: dict[str, Any] = {
        "claim": "data-0-orders-broker-a-0",
        "pod": "orders-broker-a-0",
        "volume_id": "vol-0a",
        "actual": volume,
        "requested_gib": volume.size_gib,
        "given_gib": volume.size_gib,
        "wanted_class": class_of(volume.performance),
        "given_class": class_of(volume.performance),
        "instance_type": "m7g.2xlarge",
        "history": LOOKED,
        "forecast": FillForecast(used_bytes=0.3 * volume.size_gib * GIB),
    }
    # What a test does not say of the load is measured, and nothing.
    load = merged_load(changed.pop("load", Load()), IDLE)
    return VolumeView(**{**given, "load": load, **changed})


def volume_set(
    *volumes: VolumeView,
    asked: Gp3 = Gp3(100),  # noqa: B008 - frozen
    spec: Gp3 | None = None,
    policy: Policy | None = None,
    **changed: Any,
) -> VolumeSet:
    return VolumeSet(
        pool="broker-a",
        number=0,
        asked=asked,
        spec=spec or Gp3(100),
        volumes=volumes or (view(asked),),
        policy=policy or Policy(apply=True),
        **changed,
    )


def fill_forecast(share: float, gib: int = 100, *, per_day_gib: float = 0.0) -> FillForecast:
    return FillForecast(used_bytes=share * gib * GIB, long_rate=per_day_gib * GIB / DAY)


def quiet_hours(
    count: int, iops: float = 100, mib_per_s: float = 10, *, until: float = NOW
) -> tuple[Hour, ...]:
    """Hours on record, the last of which is the one before `until`."""
    first = until - until % HOUR - count * HOUR
    return tuple(
        Hour(first + n * HOUR, iops, mib_per_s * 1024**2, exceeded=False) for n in range(count)
    )


def throttled_load(share: float = 0.5, *, instance: float = 0.0, **measured: float) -> Load:
    return Load(volume_exceeded_share=share, instance_exceeded_share=instance, **measured)


FAST = Gp3(100, Performance(3000, 250))
