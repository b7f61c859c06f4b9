"""Amounts as Kubernetes and the JVM write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.ground.placement import heap, quantity


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("700m", Decimal("0.7")),
        ("107374182400000m", Decimal(100 * 1024**3)),
        ("1e3", Decimal(1000)),
        (".5Ti", Decimal(512 * 1024**3)),
        (5, Decimal(5)),
        ("1.2.3", None),
        ("100GiB", None),
        (None, None),
    ],
)
def test_a_quantity_is_read_exactly_or_not_at_all(written: object, wanted: Decimal | None) -> None:
    assert quantity(written) == wanted


def test_the_last_of_several_heaps_holds() -> None:
    assert heap("-Xms1g -Xmx2g -Xmx512m") == 512 * 1024**2
    assert heap("-XX:MaxRAMPercentage=50") is None
