"""Decides when a run may begin with a node: while the maintenance window stays open long enough.

A node whose move would end after the window's end waits for the next one that is long enough; one
that has begun is never stopped. core.rotation.progress asks before each node, core.rotation.plan
before the first. This is about what a run plans, and about nothing else: what AWS takes or has
taken, and what a person sends away, opens an incident that knows no window but its own due time
(core.incidents.planned).
"""

from __future__ import annotations

from dataclasses import dataclass

from core.incidents.observation import Policy
from core.rotation.run_record import NodeTurn, Options
from core.window import clock
from core.words import span


@dataclass(frozen=True, slots=True)
class WindowWait:
    """Until when a node waits, and why; `until` is None where no window is ever long enough."""

    until: float | None
    sentence: str


def wait_of(turn: NodeTurn, now: float, options: Options, policy: Policy) -> WindowWait | None:
    """Say that a node has to wait for a maintenance window; None: it may begin."""
    if policy.maintenance is None or options.any_time:
        return None
    takes = turn.expected_seconds or 0.0
    stretches = list(policy.maintenance.stretches(now))
    until = next((opens for opens, closes in stretches if closes - max(opens, now) >= takes), None)
    if until is not None and until <= now:
        return None
    opens, closes = stretches[0]
    node = f"{turn.role.capitalize()} {turn.node_id} is expected to take {span(takes)}"
    if until is None:
        remedy = "make maintenance.duration_minutes longer, or say --any-time"
        return WindowWait(None, f"{node}, and no maintenance window stays open as long: {remedy}.")
    if until == opens:
        return WindowWait(until, f"The maintenance window opens at {clock(opens)}.")
    short = f"closes at {clock(closes)}" if opens <= now else f"of {clock(opens)} is too short"
    return WindowWait(
        until,
        f"{node}, and the maintenance window {short}: it waits for the one that opens at "
        f"{clock(until)}.",
    )
