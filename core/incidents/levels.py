"""Decides which actions a level of adoption allows; the others are said instead of done.

    watch -> gate -> act -> own

Below `act` nothing of what is theirs is changed: what remains is a ledger, queues and a thread of
our own. At `watch` a drain is decided as if it were ours to send. At `gate` it is not: whoever
drains asks (core.gate), and only that takes the lease and takes a broker out. An action is theirs
unless it stands in OF_OURS, so that a new one is withheld until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.incidents.actions import (
    Action,
    DropLease,
    EndDrain,
    FreezeZone,
    KeepErrors,
    Page,
    TakeLease,
)
from core.incidents.observation import Policy
from core.incidents.record import Decision

Level = Literal["watch", "gate", "act", "own"]
OWN: Level = "own"
ACTING: frozenset[Level] = frozenset({"act", "own"})
# What the one who asks a group to terminate hears of it.
WITHHELD = "Watching only: no group is asked to terminate anything."
# Before what would be done, in a record, a thread and a page.
WATCHED = "Watching only, this would be done: "
# They write the ledger's table and the ticks queue, and nothing else.
OF_OURS = (TakeLease, DropLease, EndDrain, Page, KeepErrors, FreezeZone)


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be done, machine by machine; without arguments, of a cluster that is ours."""

    level: Level = OWN
    # Auto Scaling groups that were named to be changed; None: every one.
    named: frozenset[str] | None = None
    # Whether whoever evicts Kafka's pods has to ask.
    gated: bool = False

    def of(self, group: str | None) -> Level:
        """Return the level for a machine: one in no group that was named is left to others.

        EKS and Karpenter take no hooks of ours on theirs: whoever drains those asks, or is watched.
        """
        if self.level not in ACTING or self.named is None or group in self.named:
            return self.level
        return "gate" if self.gated else "watch"

    def policy(self, group: str | None, policy: Policy) -> Policy:
        """Return what decisions about a machine obey: at `gate` nobody of ours is sent to drain."""
        return replace(policy, drain_route="asked") if self.of(group) == "gate" else policy


def is_allowed(action: Action, level: Level) -> bool:
    """Say whether an action may be carried out at a level."""
    return level in ACTING or isinstance(action, OF_OURS)


def withheld_actions(actions: Sequence[Action], level: Level) -> tuple[Action, ...]:
    """Return the actions that a level keeps from being carried out."""
    return tuple(action for action in actions if not is_allowed(action, level))


def as_told(decision: Decision, level: Level) -> Decision:
    """Return a decision as it is recorded, told and paged: what is withheld is said to be."""
    if not withheld_actions(decision.actions, level):
        return decision
    actions = tuple(
        replace(each, reason=f"{WATCHED}{each.reason}") if isinstance(each, Page) else each
        for each in decision.actions
    )
    return replace(decision, reason=f"{WATCHED}{decision.reason}", actions=actions)
