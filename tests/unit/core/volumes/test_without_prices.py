"""Volumes in a region the price book knows nothing of: judged in GiB and IOPS, and that is said."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.cost import pricing
from core.ground import instances
from core.volumes.deciding import DecisionKind, VolumeDecision, VolumePlan, plan
from core.volumes.growth import payback
from core.volumes.sizing import GIB, Gp3, Performance
from core.volumes.speed import helping_type, helps
from core.volumes.views import FillForecast, Load
from tests.unit.core.volumes.views import (
    HOUR,
    NOW,
    fill_forecast,
    quiet_hours,
    throttled_load,
    view,
    volume_set,
)

NOTHING_KNOWN = pricing.PriceBook("eu-west-1", "The shipped price file")
FETCH = "stillwater prices fetch --region eu-west-1"
SUDDEN = FillForecast(used_bytes=60 * GIB, short_rate=10 * GIB / HOUR)


def planned(of: object, budget: Decimal | None = None) -> VolumePlan:
    return plan([of], NOTHING_KNOWN, NOW, budget)  # type: ignore[list-item]


def first(of: object, budget: Decimal | None = None) -> VolumeDecision:
    return planned(of, budget).decisions[0]


def test_a_volume_that_fills_grows_and_its_cost_is_unknown() -> None:
    found = planned(volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8))))
    (decision,) = found.changes
    assert (decision.kind, decision.target) == (DecisionKind.GROW, Gp3(220))
    assert decision.monthly_usd_change is None
    assert found.planned_usd is None
    assert FETCH in found.unpriced


def test_what_the_spec_asks_for_costs_nothing_above_it_at_any_price() -> None:
    assert planned(volume_set(view())).above_spec_usd == 0


def test_a_budget_nobody_can_reckon_with_lets_only_an_emergency_through() -> None:
    budget = Decimal(100)
    waiting = first(volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8))), budget)
    assert (waiting.kind, waiting.refused_by) == (DecisionKind.REFUSE, "budget")
    assert FETCH in waiting.reason
    hurried = first(volume_set(view(forecast=SUDDEN)), budget)
    assert (hurried.kind, hurried.emergency) == (DecisionKind.GROW, True)


def test_a_budget_of_nothing_bears_nothing_at_any_price() -> None:
    assert first(volume_set(view(forecast=SUDDEN)), Decimal(0)).refused_by == "budget"


def test_what_lowers_the_bill_needs_no_price() -> None:
    fast = Gp3(100, Performance(6000, 250))
    quiet = volume_set(view(fast, load=Load(hours=quiet_hours(26))), asked=fast, spec=Gp3(100))
    assert first(quiet, Decimal(0)).kind is DecisionKind.LOWER


def test_a_volume_that_is_throttled_is_raised() -> None:
    found = first(volume_set(view(load=throttled_load())))
    assert (found.kind, found.monthly_usd_change) == (DecisionKind.RAISE, None)


def test_whether_a_smaller_volume_pays_is_not_claimed() -> None:
    assert payback(Gp3(500), Gp3(100), 10 * GIB, "m7g.large", NOTHING_KNOWN) is None


def test_without_prices_the_smallest_type_that_helps_is_named() -> None:
    current = instances.table().types["m7g.large"]
    found = helping_type(current, NOTHING_KNOWN)
    assert found is not None
    assert found.vcpus >= current.vcpus
    assert found.ebs_mib_per_s >= current.ebs_mib_per_s
    assert "$" not in helps("m7g.large", NOTHING_KNOWN)


@pytest.mark.parametrize("item", ["gp3_iops_month", "gp3_gib_month"])
def test_one_price_that_is_missing_makes_the_sum_unknown(item: str) -> None:
    book = pricing.book("us-east-1")
    less = pricing.PriceBook(
        book.region, book.name, {key: each for key, each in book.prices.items() if key != item}
    )
    found = plan([volume_set(view(forecast=fill_forecast(0.7, per_day_gib=8)))], less, NOW)
    assert found.planned_usd is None
    assert item in found.unpriced
