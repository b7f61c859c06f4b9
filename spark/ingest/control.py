"""Control totals: what a month's delivered files hold, summed before any transform touched them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from core.cost.pricing import total


@dataclass(frozen=True, slots=True)
class Control:
    """Lines, how many of them have no cost that can be added up, and what the others come to."""

    lines: int
    lines_without_cost: int
    billed: Decimal

    def __add__(self, other: Control) -> Control:
        return Control(
            self.lines + other.lines,
            self.lines_without_cost + other.lines_without_cost,
            total([self.billed, other.billed]),
        )
