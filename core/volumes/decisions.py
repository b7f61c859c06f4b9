"""The words in which it is decided what becomes of a set of volumes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from core.volumes.limits import Gp3


class DecisionKind(StrEnum):
    """What a decision does. Only those that `changes` change anything."""

    KEEP = "keep"
    GROW = "grow"
    RAISE = "raise"
    LOWER = "lower"
    ROTATION = "raise for a rotation"
    WAIT = "wait"
    ADVISE = "advise"
    REFUSE = "refuse"
    UNKNOWN = "unknown"

    @property
    def changes(self) -> bool:
        return self in {
            DecisionKind.GROW,
            DecisionKind.RAISE,
            DecisionKind.LOWER,
            DecisionKind.ROTATION,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDecision:
    """What becomes of one set of volumes, why, and what that costs more or less a month."""

    pool: str
    number: int
    kind: DecisionKind
    reason: str
    # Where something changes: what every volume of the set becomes.
    target: Gp3 | None = None
    # None where the price book does not know.
    monthly_usd_change: Decimal | None = Decimal(0)
    # It may use the slot that is kept for this.
    emergency: bool = False
    # What stands in the way, for alerts: instance, budget, slots, ceiling, frozen, trouble's kind;
    # unknown, where a figure is missing that somebody should have.
    refused_by: str = ""
    # When to look again, where that is known.
    until: float | None = None

    @property
    def name(self) -> str:
        return f"volume {self.number} of pool {self.pool}"
