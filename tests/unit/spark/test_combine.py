"""What is added up in columns, held against the same done line by line in Python's numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.ingest.combine import combined_lines, merged_tables, total
from spark.money import LARGEST, TRILLION, of_parts

START = datetime(2026, 10, 30, tzinfo=UTC)
KINDS = pa.schema(
    [
        ("at", pa.timestamp("ms")),
        ("meter", pa.string()),
        ("account", pa.int64()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("cost", pa.float64()),
        ("net", pa.float64()),
    ]
)
AMOUNTS = ("cost", "net")
Line = dict[str, Any]

amounts = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -1e300, 1e14])
tags = st.dictionaries(st.sampled_from("abc"), st.none() | st.sampled_from("xyz"), max_size=3)
lines = st.fixed_dictionaries(
    {
        "at": st.none() | st.integers(0, 71).map(lambda hour: START + timedelta(hours=hour)),
        "meter": st.none() | st.sampled_from(["", "BoxUsage", "gp3"]),
        "account": st.none() | st.integers(1, 2),
        "tags": st.none() | tags.map(lambda found: list(found.items())),
        "cost": amounts,
        "net": amounts,
    }
)


def batch(rows: Sequence[Line], *, numbered: bool = False) -> pa.RecordBatch:
    """Return lines as a file's columns are read, `numbered` as numbers of a dictionary."""
    columns = []
    for field in KINDS:
        values = [row[field.name] for row in rows]
        if field.name == "at":
            values = [value and value.replace(tzinfo=None) for value in values]
        column = pa.array(values, field.type)
        columns.append(_numbered(column) if numbered else column)
    return pa.RecordBatch.from_arrays(columns, names=KINDS.names)


def _numbered(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return column.dictionary_encode()
    if pa.types.is_map(column.type):
        parts = (column.keys.dictionary_encode(), column.items.dictionary_encode())
        mask = column.is_null() if column.null_count else None
        return pa.MapArray.from_arrays(column.offsets, *parts, mask=mask)
    return column


def exact(value: float | None) -> Decimal | None:
    """Return an amount as it counts: whole dollars and trillionths, or nothing."""
    if value is None or not abs(value) < LARGEST:
        return None
    whole = math.trunc(value)
    # Of fifteen digits those that the dollars leave.
    step = 10.0 ** max(0, len(str(abs(whole))) - 3)
    return of_parts(whole, round(round((value - whole) * 10**12 / step) * step))


def plainly(rows: Sequence[Line]) -> dict[Any, tuple[int, tuple[Decimal | None, ...]]]:
    """Return the same sums, one line after the other."""
    found: dict[Any, list[Line]] = defaultdict(list)
    for row in rows:
        day = row["at"] and row["at"].date()
        known = None if row["tags"] is None else tuple(row["tags"])
        nothing = tuple(exact(row[name]) is None for name in AMOUNTS)
        found[day, row["meter"], row["account"], known, nothing].append(row)
    return {
        key: (len(group), tuple(_sum(group, n) for n in AMOUNTS)) for key, group in found.items()
    }


def _sum(group: Sequence[Line], name: str) -> Decimal | None:
    values = [exact(row[name]) for row in group]
    return None if values[0] is None else sum((v for v in values if v is not None), Decimal(0))


def as_made(rows: pa.RecordBatch) -> dict[Any, tuple[int, tuple[Decimal | None, ...]]]:
    return as_read(combined_lines(rows, AMOUNTS))


def as_read(made: pa.Table) -> dict[Any, tuple[int, tuple[Decimal | None, ...]]]:
    table = made.to_pylist()
    found = {}
    for row in table:
        sums = tuple(None if row[name] is None else of_parts(**row[name]) for name in AMOUNTS)
        known = None if row["tags"] is None else tuple(row["tags"])
        day = row["at"] and row["at"].date()
        key = (day, row["meter"], row["account"], known, tuple(s is None for s in sums))
        found[key] = (row["charges"], sums)
    assert len(found) == len(table), "two rows say the same"
    return found


@given(st.lists(lines, max_size=40), st.booleans())
def test_lines_that_differ_in_their_hour_alone_are_one_row_and_their_exact_sum(
    rows: list[Line], numbered: bool
) -> None:
    assert as_made(batch(rows, numbered=numbered)) == plainly(rows)


@given(st.lists(lines, max_size=25), st.randoms())
def test_the_order_of_lines_makes_no_difference(rows: list[Line], dice: Any) -> None:
    before = as_made(batch(rows))
    dice.shuffle(rows)
    assert as_made(batch(rows)) == before


@given(st.lists(st.lists(lines, max_size=20), min_size=1, max_size=4))
def test_what_several_files_hold_of_a_day_is_added_up_once_more(files: list[list[Line]]) -> None:
    tables = [combined_lines(batch(rows), AMOUNTS) for rows in files]
    assert as_read(merged_tables(tables, AMOUNTS)) == plainly(
        [line for rows in files for line in rows]
    )


def test_less_than_a_dollar_is_kept_as_trillionths_so_that_more_can_be_added() -> None:
    rows = pa.RecordBatch.from_pydict({"cost": pa.array([0.9, -0.95] + [0.9] * 40)})
    (found,) = merged_tables([combined_lines(rows, ["cost"])] * 3, ["cost"]).to_pylist()
    assert of_parts(**found["cost"]) == Decimal("107.85")
    assert found["charges"] == 126
    assert 0 <= found["cost"]["trillionths"] < TRILLION


def test_sums_of_sums_that_have_no_place_are_refused_and_never_wrapped_around() -> None:
    rows = pa.RecordBatch.from_pydict({"cost": pa.array([9e14] * 6_000)})
    with pytest.raises(OverflowError):
        merged_tables([combined_lines(rows, ["cost"])] * 2, ["cost"])


def test_many_columns_of_many_values_are_told_apart() -> None:
    # 5,000 values in six columns are 10^22 combinations: more than a number has room for.
    count = 5_000
    columns = {f"c{n}": pa.array([f"{n}-{row}" for row in range(count)] * 2) for n in range(6)}
    rows = pa.RecordBatch.from_pydict({**columns, "cost": pa.array([0.1] * 2 * count)})
    found = combined_lines(rows, ["cost"])
    assert found.num_rows == count
    assert set(found["charges"].to_pylist()) == {2}
    assert {of_parts(**cost) for cost in found["cost"].to_pylist()} == {Decimal("0.2")}
    assert found["c0"].to_pylist() == [f"0-{row}" for row in range(count)]


def test_sums_keep_every_trillionth_of_a_large_bill() -> None:
    rows = pa.RecordBatch.from_pydict({"cost": pa.array([9e14, 1e-12, -0.3] * 3)})
    (found,) = combined_lines(rows, ["cost"]).to_pylist()
    assert of_parts(**found["cost"]) == Decimal("2699999999999999.100000000003")
    assert total(rows["cost"]) == (9, Decimal("2699999999999999.100000000003"))


@given(st.integers(1 - 10**15, 10**15 - 1), st.integers(0, 12))
def test_a_double_counts_as_the_decimal_that_was_written(digits: int, places: int) -> None:
    written = Decimal(digits).scaleb(-places)
    assert total(pa.array([float(written)])) == (1, written)


def test_a_sum_that_has_no_place_is_refused_and_never_wrapped_around() -> None:
    rows = pa.RecordBatch.from_pydict({"cost": pa.array([9e14] * 12_000)})
    with pytest.raises(OverflowError):
        combined_lines(rows, ["cost"])
    with pytest.raises(OverflowError):
        total(rows["cost"])
