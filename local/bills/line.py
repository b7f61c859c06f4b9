"""One line of a synthetic bill, in each format of AWS's, and what the whole bill must come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from spark.tag_keys import SIMULATED_TAG, export_key

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


Cell = Callable[[BillLine], Any]


def _naive(moment: datetime) -> datetime:
    # Exports write UTC and say no zone.
    return moment.astimezone(UTC).replace(tzinfo=None)


def _net(line: BillLine) -> float | None:
    return None if line.net is None else float(line.net)


def _of_a_pod(line: BillLine, amount: Decimal | None) -> float | None:
    return None if amount is None or not line.parent else float(amount)


# Columns as CUR 2.0 names them.
CUR2: Mapping[str, Cell] = {
    "bill_bill_type": lambda _: "Anniversary",
    "bill_billing_entity": lambda line: line.entity,
    "bill_billing_period_start_date": lambda line: _naive(month_start(line.period)),
    "bill_payer_account_id": lambda _: PAYER,
    "identity_line_item_id": lambda line: f"synthetic-{id(line):x}",
    "line_item_availability_zone": lambda line: line.zone,
    "line_item_currency_code": lambda _: "USD",
    "line_item_line_item_description": lambda line: line.text,
    "line_item_line_item_type": lambda line: line.kind,
    "line_item_net_unblended_cost": _net,
    "line_item_operation": lambda line: line.operation,
    "line_item_product_code": lambda line: line.product,
    "line_item_resource_id": lambda line: line.resource_id,
    "line_item_unblended_cost": lambda line: float(line.unblended),
    "line_item_usage_account_id": lambda line: line.account,
    "line_item_usage_amount": lambda line: float(line.quantity),
    "line_item_usage_end_date": lambda line: _naive(line.until),
    "line_item_usage_start_date": lambda line: _naive(line.hour),
    "line_item_usage_type": lambda line: line.usage_type,
    "pricing_unit": lambda line: line.unit,
    "reservation_effective_cost": lambda line: float(line.ri_effective),
    "reservation_reservation_a_r_n": lambda line: line.ri_arn,
    "reservation_unused_amortized_upfront_fee_for_billing_period": lambda _: 0.0,
    "reservation_unused_recurring_fee": lambda line: float(line.ri_unused_fee),
    "resource_tags": lambda line: {export_key(k): v for k, v in line.all_tags.items()},
    "savings_plan_savings_plan_effective_cost": lambda line: float(line.sp_effective),
    "savings_plan_total_commitment_to_date": lambda line: float(line.sp_commitment),
    "savings_plan_used_commitment": lambda line: float(line.sp_used),
    "split_line_item_net_split_cost": lambda line: _of_a_pod(line, line.net_split_cost),
    "split_line_item_net_unused_cost": lambda line: _of_a_pod(line, line.net_unused_cost),
    "split_line_item_parent_resource_id": lambda line: line.parent,
    "split_line_item_split_cost": lambda line: _of_a_pod(line, line.split_cost),
    "split_line_item_unused_cost": lambda line: _of_a_pod(line, line.unused_cost),
}
FLOATS = frozenset(name for name in CUR2 if re.search(r"cost|fee|amount|commitment", name))
TIMES = frozenset(name for name in CUR2 if name.endswith(("start_date", "end_date")))
MAPS = frozenset({"resource_tags"})

_COMMITMENT = ("SavingsPlanRecurringFee", "RIFee", "Fee")
_SERVICES = {
    "AmazonEC2": "Amazon Elastic Compute Cloud",
    "AWSELB": "Elastic Load Balancing",
    "AmazonVPC": "Amazon Virtual Private Cloud",
    "AmazonEKS": "Amazon Elastic Container Service for Kubernetes",
}


def _category(line: BillLine) -> str:
    plain = {"Tax": "Tax", "Credit": "Credit", "Refund": "Credit"}
    return plain.get(line.kind, "Purchase" if line.kind in _COMMITMENT else "Usage")


def _billed_amount(line: BillLine) -> Decimal:
    # FOCUS bills a covered hour at nothing instead of at a price that a second line takes back.
    return Decimal(0) if line.kind == "SavingsPlanCoveredUsage" else line.unblended


def _amount_text(amount: Decimal) -> str:
    return f"{amount:.11f}"


FOCUS_10: Mapping[str, Cell] = {
    "AvailabilityZone": lambda line: line.zone or "NULL",
    "BilledCost": lambda line: _amount_text(_billed_amount(line)),
    "BillingCurrency": lambda _: "USD",
    "BillingPeriodStart": lambda line: f"{_naive(month_start(line.period)):%Y-%m-%d %H:%M:%S}",
    "BillingPeriodEnd": lambda line: f"{_naive(next_month(line.hour)):%Y-%m-01 00:00:00}",
    "ChargeCategory": _category,
    "ChargeDescription": lambda line: line.text,
    "ChargePeriodEnd": lambda line: f"{_naive(line.until):%Y-%m-%d %H:%M:%S}",
    "ChargePeriodStart": lambda line: f"{_naive(line.hour):%Y-%m-%d %H:%M:%S}",
    "EffectiveCost": lambda line: _amount_text(line.amortised),
    "PricingQuantity": lambda line: _amount_text(line.quantity),
    "PricingUnit": lambda line: line.unit or "NULL",
    "ProviderName": lambda line: line.entity,
    "ResourceId": lambda line: line.resource_id or "NULL",
    "ServiceName": lambda line: _SERVICES.get(line.product, line.product),
    "SubAccountId": lambda line: line.account,
    "Tags": lambda line: line.all_tags,
    "x_UsageType": lambda line: line.usage_type or "NULL",
    "x_Operation": lambda line: line.operation or "NULL",
}
# AWS's 1.2 export names the meter as the standard does, and no usage type.
FOCUS_12: Mapping[str, Cell] = {
    **{name: cell for name, cell in FOCUS_10.items() if name != "x_UsageType"},
    "SkuMeter": lambda line: line.usage_type or "NULL",
    "ServiceProviderName": lambda line: line.entity,
}


def is_in_focus(line: BillLine) -> bool:
    """Say whether FOCUS has such a line: it folds a plan's negation into the hour it negates."""
    return line.kind != "SavingsPlanNegation"


def legacy_name(modern: str, *, parquet: bool) -> str:
    """Return the legacy report's name of a CUR 2.0 column, in csv or in Parquet."""
    if parquet:
        return modern
    groups = ("line_item", "savings_plan", "split_line_item")
    group = next((g for g in groups if modern.startswith(f"{g}_")), modern.split("_", 1)[0])
    words = re.sub(r"_a_r_n$", "_ARN", modern.removeprefix(f"{group}_")).split("_")
    return (
        f"{_camel(group.split('_'))}/{''.join(w if w == 'ARN' else w.capitalize() for w in words)}"
    )


def _camel(words: list[str]) -> str:
    return words[0] + "".join(word.capitalize() for word in words[1:])
