"""Decides whether a set of volumes must grow, and how far: by forecast, in steps worth a slot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.volumes.forecast import FillForecast
from core.volumes.policy import Policy, goals_of
from core.volumes.sizing import GIB, Use, wanted_size
from core.volumes.views import VolumeSet, VolumeView

DAY_SECONDS = 24 * 3600.0
# A modification may take hours before the next may start: what is full sooner cannot wait.
EMERGENCY_SECONDS = 6 * 3600.0
# A growth shorter than this share would need the next slot too soon.
LEAST_GROWTH_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """The size a set should have, whether it is short of it by hours, and why."""

    size_gib: int
    emergency: bool
    reason: str
    # It should be larger than the policy's or EBS's largest.
    capped: bool


def growth(of: VolumeSet) -> Growth | None:
    """Return what the fullest volume of a set asks for; None where all have room enough."""
    found = [each for volume in of.volumes if (each := _of_volume(of, volume)) is not None]
    if of.asked.size_gib < of.spec.size_gib:
        found.append(
            Growth(
                of.spec.size_gib,
                emergency=False,
                reason=f"the ClusterSpec asks for {of.spec.size_gib} GiB",
                capped=False,
            )
        )
    return max(found, key=lambda each: (each.emergency, each.size_gib), default=None)


def _of_volume(of: VolumeSet, volume: VolumeView) -> Growth | None:
    if volume.forecast is None:
        return None
    return room(volume.claim, volume.forecast, of.asked.size_gib, of.policy)


def room(name: str, forecast: FillForecast, size_gib: int, policy: Policy) -> Growth | None:
    """Return how far one volume must grow; None where what is ahead fits.

    The advisor asks for one it may change, the storage report for one on a bill.
    """
    size_bytes = size_gib * GIB
    level = size_bytes * (1 - policy.free_share)
    until_level = forecast.seconds_until(level)
    if until_level is None or until_level > policy.act_days * DAY_SECONDS:
        return None
    until_full = forecast.seconds_until(size_bytes)
    emergency = until_full is not None and until_full <= EMERGENCY_SECONDS
    emergency = emergency or forecast.used_bytes > size_bytes * (1 - policy.free_share / 2)
    size = min(_target(forecast, size_gib, policy), policy.largest_gib)
    return Growth(
        size,
        emergency=emergency,
        reason=_why(name, forecast, until_level, until_full, policy.free_share),
        capped=size <= size_gib,
    )


def _target(forecast: FillForecast, size_gib: int, policy: Policy) -> int:
    # What the trend with its spread holds then, given as a growth, so that one rule sizes it.
    ahead = forecast.used_in(policy.headroom_days * DAY_SECONDS) - forecast.used_bytes
    use = Use(
        used_bytes=int(forecast.used_bytes),
        growth_bytes_per_day=ahead / policy.headroom_days,
    )
    least = size_gib * (1 + LEAST_GROWTH_SHARE)
    stepped = math.ceil(least / policy.step_gib) * policy.step_gib
    return max(wanted_size(use, goals_of(policy)), stepped)


def _why(
    name: str,
    forecast: FillForecast,
    until_level: float,
    until_full: float | None,
    free_share: float,
) -> str:
    if until_level == 0:
        said = f"{name} has less than {free_share:.0%} free"
    else:
        said = f"{name} has less than {free_share:.0%} free in {_span(until_level)}"
    if until_full is not None:
        said += f" and is full {'now' if until_full == 0 else 'in ' + _span(until_full)}"
    rate = max(forecast.long_rate, 0.0) * DAY_SECONDS / GIB
    return f"{said} ({forecast.used_bytes / GIB:.1f} GiB used, {rate:+.1f} GiB a day)"


def _span(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
