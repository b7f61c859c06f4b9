"""What a line costs where commitments are spread over the hours that they cover."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.every_case import every_case
from tests.unit.spark import bills, here

AMORTISED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "on demand": ({}, "1"),
    "covered by a savings plan": (
        {
            "line_item_line_item_type": "SavingsPlanCoveredUsage",
            "savings_plan_savings_plan_effective_cost": 0.66,
        },
        "0.66",
    ),
    "its negation": (
        {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": -1.0},
        "0",
    ),
    "what a savings plan left unused": (
        {
            "line_item_line_item_type": "SavingsPlanRecurringFee",
            "savings_plan_total_commitment_to_date": 100.0,
            "savings_plan_used_commitment": 97.5,
        },
        "2.5",
    ),
    "paid upfront": ({"line_item_line_item_type": "SavingsPlanUpfrontFee"}, "0"),
    "covered by a reservation": (
        {
            "line_item_line_item_type": "DiscountedUsage",
            "line_item_unblended_cost": 0.0,
            "reservation_effective_cost": 0.6,
        },
        "0.6",
    ),
    "what a reservation left unused": (
        {
            "line_item_line_item_type": "RIFee",
            "reservation_unused_amortized_upfront_fee_for_billing_period": 1.25,
            "reservation_unused_recurring_fee": 0.25,
        },
        "1.5",
    ),
    "a reservation's fee": (
        {"line_item_line_item_type": "Fee", "reservation_reservation_a_r_n": "arn:ri"},
        "0",
    ),
    "any other fee": ({"line_item_line_item_type": "Fee"}, "1"),
    "Refund for one-time fee for Savings Plan ID : 1": (
        {"line_item_line_item_type": "Refund", "line_item_product_code": "ComputeSavingsPlans"},
        "0",
    ),
    "Refund for one-time fee for Savings Plan ID : 2": (
        {
            "line_item_line_item_type": "Refund",
            "line_item_product_code": "MachineLearningSavingsPlans",
        },
        "0",
    ),
    "Refund for recurring fee for Savings Plan ID : 1": (
        {"line_item_line_item_type": "Refund", "line_item_product_code": "ComputeSavingsPlans"},
        "1",
    ),
    "tax": ({"line_item_line_item_type": "Tax"}, "1"),
}


@every_case(("described", "line", "amortised"), [(n, *case) for n, case in AMORTISED.items()])
def test_commitments_are_spread_over_the_hours_they_cover(
    tmp_path: Path, described: str, line: Mapping[str, Any], amortised: str
) -> None:
    told = {**line, "line_item_line_item_description": described}
    (row,) = here.usage(bills.cur_export(tmp_path, [told]))
    assert row.amortised_cost == row.net_cost == Decimal(amortised)
