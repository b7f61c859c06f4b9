"""Decides whether a volume is asked for more than it gets, by whose limit, and what helps.

One rule for two readers: the advisor asks it of the last hour, the storage report of the worst hour
of its samples. It rests on time in which a limit was exceeded: what is delivered is never more than
the limit, so a rate near it may be all that was wanted, or a tenth of it.
"""

from __future__ import annotations

import math
from enum import StrEnum

from core.volumes.limits import Performance, most_iops, steps
from core.volumes.policy import Policy
from core.volumes.sizing import MIB
from core.volumes.views import Load

# What is measured of a throttled volume is its own limit; what it would take, nobody knows.
RAISE_FACTOR = 1.5
# An hour in which less time than this was measured is no whole one.
LEAST_SECONDS = 900.0


class ThrottleLimit(StrEnum):
    """Whose limit is exceeded."""

    VOLUME = "volume"
    INSTANCE = "instance"


def limited_by(load: Load, policy: Policy) -> ThrottleLimit | None:
    """Return whose limit a load exceeds; the instance's first, where a faster volume is no help."""
    if policy.grow_only:
        return None
    if _exceeds(load.instance_exceeded_share, policy):
        return ThrottleLimit.INSTANCE
    return ThrottleLimit.VOLUME if _exceeds(load.volume_exceeded_share, policy) else None


def _exceeds(share: float | None, policy: Policy) -> bool:
    return share is not None and share >= policy.exceeded_share


def next_step(
    asked: Performance,
    load: Load,
    floor: Performance,
    most: Performance,
    size_gib: int,
    margin: float,
) -> Performance | None:
    """Return the step above what is asked that helps a throttled volume; None where none does."""
    by_iops, by_throughput = _bounds(load, asked)
    wanted = Performance(
        math.ceil(max(asked.iops * RAISE_FACTOR, (load.iops_p999 or 0) * margin))
        if by_iops
        else asked.iops,
        math.ceil(
            max(
                asked.throughput_mib_per_s * RAISE_FACTOR,
                (load.bytes_per_s_p999 or 0) * margin / MIB,
            )
        )
        if by_throughput
        else asked.throughput_mib_per_s,
    )
    possible = [
        step
        for step in steps(floor, most)
        if step.covers(asked)
        and step.iops <= most_iops(size_gib)
        and (
            (by_iops and step.iops > asked.iops)
            or (by_throughput and step.throughput_mib_per_s > asked.throughput_mib_per_s)
        )
    ]
    covering = [step for step in possible if step.covers(wanted)]
    if covering:
        return min(covering, key=lambda s: (s.throughput_mib_per_s, s.iops))
    return max(possible, key=lambda s: _had_of(s, wanted), default=None)


def _had_of(step: Performance, wanted: Performance) -> tuple[float, int, int]:
    """Order steps that do not suffice: the shares of the wanted they give, then the price."""
    had = min(1.0, step.iops / wanted.iops) + min(
        1.0, step.throughput_mib_per_s / wanted.throughput_mib_per_s
    )
    return had, -step.throughput_mib_per_s, -step.iops


def _bounds(load: Load, asked: Performance) -> tuple[bool, bool]:
    """Say which of a volume's limits it ran into; both, where nobody measured which."""
    iops, rate = load.iops_p999, load.bytes_per_s_p999
    if iops is None or rate is None:
        return True, True
    near_iops = iops >= 0.9 * asked.iops
    near_rate = rate >= 0.9 * asked.throughput_mib_per_s * MIB
    return (near_iops, near_rate) if near_iops or near_rate else (True, True)
