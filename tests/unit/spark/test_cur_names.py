"""What a report's columns are called in CUR 2.0, however their letters are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark.ingest.cur_names import modern_name
from spark.tag_keys import column_spellings

CASES: dict[str, Callable[[str], str]] = {
    "as AWS writes it": str,
    "lower": str.lower,
    "upper": str.upper,
    "odd": lambda name: "".join(c.upper() if n % 2 else c.lower() for n, c in enumerate(name)),
}


@pytest.mark.parametrize("spelled", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    ("legacy", "modern"),
    [
        ("lineItem/UnblendedCost", "line_item_unblended_cost"),
        ("bill/BillingPeriodStartDate", "bill_billing_period_start_date"),
        ("reservation/ReservationARN", "reservation_reservation_a_r_n"),
        ("savingsPlan/SavingsPlanEffectiveCost", "savings_plan_savings_plan_effective_cost"),
        ("pricing/unit", "pricing_unit"),
    ],
)
def test_a_column_is_known_whatever_the_case_of_its_letters(
    spelled: Callable[[str], str], legacy: str, modern: str
) -> None:
    assert modern_name(spelled(legacy)) == modern


@pytest.mark.parametrize("spelled", CASES.values(), ids=CASES)
def test_a_tags_column_is_found_by_its_key_whatever_its_case(spelled: Callable[[str], str]) -> None:
    name = modern_name(spelled("resourceTags/user:stillwater:cluster"))
    assert name.lower() in column_spellings("stillwater:cluster")


@pytest.mark.parametrize("written", ["costCategory/team", "COSTCATEGORY/TEAM", "costcategory/team"])
def test_a_cost_category_is_found_as_a_tag_is(written: str) -> None:
    assert modern_name(written) in column_spellings("team")
