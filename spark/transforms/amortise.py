"""Amortised cost of a CUR line: commitments spread over the hours they cover.

Semantics of summary_view.sql in the Cloud Intelligence Dashboards framework. The report adds up
to the invoice (unblended cost); amortised cost stands beside it, because it is what a broker costs
when its hours are covered by a savings plan or a reservation whose fee was billed elsewhere.
FOCUS delivers the same figure ready made, as EffectiveCost.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.schemas import MONEY

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
    "Fee": ("reservation_reservation_a_r_n",),
}
COLUMNS = tuple(name for names in NEEDED_FOR.values() for name in names)


def amortised_cost(unblended: Column) -> Column:
    """Return the amortised cost of a CUR 2.0 line, whose columns are named as delivered."""
    kind = F.col("line_item_line_item_type")
    reservation_fee = (kind == "Fee") & (
        F.coalesce(F.col("reservation_reservation_a_r_n"), F.lit("")) != ""
    )
    savings_plan_refund = (kind == "Refund") & F.coalesce(
        F.col("line_item_product_code") == "ComputeSavingsPlans",
        F.lit(False),  # noqa: FBT003 - a literal column
    )
    nothing = F.lit(0).cast(MONEY)
    return (
        F.when(
            kind == "SavingsPlanCoveredUsage",
            _money("savings_plan_savings_plan_effective_cost"),
        )
        .when(
            kind == "SavingsPlanRecurringFee",
            _money("savings_plan_total_commitment_to_date")
            - _money("savings_plan_used_commitment"),
        )
        .when(kind.isin("SavingsPlanNegation", "SavingsPlanUpfrontFee"), nothing)
        .when(kind == "DiscountedUsage", _money("reservation_effective_cost"))
        .when(
            kind == "RIFee",
            _money("reservation_unused_amortized_upfront_fee_for_billing_period")
            + _money("reservation_unused_recurring_fee"),
        )
        .when(reservation_fee | savings_plan_refund, nothing)
        .otherwise(unblended)
        .cast(MONEY)
    )


def _money(name: str) -> Column:
    """Return a delivered amount as money; an amount that is not there is nothing."""
    return F.coalesce(F.col(name).cast("string").try_cast(MONEY), F.lit(0).cast(MONEY))
