"""The price book against a bill: what moved, what is missing, what is merely old."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from core.cost import pricing
from core.cost.price_list import BilledRate, checked_item_of, disagreements, outdated_prices

BOOK = pricing.book("us-east-1")


def billed(usage_type: str, quantity: str, cost: str) -> BilledRate:
    return BilledRate(usage_type, Decimal(quantity), Decimal(cost))


@pytest.mark.parametrize(
    ("usage_type", "item"),
    [
        ("BoxUsage:r7g.2xlarge", "instance_hour:r7g.2xlarge"),
        ("EBS:VolumeP-Throughput.gp3", "gp3_gibps_month"),
        ("DataTransfer-Regional-Bytes", "inter_zone_gib"),
        ("SpotUsage:r7g.2xlarge", None),
        ("EBS:VolumeUsage.gp3.more", None),
    ],
)
def test_a_usage_type_is_a_row_of_the_book_or_none(usage_type: str, item: str | None) -> None:
    assert checked_item_of(usage_type) == item


def test_a_bill_that_charges_what_the_book_says_is_no_news() -> None:
    assert disagreements(BOOK, [billed("EBS:VolumeUsage.gp3", "1000", "80.0001")]) == []


def test_a_price_that_moved_is_told_with_both_figures() -> None:
    (found,) = disagreements(BOOK, [billed("EBS:VolumeUsage.gp3", "1000", "96")])
    assert found.sentence == (
        "gp3_gib_month is 0.08 USD (read on 2024-09-30); the bill charges 0.096000 over 1000 units "
        "of EBS:VolumeUsage.gp3, +20.0%."
    )


def test_what_the_book_lacks_is_told() -> None:
    (found,) = disagreements(BOOK, [billed("BoxUsage:u7i.large", "10", "20")])
    assert found.price is None
    assert found.sentence.startswith("instance_hour:u7i.large has no price; the bill charges 2.0")


def test_the_dearest_disagreement_comes_first_and_nothing_is_divided_by_zero() -> None:
    rates = [
        billed("EBS:VolumeUsage.gp3", "1", "1"),
        billed("NatGateway-Hours", "100", "9"),
        billed("EBS:VolumeP-IOPS.gp3", "0", "0"),
    ]
    assert [each.item for each in disagreements(BOOK, rates)] == ["nat_hour", "gp3_gib_month"]


def test_old_rows_are_those_nobody_read_for_long() -> None:
    aged = outdated_prices(BOOK, date(2026, 11, 21))
    assert {price.as_of for price in aged} == {date(2024, 9, 30)}
    assert outdated_prices(BOOK, date(2026, 11, 21), days=1000) == []
