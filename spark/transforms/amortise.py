"""Amortised cost of a CUR line: commitments spread over the hours they cover.

Semantics of summary_view.sql in the Cloud Intelligence Dashboards framework. The report adds up
to the invoice (unblended cost); amortised cost stands beside it, because it is what a broker costs
when its hours are covered by a savings plan or a reservation whose fee was billed elsewhere. Net
cost is the same after the discounts of a private agreement, where the export has them. FOCUS
delivers one figure for both ready made, as EffectiveCost.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.expressions import surely
from spark.money import Amount
from spark.schemas import EMPTY

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
# The older way to write discounts is as lines of their own, of a kind for each: EdpDiscount,
# PrivateRateDiscount, SppDiscount, BundledDiscount.
DISCOUNT = "Discount"


def is_discount(category: str | None) -> bool:
    """Say whether a row is a discount written as a line of its own."""
    return category is not None and category.endswith(DISCOUNT)


def amortised_cost(amount: Amount) -> Column:
    """Return the amortised cost of a CUR line, whose columns are named as CUR 2.0 delivers them."""
    nothing = amount(UNBLENDED) * 0

    def given(name: str) -> Column:
        # An amount that is not there is nothing.
        return F.coalesce(amount(name), nothing)

    kind = F.col("line_item_line_item_type")
    reservation = F.trim(F.coalesce(F.col(RESERVATION).cast("string"), F.lit("")))
    reservation_fee = (kind == "Fee") & ~reservation.isin(*EMPTY)
    # What was paid upfront and given back; a refund of a recurring fee is money of its month. The
    # published view is older than the plans of machine learning and of databases.
    is_of_a_plan = F.col("line_item_product_code").endswith("SavingsPlans")
    of_one_time = F.col("line_item_line_item_description").startswith(ONE_TIME_REFUND)
    savings_plan_refund = (kind == "Refund") & surely(is_of_a_plan & of_one_time)
    return (
        F.when(kind == "Usage", amount(UNBLENDED))
        .when(
            kind == "SavingsPlanCoveredUsage",
            given("savings_plan_savings_plan_effective_cost"),
        )
        .when(
            kind == "SavingsPlanRecurringFee",
            given("savings_plan_total_commitment_to_date") - given("savings_plan_used_commitment"),
        )
        .when(kind.isin("SavingsPlanNegation", "SavingsPlanUpfrontFee"), nothing)
        .when(kind == "DiscountedUsage", given("reservation_effective_cost"))
        .when(
            kind == "RIFee",
            given("reservation_unused_amortized_upfront_fee_for_billing_period")
            + given("reservation_unused_recurring_fee"),
        )
        .when(reservation_fee | savings_plan_refund, nothing)
        .otherwise(amount(UNBLENDED))
    )


def net_cost(amount: Amount) -> Column:
    """Return the amortised cost of a line after private discounts."""

    def net(name: str) -> Column:
        return F.coalesce(amount(NET_OF[name]), amount(name)) if name in NET_OF else amount(name)

    return amortised_cost(net)
