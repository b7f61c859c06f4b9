"""Lifecycle hooks of one instance in transition: who must answer, until when, and the verdict.

Pure: the time is passed in. Semantics are those of EC2 Auto Scaling: every hook of a transition
has its own action, token and deadline; CONTINUE waits for the others, ABANDON ends the wait at
once; a deadline that passes answers with the hook's default result; heartbeats extend a deadline
by one heartbeat timeout, up to min(48 h, 100 heartbeat timeouts) after the action began.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

CONTINUE = "CONTINUE"
ABANDON = "ABANDON"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
LONGEST_HOLD_SECONDS = 48 * 3600
LONGEST_HOLD_HEARTBEATS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHook:
    """A lifecycle hook as it was when the transition began."""

    name: str
    transition: str
    heartbeat_timeout_seconds: int
    default_result: str
    notification_target_arn: str | None = None
    notification_metadata: str | None = None

    @property
    def global_timeout_seconds(self) -> int:
        """The longest an action of this hook may last, heartbeats or not."""
        return min(LONGEST_HOLD_SECONDS, LONGEST_HOLD_HEARTBEATS * self.heartbeat_timeout_seconds)


@dataclass(slots=True)
class HookAction:
    """One hook's question about one instance, open until it has a result."""

    hook: GroupHook
    token: str
    started_at: float
    deadline: float
    result: str | None = None


@dataclass(slots=True)
class HookTransition:
    """An instance waiting for the hooks of its launch or its termination."""

    instance_id: str
    actions: tuple[HookAction, ...] = field(default_factory=tuple)

    @staticmethod
    def begin(instance_id: str, hooks: Sequence[GroupHook], now: float) -> HookTransition:
        return HookTransition(
            instance_id,
            tuple(
                HookAction(hook, str(uuid.uuid4()), now, now + hook.heartbeat_timeout_seconds)
                for hook in hooks
            ),
        )

    @property
    def verdict(self) -> str | None:
        """CONTINUE when every hook said so, ABANDON as soon as one did, None while it waits."""
        results = [action.result for action in self.actions]
        if ABANDON in results:
            return ABANDON
        return None if None in results else CONTINUE

    def find(self, hook_name: str, *, token: str | None = None) -> HookAction | None:
        """Return the open action of a hook; one given a token must also carry it."""
        if self.verdict is not None:
            return None
        return next(
            (
                action
                for action in self.actions
                if action.hook.name == hook_name
                and action.result is None
                and (token is None or action.token == token)
            ),
            None,
        )

    def expire(self, now: float) -> list[HookAction]:
        """Answer every action whose deadline has passed by its default; return those actions."""
        late = [a for a in self.actions if a.result is None and a.deadline <= now]
        if self.verdict is not None:
            return []
        for action in late:
            action.result = action.hook.default_result
        return late


def heartbeat(action: HookAction, now: float) -> None:
    """Give an open action one more heartbeat timeout, within its hook's longest hold."""
    action.deadline = min(
        now + action.hook.heartbeat_timeout_seconds,
        action.started_at + action.hook.global_timeout_seconds,
    )
