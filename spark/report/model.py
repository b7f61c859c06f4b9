"""Holds what a cost report says, as plain values: no Spark, no HTML, every sum exact.

The job fills it from the cost table; the page and the terminal show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from core.cost.pricing import total
from core.ground.naming import CLUSTER_TAG
from spark.months import settled_on
from spark.rows import Found, grouped
from spark.rules.names import Attribution, Component

BAD_ROWS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Share:
    """What one component, or one owner, cost."""

    name: str
    charges: int
    billed: Decimal
    amortised: Decimal
    by_attribution: dict[Attribution, Decimal]
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """One bill, split."""

    label: str
    currency: str
    today: date
    simulated: bool
    lines: Sequence[Found]  # rows of COST
    rows: int
    bad_rows: int
    rows_without_cost: int
    bad: Sequence[Found]  # rows of QUARANTINE; the dollars that they name are in the total
    # What the tag that means Kafka is called.
    tag: str = CLUSTER_TAG
    # What DELIVERIES says of rows that name no month: in no month's total, whichever it is.
    monthless: Found | None = None

    @property
    def unread_rows(self) -> int:
        """Return how many rows could not be read, those that name no month among them."""
        return self.bad_rows + (self.monthless.lines if self.monthless else 0)

    @property
    def is_whole(self) -> bool:
        """Say whether the total is of every row that may be this bill's."""
        return not self.rows_without_cost and self.monthless is None

    @property
    def billed(self) -> Decimal:
        return total(line.billed_cost for line in self.lines)

    @property
    def amortised(self) -> Decimal:
        return total(line.amortised_cost for line in self.lines)

    @property
    def periods(self) -> list[str]:
        return sorted({line.billing_period for line in self.lines if line.billing_period})

    @property
    def provisional(self) -> bool:
        """Whether AWS may still correct a month of this bill."""
        return any(self.today < settled_on(period) for period in self.periods)

    @property
    def kafkas(self) -> Report:
        """Return the part that a tag, a known resource or the ledger says is Kafka's."""
        return self._of(is_kafkas=True)

    @property
    def others(self) -> Report:
        """Return the part of which nothing says so: not ours to explain."""
        return self._of(is_kafkas=False)

    @property
    def has_kafka(self) -> bool:
        return any(_is_kafkas(line) for line in self.lines)

    @property
    def clusters(self) -> list[str]:
        return sorted({line.cluster for line in self.lines if line.cluster})

    def _of(self, *, is_kafkas: bool) -> Report:
        chosen = [line for line in self.lines if _is_kafkas(line) == is_kafkas]
        return replace(self, lines=chosen, rows=sum(line.charges for line in chosen))

    def components(self) -> list[Share]:
        """Return the components in the report's order, those that bought something only."""
        shares = {share.name: share for share in self._shares(lambda line: str(line.component))}
        return [shares[component.value] for component in Component if component.value in shares]

    def owners(self) -> list[Share]:
        """Return who the money is for, the largest first."""
        shares = self._shares(_owner)
        return sorted(shares, key=lambda share: (-share.billed, share.name))

    def attributed(self, attribution: Attribution) -> Decimal:
        return total(line.billed_cost for line in self.lines if line.attribution == attribution)

    def _shares(self, key: Callable[[Found], str]) -> list[Share]:
        return [
            Share(
                name=name,
                charges=sum(line.charges for line in lines),
                billed=total(line.billed_cost for line in lines),
                amortised=total(line.amortised_cost for line in lines),
                by_attribution={
                    a: total(line.billed_cost for line in lines if line.attribution == a)
                    for a in Attribution
                },
                detail=_detail(lines),
            )
            for name, lines in grouped(self.lines, key).items()
        ]


def _is_kafkas(line: Found) -> bool:
    return bool(line.attribution != Attribution.NOBODY)


def _owner(line: Found) -> str:
    return str(line.owner) if line.cluster is None else f"{line.cluster} / {line.owner}"


def _detail(lines: Sequence[Found]) -> str:
    """Return the Kafka node ids and zones that a share's charges name."""
    nodes = sorted({line.node_id for line in lines if line.node_id is not None})
    zones = sorted({line.zone for line in lines if line.zone})
    ids = f"node {', '.join(map(str, nodes))}" if nodes else ""
    return " in ".join(part for part in (ids, ", ".join(zones)) if part)
