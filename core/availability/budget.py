"""Decides how fast an error budget burns: multi-window rates of the probe's failed attempts.

A service level objective says which share of attempts must succeed over 30 days; what may fail is
the budget. A rate of 1 spends it in exactly that time. Source: The Site Reliability Workbook,
"Alerting on SLOs", multiwindow, multi-burn-rate alerts: a long window says that enough was spent to
call somebody, a short one that it is being spent still.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HOUR = 3600
PERIOD_SECONDS = 30 * 24 * HOUR


@dataclass(frozen=True, slots=True)
class BudgetWindow:
    """A pair of windows, and the share of the budget whose loss in the long one is too much."""

    long_seconds: int
    short_seconds: int
    spent_share: float
    severity: Literal["critical", "warning"]

    @property
    def burn_rate(self) -> float:
        """Return how many times too fast the budget burns at this limit.

        >>> [round(window.burn_rate, 1) for window in WINDOWS]
        [14.4, 6.0, 3.0, 1.0]
        """
        return self.spent_share * PERIOD_SECONDS / self.long_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the probe counted since a run went on, against what the run may spend."""

    objective_percent: float
    # Of the budget of 30 days.
    allowed_percent: float
    seconds: float = 0.0
    attempts: float = 0.0
    failed: float = 0.0
    silence: str = ""  # why nobody knows, as a sentence; then no figure counts

    @property
    def percent(self) -> float:
        """Return how much of the budget of 30 days failed in this time.

        >>> round(Spent(objective_percent=99.9, allowed_percent=10, seconds=3600.0,
        ...     attempts=10_800.0, failed=155.52).percent, 3)
        2.0
        """
        tolerated = 1 - self.objective_percent / 100
        return 100 * self.failed / self.attempts / tolerated * self.seconds / PERIOD_SECONDS


WINDOWS = (
    BudgetWindow(HOUR, HOUR // 12, 0.02, "critical"),
    BudgetWindow(6 * HOUR, HOUR // 2, 0.05, "critical"),
    BudgetWindow(24 * HOUR, 2 * HOUR, 0.10, "warning"),
    BudgetWindow(72 * HOUR, 6 * HOUR, 0.10, "warning"),
)
