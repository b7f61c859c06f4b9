"""The clocks of explored worlds: a valid policy, shorter than the shipped one so that walks are.

test_limits holds it to core.timing, as stacks/ hold every description.
"""

from __future__ import annotations

from typing import Any

from core.cluster.operation import Timings
from core.timing import drain_life_seconds
from tests.unit.policies import policy_with

TIMINGS: dict[str, Any] = {
    "tick_interval_seconds": 60,
    "hook_heartbeat_timeout_seconds": 1800,
    "hook_heartbeats": 60,
    "hold_limit_seconds": 3600,
    "post_condition_hold_seconds": 30,
    "post_condition_wait_seconds": 1800,
    "nth_drain_timeout_seconds": 420,
    "nth_visibility_timeout_seconds": 110,
    "nth_queue_retention_seconds": 1200,
    "planned_margin_seconds": 7200,
}
HEARTBEAT = float(TIMINGS["hook_heartbeat_timeout_seconds"])
HOOK_LIMIT = HEARTBEAT * TIMINGS["hook_heartbeats"]
HOLD_LIMIT = float(TIMINGS["hold_limit_seconds"])
DRAIN_LIMIT = float(TIMINGS["nth_drain_timeout_seconds"])
VISIBILITY = float(TIMINGS["nth_visibility_timeout_seconds"])
RETENTION = float(TIMINGS["nth_queue_retention_seconds"])
LEASE = HEARTBEAT
TICK = float(TIMINGS["tick_interval_seconds"])
LATE = 3 * TICK
FUNCTION_VISIBILITY = 360.0
# Every minute in an account; a walk of hours needs to be found again, not so often.
SWEEP = 240.0
TICK_RECEIVES, EVENT_RECEIVES = 5, 10

POLICY = policy_with(
    tick_interval_seconds=TICK,
    hold_limit_seconds=HOLD_LIMIT,
    heartbeat_timeout_seconds=HEARTBEAT,
    hook_limit_seconds=HOOK_LIMIT,
    post_condition_hold_seconds=float(TIMINGS["post_condition_hold_seconds"]),
    post_condition_wait_seconds=float(TIMINGS["post_condition_wait_seconds"]),
    forward_again_seconds=DRAIN_LIMIT + VISIBILITY,
    drain_life_seconds=drain_life_seconds(Timings(**TIMINGS)),
    planned_margin_seconds=float(TIMINGS["planned_margin_seconds"]),
)
