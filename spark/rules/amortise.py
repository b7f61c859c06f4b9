"""Amortised cost of a CUR line: commitments spread over the hours they cover.

Semantics of summary_view.sql in the Cloud Intelligence Dashboards framework. The report adds up
to the invoice (unblended cost); amortised cost stands beside it, because it is what a broker costs
when its hours are covered by a savings plan or a reservation whose fee was billed elsewhere. Net
cost is the same after the discounts of a private agreement, where the export has them. FOCUS
delivers one figure for both ready made, as EffectiveCost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark.rules.line import EMPTY

UNBLENDED = "line_item_unblended_cost"
RESERVATION = "reservation_reservation_a_r_n"
NET_UNBLENDED = "line_item_net_unblended_cost"
# Delivered columns the formula reads, by the line item type that makes each indispensable.
NEEDED_FOR = {
    "SavingsPlanCoveredUsage": ("savings_plan_savings_plan_effective_cost",),
    "SavingsPlanRecurringFee": (
        "savings_plan_total_commitment_to_date",
        "savings_plan_used_commitment",
    ),
    "DiscountedUsage": ("reservation_effective_cost",),
    "RIFee": (
        "reservation_unused_amortized_upfront_fee_for_billing_period",
        "reservation_unused_recurring_fee",
    ),
    "Fee": (RESERVATION,),
}
COLUMNS = tuple(name for names in NEEDED_FOR.values() for name in names)
ONE_TIME_REFUND = "Refund for one-time fee for Savings Plan ID"
# What stands in for each after private discounts; where it is null, nothing was discounted.
NET_OF = {
    UNBLENDED: NET_UNBLENDED,
    "savings_plan_savings_plan_effective_cost": "savings_plan_net_savings_plan_effective_cost",
    "reservation_effective_cost": "reservation_net_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period": (
        "reservation_net_unused_amortized_upfront_fee_for_billing_period"
    ),
    "reservation_unused_recurring_fee": "reservation_net_unused_recurring_fee",
}
NET_COLUMNS = tuple(NET_OF.values())
AMOUNTS = (UNBLENDED, *(name for name in COLUMNS if name != RESERVATION), *NET_COLUMNS)

# How a line's cost is spread: what is added up, and what is taken from it. The first is the cost
# itself, the second nothing.
FORMULAS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((UNBLENDED,), ()),
    ((), ()),
    (("savings_plan_savings_plan_effective_cost",), ()),
    (("savings_plan_total_commitment_to_date",), ("savings_plan_used_commitment",)),
    (("reservation_effective_cost",), ()),
    (
        (
            "reservation_unused_amortized_upfront_fee_for_billing_period",
            "reservation_unused_recurring_fee",
        ),
        (),
    ),
)
_AS_BILLED, _NOTHING = 0, 1
_BY_KIND = {
    "SavingsPlanNegation": _NOTHING,
    "SavingsPlanUpfrontFee": _NOTHING,
    "SavingsPlanCoveredUsage": 2,
    "SavingsPlanRecurringFee": 3,
    "DiscountedUsage": 4,
    "RIFee": 5,
}


def formula_of(
    kind: str | None, product: str | None, description: str | None, reservation: str | None
) -> int:
    """Return by which of FORMULAS a line's cost is spread."""
    if kind == "Fee" and (reservation or "").strip(" ") not in EMPTY:
        return _NOTHING
    # What was paid upfront and given back; a refund of a recurring fee is money of its month. The
    # published view is older than the plans of machine learning and of databases.
    is_of_a_plan = (product or "").endswith("SavingsPlans")
    if kind == "Refund" and is_of_a_plan and (description or "").startswith(ONE_TIME_REFUND):
        return _NOTHING
    return _BY_KIND.get(kind or "", _AS_BILLED)


def spread_cost(formula: Any, amounts: Mapping[str, Any]) -> Any:
    """Return what lines cost, spread by these FORMULAS; an amount that is not there is nothing."""
    spread = amounts[UNBLENDED]
    for number, (added, taken) in enumerate(FORMULAS):
        chosen = formula == number
        if number == _AS_BILLED or not chosen.any():
            continue
        made = None
        for name in (*added, *taken):
            signed = -amounts[name] if name in taken else amounts[name]
            made = signed if made is None else made + signed
        spread = spread.where(~chosen, made)
    return spread


def net_amounts(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the amounts after private discounts, where a line says them."""
    found = dict(amounts)
    for name, net in NET_OF.items():
        found[name] = amounts[net].where(amounts[net].known, amounts[name])
    return found
