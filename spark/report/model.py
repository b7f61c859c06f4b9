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
from spark.rules.names import Attribution, Component

BAD_ROWS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the cost table."""

    billing_period: str | None
    component: Component
    attribution: Attribution
    cluster: str | None
    owner: str
    node_id: int | None
    zone: str | None
    charges: int
    billed: Decimal
    amortised: Decimal


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read; its dollars, where they could, are in the total."""

    reason: str
    line: str
    billed: Decimal | None


@dataclass(frozen=True, slots=True)
class Monthless:
    """Rows of a bill that name no month which can be read: in no month's total, whichever it is."""

    rows: int
    rows_without_cost: int
    billed: Decimal


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
    lines: Sequence[Line]
    rows: int
    bad_rows: int
    rows_without_cost: int
    bad: Sequence[BadRow]
    # What the tag that means Kafka is called.
    tag: str = CLUSTER_TAG
    monthless: Monthless | None = None

    @property
    def unread_rows(self) -> int:
        """Return how many rows could not be read, those that name no month among them."""
        return self.bad_rows + (self.monthless.rows if self.monthless else 0)

    @property
    def is_whole(self) -> bool:
        """Say whether the total is of every row that may be this bill's."""
        return not self.rows_without_cost and self.monthless is None

    @property
    def billed(self) -> Decimal:
        return total(line.billed for line in self.lines)

    @property
    def amortised(self) -> Decimal:
        return total(line.amortised for line in self.lines)

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
        return any(line.attribution is not Attribution.NOBODY for line in self.lines)

    @property
    def clusters(self) -> list[str]:
        return sorted({line.cluster for line in self.lines if line.cluster})

    def _of(self, *, is_kafkas: bool) -> Report:
        chosen = [
            line for line in self.lines if (line.attribution is not Attribution.NOBODY) == is_kafkas
        ]
        return replace(self, lines=chosen, rows=sum(line.charges for line in chosen))

    def components(self) -> list[Share]:
        """Return the components in the report's order, those that bought something only."""
        shares = {share.name: share for share in self._shares(lambda line: line.component.value)}
        return [shares[component.value] for component in Component if component.value in shares]

    def owners(self) -> list[Share]:
        """Return who the money is for, the largest first."""
        shares = self._shares(_owner)
        return sorted(shares, key=lambda share: (-share.billed, share.name))

    def attributed(self, attribution: Attribution) -> Decimal:
        return total(line.billed for line in self.lines if line.attribution is attribution)

    def _shares(self, key: Callable[[Line], str]) -> list[Share]:
        groups: dict[str, list[Line]] = {}
        for line in self.lines:
            groups.setdefault(key(line), []).append(line)
        return [
            Share(
                name=name,
                charges=sum(line.charges for line in lines),
                billed=total(line.billed for line in lines),
                amortised=total(line.amortised for line in lines),
                by_attribution={
                    a: total(line.billed for line in lines if line.attribution is a)
                    for a in Attribution
                },
                detail=_detail(lines),
            )
            for name, lines in groups.items()
        ]


def _owner(line: Line) -> str:
    return line.owner if line.cluster is None else f"{line.cluster} / {line.owner}"


def _detail(lines: Sequence[Line]) -> str:
    """Return the Kafka node ids and zones that a share's charges name."""
    nodes = sorted({line.node_id for line in lines if line.node_id is not None})
    zones = sorted({line.zone for line in lines if line.zone})
    ids = f"node {', '.join(map(str, nodes))}" if nodes else ""
    return " in ".join(part for part in (ids, ", ".join(zones)) if part)
