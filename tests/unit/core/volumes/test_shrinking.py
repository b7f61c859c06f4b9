"""What is too large is advice with its price: a new pool, and the months until it has paid."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from core.cost import pricing
from core.volumes.deciding import DecisionKind, decide
from core.volumes.growth import payback, smaller
from core.volumes.sizing import GIB, Gp3, Performance, Policy
from core.volumes.views import FillForecast, VolumeSet
from tests.unit.core.volumes.views import DAY, NOW, view, volume_set

BOOK = pricing.book("us-east-1")
LARGE = Gp3(1000)


def a_set(
    used_gib: float = 100.0, *, days: float = 14.0, policy: Policy | None = None
) -> VolumeSet:
    held = FillForecast(used_bytes=used_gib * GIB, span_seconds=days * DAY)
    return volume_set(view(LARGE, forecast=held), asked=LARGE, policy=policy)


def test_one_volume_replaced_costs_its_copying_and_the_hours_of_both() -> None:
    found = payback(LARGE, Gp3(120), 100 * GIB, "m7g.2xlarge", BOOK)
    assert found is not None
    # 880 GiB at 8 cents; 100 GiB on both sides at a cent; half of 125 MiB/s.
    assert found.monthly_usd == Decimal("70.40")
    assert found.hours == pytest.approx(100 * 1024 / 62.5 / 3600)
    machine = BOOK.instance_hour("m7g.2xlarge").usd + Decimal("9.60") / 730
    expected = Decimal(2) + machine * Decimal(repr(found.hours))
    assert float(found.once_usd) == pytest.approx(float(expected))
    assert found.months == pytest.approx(float(expected) / 70.40)


def test_nothing_is_advised_where_nothing_is_saved() -> None:
    faster = Gp3(900, Performance(16_000, 1000))
    assert payback(LARGE, faster, 100 * GIB, None, BOOK) is None


def test_a_volume_far_too_large_is_advised_with_its_months() -> None:
    (found,) = decide(a_set(), BOOK, NOW)
    assert found.kind is DecisionKind.ADVISE
    assert found.monthly_usd_change == 0
    assert "a new pool with smaller volumes saves $70.40 a month" in found.reason
    assert "pays after 0.0 months" in found.reason


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(a_set(800.0), id="it fits"),
        pytest.param(a_set(days=5.0), id="nobody looked for long"),
        pytest.param(a_set(policy=Policy(apply=True, votes=True)), id="voters stay where they are"),
        pytest.param(
            volume_set(
                view(LARGE, forecast=FillForecast(used_bytes=GIB, span_seconds=14 * DAY)),
                view(LARGE),
                asked=LARGE,
            ),
            id="of one nothing is known",
        ),
    ],
)
def test_else_nothing_is_said(of: VolumeSet) -> None:
    assert smaller(of, BOOK) is None


def test_a_move_that_pays_too_late_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.volumes.growth.MOST_MONTHS", 0)
    assert smaller(a_set(), BOOK) is None


def test_the_fullest_of_a_set_sizes_all_of_it() -> None:
    held = FillForecast(used_bytes=100 * GIB, span_seconds=14 * DAY)
    fuller = replace(held, used_bytes=500 * GIB)
    both = volume_set(view(LARGE, forecast=held), view(LARGE, forecast=fuller), asked=LARGE)
    said = smaller(both, BOOK)
    assert said is not None
    assert said.startswith("590 GiB would hold the fullest")


def test_a_fast_volume_keeps_the_size_its_iops_need() -> None:
    fast = Gp3(1000, Performance(80_000, 125))
    held = FillForecast(used_bytes=GIB, span_seconds=14 * DAY)
    said = smaller(volume_set(view(fast, forecast=held), asked=fast), BOOK)
    assert said is not None
    assert said.startswith("160 GiB")
