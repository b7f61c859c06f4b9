"""Money is read to as many places as it has, and added up exactly, whatever its order and files."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost import pricing
from spark.ingest.columns import LARGEST, Amounts, amounts_of, decimal_of, decimal_read, groups_of
from spark.report import document, formats
from tests.every_case import every_case
from tests.unit.spark import month

doubles = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -1e300, 1e14])


def exact(value: float | None) -> Decimal | None:
    """Return a double as it counts: whole dollars and trillionths, or nothing."""
    if value is None or not abs(value) < LARGEST:
        return None
    whole = math.trunc(value)
    # Of fifteen digits those that the dollars leave.
    step = 10.0 ** max(0, len(str(abs(whole))) - 3)
    trillionths = round(round((value - whole) * 10**12 / step) * step)
    return decimal_of(whole, 0, trillionths * 10**6)


def each_of(amounts: Amounts) -> list[Decimal | None]:
    rows = zip(*(part.tolist() for part in amounts.parts), amounts.known.tolist(), strict=True)
    return [decimal_of(*parts) if known else None for *parts, known in rows]


@given(st.lists(st.tuples(st.integers(0, 4), doubles), max_size=40))
def test_groups_come_to_the_exact_sum_of_what_is_known(rows: Sequence[Any]) -> None:
    if not rows:
        return
    wanted: dict[int, list[Decimal | None]] = defaultdict(list)
    for group, value in rows:
        wanted[group].append(exact(value))
    order, starts = groups_of(np.array([group for group, _ in rows]))
    amounts = amounts_of(pa.array([value for _, value in rows], pa.float64()))
    found = dict(zip(sorted(wanted), each_of(amounts.grouped(order, starts)), strict=True))
    for group, values in wanted.items():
        known = [value for value in values if value is not None]
        assert found[group] == (sum(known, Decimal(0)) if known else None)
    known = [value for values in wanted.values() for value in values if value is not None]
    assert amounts.total() == (len(known), sum(known, Decimal(0)))


@given(st.integers(1 - 10**15, 10**15 - 1), st.integers(0, 12))
def test_a_double_counts_as_the_decimal_that_was_written(digits: int, places: int) -> None:
    written = Decimal(digits).scaleb(-places)
    assert amounts_of(pa.array([float(written)])).total() == (1, written)


@given(st.lists(st.decimals(-(10**14), 10**14, places=18), max_size=9))
def test_decimals_and_texts_keep_every_place(values: list[Decimal]) -> None:
    total = (len(values), pricing.total(values))
    assert amounts_of(pa.array(values, pa.decimal128(38, 18))).total() == total
    assert amounts_of(pa.array([f"{value:f}" for value in values], pa.string())).total() == total


@every_case(
    ("written", "read"),
    [
        ("1.25", "1.25"),
        (" 1.25 ", "1.25"),
        ("8E-7", "0.0000008"),
        ("+.5", "0.5"),
        ("-0", "0"),
        ("0.0000000000000000015", "0.000000000000000002"),
        *((each, None) for each in ("", "NULL", "NaN", "1,25", "$1", "1e15", "0x1", "Infinity")),
    ],
)
def test_a_text_is_an_amount_or_none(written: str, read: str | None) -> None:
    assert decimal_read(written) == (None if read is None else Decimal(read))


def test_other_kinds_of_columns_count_by_their_digits() -> None:
    for column in (pa.array([0.1, 0.2], pa.float32()), pa.array(["0.1", "0.2"])):
        assert amounts_of(column).total() == (2, Decimal("0.3"))
    assert amounts_of(pa.array([1, 2])).total() == (2, Decimal(3))
    assert amounts_of(pa.nulls(2)).total() == (0, Decimal(0))


def test_sums_keep_every_trillionth_of_a_large_bill() -> None:
    found = amounts_of(pa.array([9e14, 1e-12, -0.3] * 3))
    assert found.total() == (9, Decimal("2699999999999999.100000000003"))


def test_a_sum_that_has_no_place_is_refused_and_never_wrapped_around() -> None:
    amounts = amounts_of(pa.array([9e14] * 12_000))
    with pytest.raises(OverflowError):
        amounts.grouped(np.arange(12_000), np.zeros(1, np.int64))


@every_case(
    ("say", "currency", "amount", "said"),
    [
        # As many places as the currency's smallest unit has, or what is left of a small amount.
        (document.cents, "USD", "30.6875", "30.69"),
        (document.cents, "USD", "17.1", "17.10"),
        (document.cents, "USD", "0.24", "0.24"),
        (document.cents, "USD", "0.0031", "0.0031"),
        (document.cents, "USD", "0.0000000001", "0.00000000010"),
        (document.cents, "USD", "0", "0"),
        (document.cents, "USD", "-0.5", f"{document.MINUS}0.50"),
        (document.cents, "JPY", "56789.7", "56,790"),
        (document.cents, "JPY", "0.25", "0.25"),
        (document.cents, "KRW", "-1500", f"{document.MINUS}1,500"),
        (document.cents, "KWD", "40.0355", "40.036"),
        (document.cents, "KWD", "0.00042", "0.00042"),
        (document.cents, "CNY", "30.6875", "30.69"),
        (document.cents, "", "30.6875", "30.69"),
        # Whole units are enough from a hundred on.
        (document.dollars, "USD", "99.5", "99.50"),
        (document.dollars, "JPY", "99.4", "99"),
        (document.dollars, "KWD", "100.4", "100"),
        # A small bill's parts have more places.
        (document.decimal_places, "USD", "100", 2),
        (document.decimal_places, "USD", "99", 4),
        (document.decimal_places, "USD", "-0.5", 6),
        (document.decimal_places, "JPY", "-100", 0),
        (document.decimal_places, "JPY", "99", 2),
        (document.decimal_places, "BHD", "100", 3),
    ],
)
def test_money_has_the_places_of_its_currency_and_size(
    say: Callable[[Decimal, str], object], currency: str, amount: str, said: object
) -> None:
    assert say(Decimal(amount), currency) == said


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert document.money(Decimal("-0.0001"), 2) == "0.00"
    assert document.money(Decimal("-1.0235"), 2) == f"{document.MINUS}1.02"


def test_a_report_of_yen_has_no_decimals() -> None:
    told = month.document_of(month.a_line("1234.4", "1234.4"), currency="JPY")
    assert (told.total.text, told.total.exact) == ("1,234", "1234.4")
    text = formats.write(told, formats.Format.MD)
    assert "| 1,234 |" in text
    assert "1,234.4" not in text
