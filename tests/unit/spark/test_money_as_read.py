"""Money as it is read: as many places as the currency's smallest unit takes, more of less."""

from __future__ import annotations

from decimal import Decimal

from spark.report import formats, story, words
from spark.report.evidence import Evidence
from spark.report.formats import Format
from tests.every_case import every_case
from tests.unit.spark import month


@every_case(
    ("currency", "amount", "said"),
    [
        ("USD", "30.6875", "30.69"),
        ("USD", "17.1", "17.10"),
        ("USD", "0.24", "0.24"),
        ("USD", "0.0031", "0.0031"),
        ("USD", "0.0000000001", "0.00000000010"),
        ("USD", "0", "0"),
        ("USD", "-0.5", f"{words.MINUS}0.50"),
        ("JPY", "56789.7", "56,790"),
        ("JPY", "0.25", "0.25"),
        ("KRW", "-1500", f"{words.MINUS}1,500"),
        ("KWD", "40.0355", "40.036"),
        ("KWD", "0.00042", "0.00042"),
        ("CNY", "30.6875", "30.69"),
        ("", "30.6875", "30.69"),
    ],
)
def test_money_has_the_places_of_its_currencys_smallest_unit(
    currency: str, amount: str, said: str
) -> None:
    assert words.cents(Decimal(amount), currency) == said


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert words.money(Decimal("-0.0001"), 2) == "0.00"
    assert words.money(Decimal("-1.0235"), 2) == f"{words.MINUS}1.02"


def test_whole_units_are_enough_from_a_hundred_on() -> None:
    assert words.dollars(Decimal("99.5"), "USD") == "99.50"
    assert words.dollars(Decimal("99.4"), "JPY") == "99"
    assert words.dollars(Decimal("100.4"), "KWD") == "100"


@every_case(
    ("currency", "total", "places"),
    [
        ("USD", "100", 2),
        ("USD", "99", 4),
        ("USD", "-0.5", 6),
        ("JPY", "-100", 0),
        ("JPY", "99", 2),
        ("BHD", "100", 3),
    ],
)
def test_a_small_bills_parts_have_more_places(currency: str, total: str, places: int) -> None:
    assert words.decimal_places(Decimal(total), currency) == places


def test_a_report_of_yen_has_no_decimals() -> None:
    billed = month.a_line(billed=Decimal("1234.4"), amortised=Decimal("1234.4"))
    told = story.report_document(Evidence(report=month.a_report(billed, currency="JPY")))
    assert (told.total.text, told.total.exact) == ("1,234", "1234.4")
    text = formats.write(told, Format.MD)
    assert "| 1,234 |" in text
    assert "1,234.4" not in text
