"""The policy of a cluster whose description says nothing about it, for tests that vary it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.cluster import ClusterSpec
from core.cluster.operation import Timings
from core.incidents.observation import Policy
from core.timing import drain_life_seconds

_TIMINGS = Timings()
_SAYS_NOTHING = {
    key: ClusterSpec.model_fields[key].default
    for key in ("drain_route", "scale_in", "isr_margin", "gate")
}
_PLAIN = Policy(
    **_SAYS_NOTHING,
    tick_interval_seconds=_TIMINGS.tick_interval_seconds,
    hold_limit_seconds=_TIMINGS.hold_limit_seconds,
    heartbeat_timeout_seconds=_TIMINGS.hook_heartbeat_timeout_seconds,
    hook_limit_seconds=_TIMINGS.hook_heartbeat_timeout_seconds * _TIMINGS.hook_heartbeats,
    post_condition_hold_seconds=_TIMINGS.post_condition_hold_seconds,
    post_condition_wait_seconds=_TIMINGS.post_condition_wait_seconds,
    forward_again_seconds=(
        _TIMINGS.nth_drain_timeout_seconds + _TIMINGS.nth_visibility_timeout_seconds
    ),
    drain_life_seconds=drain_life_seconds(_TIMINGS),
    planned_margin_seconds=_TIMINGS.planned_margin_seconds,
)


def policy_with(**changes: Any) -> Policy:
    return replace(_PLAIN, **changes)
