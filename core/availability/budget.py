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
class Window:
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


WINDOWS = (
    Window(HOUR, HOUR // 12, 0.02, "critical"),
    Window(6 * HOUR, HOUR // 2, 0.05, "critical"),
    Window(24 * HOUR, 2 * HOUR, 0.10, "warning"),
    Window(72 * HOUR, 6 * HOUR, 0.10, "warning"),
)
