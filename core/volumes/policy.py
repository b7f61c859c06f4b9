"""Defines what may be done to a pool's volumes unasked; the report sizes them by the same.

The ClusterSpec's `volume_policy` is rendered to it once (core.cluster), for λ volumes and for the
storage report alike: two readers of one rule must not read two of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.instances import InstanceType
from core.volumes.limits import LARGEST_GIB, UNLIMITED, Performance, lesser
from core.volumes.sizing import Goals


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be done to a pool's volumes by itself."""

    # Without it, decisions are only told.
    apply: bool = False
    # Volumes are grown when this many days fit no more, until so many fit.
    act_days: float = 3.0
    headroom_days: float = 14.0
    # What stays free at the end of them.
    free_share: float = 0.15
    step_gib: int = 10
    largest_gib: int = LARGEST_GIB
    # As far as performance may be raised; a pool's instances may sustain less.
    ceiling: Performance = UNLIMITED
    performance_margin: float = 1.2
    # Share of the last minutes in which more was asked than there is.
    exceeded_share: float = 0.1
    quiet_seconds: float = 24 * 3600.0
    # Modifications that only an emergency may use.
    reserved_slots: int = 1
    # For which a rotation's shorter resync is bought; 0 buys none.
    usd_per_minute_saved: float = 0.0
    # Controllers' volumes: a metadata log fills a volume and never keeps it busy.
    grow_only: bool = False
    # Its nodes are voters of the quorum, so no other pool can take their place.
    votes: bool = False
    # Volumes may together ask for what their instance gives for half an hour a day.
    may_burst: bool = False


def goals_of(
    policy: Policy, instance: InstanceType | None = None, beside: Iterable[Performance] = ()
) -> Goals:
    """Return what volumes under a policy should have, on an instance beside other volumes."""
    return Goals(
        headroom_days=policy.headroom_days,
        free_share=policy.free_share,
        step_gib=policy.step_gib,
        performance_margin=policy.performance_margin,
        ceiling=lesser(policy.ceiling, instance, beside, bursting=policy.may_burst),
        largest_gib=policy.largest_gib,
    )
