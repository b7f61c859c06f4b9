"""Holds a month's report in the making as plain values: its bill, split, and the tables behind it.

Detail stays in the tables: what comes here is summed first, but for rows that are few by nature
(volumes, rotations, designs, days that stand out). Every sum is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from core.cost.pricing import total
from core.ground.naming import CLUSTER_TAG
from spark.months import first_day_after, is_by_the_month, settled_on
from spark.rows import Found, grouped
from spark.rules.meters import Attribution, Component
from spark.transforms.grain import EasySaving

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


@dataclass(frozen=True, slots=True)
class DayCost:
    """What one component cost on one day: of Kafka over all clusters, or of everybody else."""

    day: date
    component: str
    billed: Decimal
    is_kafkas: bool = True


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One month's report in the making; what was not asked for is empty."""

    report: Report
    all_days: Sequence[DayCost] = ()  # of the month and of the one before
    month: str | None = None  # the one reported on
    tags: Sequence[Found] = ()  # of a bill on which nothing is known to be Kafka's
    easy: Sequence[EasySaving] = ()
    transfer: Sequence[Found] = ()
    nodes: Sequence[Found] = ()
    storage: Sequence[Found] = ()
    resync: Sequence[Found] = ()
    economics: Sequence[Found] = ()
    unit: Sequence[Found] = ()
    anomalies: Sequence[Found] = ()
    notes: Sequence[str] = field(default=())  # what was left out, and what would bring it in

    @property
    def days(self) -> Sequence[DayCost]:
        """Return what the report is of: Kafka's days or, where nothing is known to be, all."""
        if not self.report.has_kafka:
            return self.all_days
        return [each for each in self.all_days if each.is_kafkas]

    @property
    def is_by_the_month(self) -> bool:
        """Say whether nothing is known of single days (spark.months)."""
        return is_by_the_month({each.day for each in self.days}, self.report.today)

    @property
    def days_so_far(self) -> int | None:
        """Return of how many days an open month's charges are; None of a month that is over."""
        if self.month is None or self.report.today >= first_day_after(self.month):
            return None
        own = [each.day for each in self.all_days if f"{each.day:%Y-%m}" == self.month]
        return None if self.is_by_the_month or not own else self.last_passed(own).day

    def last_passed(self, own: Collection[date]) -> date:
        """Return the last of a month's days that has come; a plan's fee stands on all of them."""
        today = self.report.today
        return min(max(own), today) if f"{today:%Y-%m}" == self.month else max(own)

    @property
    def ends_early(self) -> date | None:
        """Return the last day of the bill, of a month that is over and has later ones.

        Either nothing was bought since, or the bill is older than the month's end: no line says.
        """
        if self.month is None or self.is_by_the_month:
            return None
        ends = first_day_after(self.month) - timedelta(days=1)
        own = [each.day for each in self.all_days if f"{each.day:%Y-%m}" == self.month]
        last = max(own, default=ends)
        is_over = self.report.today > ends + timedelta(days=1)
        return last if is_over and last < ends else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two months from their start; of both, complete days only.

    As many days of each, but for whole months, which have the days that they have.
    """

    days: int
    before: Mapping[str, Decimal]
    after: Mapping[str, Decimal]
    days_before: int

    @property
    def totals(self) -> tuple[Decimal, Decimal]:
        return total(self.before.values()), total(self.after.values())


def month_comparison(evidence: Evidence) -> Comparison | None:
    """Compare the month with the one before, or return None without one.

    AWS bills with a day's delay, so the last day of an open month, or of a bill that ends before
    its month did, is left out; of the month before as many days are taken, which makes half a month
    comparable.
    """
    if evidence.month is None:
        return None
    first = date.fromisoformat(f"{evidence.month}-01")
    start_before = (first - timedelta(days=1)).replace(day=1)
    own = [each for each in evidence.days if each.day >= first]
    earlier = [each for each in evidence.days if start_before <= each.day < first]
    if not own or not earlier:
        return None
    last = evidence.last_passed({each.day for each in own})
    ends = first_day_after(evidence.month) - timedelta(days=1)
    # A month that is over is whole, though Kafka was charged nothing on its last days.
    is_over = evidence.report.today > ends + timedelta(days=1)
    is_whole = is_over and evidence.ends_early is None
    complete = ends.day if is_whole else last.day - 1
    if complete < 1:
        return None
    length = (first - timedelta(days=1)).day
    if not is_whole:
        length = min(complete, length)
    return Comparison(
        days=complete,
        before=_by_component(each for each in earlier if each.day.day <= length),
        after=_by_component(each for each in own if each.day.day <= complete),
        days_before=length,
    )


def _by_component(days: Any) -> dict[str, Decimal]:
    sums: dict[str, list[Decimal]] = {}
    for each in days:
        sums.setdefault(each.component, []).append(each.billed)
    return {component: total(amounts) for component, amounts in sums.items()}
