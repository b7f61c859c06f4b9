"""One line of a synthetic bill, and what the whole bill must come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from spark.tag_keys import SIMULATED_TAG

NOUGHT = Decimal(0)
SIMULATED = "Simulated: "
PAYER = "111111111111"


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One line, by CUR 2.0's ideas, and what it is by ours: the truth that a report must find."""

    hour: datetime
    kind: str = "Usage"
    product: str = "AmazonEC2"
    usage_type: str = ""
    operation: str = ""
    unit: str = ""
    quantity: Decimal = NOUGHT
    unblended: Decimal = NOUGHT
    net: Decimal | None = None
    resource_id: str = ""
    zone: str = ""
    account: str = PAYER
    entity: str = "AWS"
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    sp_effective: Decimal = NOUGHT
    sp_commitment: Decimal = NOUGHT
    sp_used: Decimal = NOUGHT
    ri_arn: str = ""
    ri_effective: Decimal = NOUGHT
    ri_unused_fee: Decimal = NOUGHT
    parent: str = ""
    split_cost: Decimal = NOUGHT
    unused_cost: Decimal = NOUGHT
    net_split_cost: Decimal | None = None
    net_unused_cost: Decimal | None = None
    # The truth.
    component: str = "other"
    owner: str = "unattributed"
    amortised: Decimal = NOUGHT
    seconds: int = 3600

    @property
    def period(self) -> str:
        return f"{self.hour:%Y-%m}"

    @property
    def until(self) -> datetime:
        return self.hour + timedelta(seconds=self.seconds)

    @property
    def all_tags(self) -> dict[str, str]:
        return {**self.tags, SIMULATED_TAG: "true"}

    @property
    def text(self) -> str:
        return f"{SIMULATED}{self.description or self.usage_type or self.kind}"


@dataclass(frozen=True)
class ExpectedReport:
    """What a report on these lines must say."""

    billed: Decimal
    amortised: Decimal
    lines: int
    by_component: Mapping[str, Decimal]
    amortised_by_component: Mapping[str, Decimal]
    by_owner: Mapping[str, Decimal]


def truth(lines: Iterable[BillLine]) -> ExpectedReport:
    """Add up what the lines are known to be."""
    every = list(lines)
    return ExpectedReport(
        billed=sum((line.unblended for line in every), NOUGHT),
        amortised=sum((line.amortised for line in every), NOUGHT),
        lines=len(every),
        by_component=_sums(every, lambda line: (line.component, line.unblended)),
        amortised_by_component=_sums(every, lambda line: (line.component, line.amortised)),
        by_owner=_sums(every, lambda line: (line.owner, line.unblended)),
    )


def _sums(lines: Iterable[BillLine], key) -> dict[str, Decimal]:  # type: ignore[no-untyped-def]
    found: dict[str, Decimal] = {}
    for line in lines:
        name, amount = key(line)
        found[name] = found.get(name, NOUGHT) + amount
    return found


def month_start(period: str) -> datetime:
    return datetime.strptime(f"{period}-01+0000", "%Y-%m-%d%z").astimezone(UTC)


def next_month(start: datetime) -> datetime:
    return (start.replace(day=1) + timedelta(days=32)).replace(day=1)
