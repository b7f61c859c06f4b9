"""What a worker makes of its share of a bill's files: days of all of them, added up once."""

import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.ground.errors import InvalidInput
from spark.ingest import bill as bill_module
from spark.ingest import pieces
from spark.ingest.bill import shares_of
from spark.ingest.columns import Alike
from spark.ingest.pieces import Piece
from tests.unit.spark import bills
from tests.unit.spark.bills import NOON, OWN_TAGS, Line

COST, AT, TAGS = "line_item_unblended_cost", "line_item_usage_start_date", "resource_tags"
MIDNIGHT = NOON.replace(hour=0)


def bill(folder: Path, *files: Sequence[Line]) -> Path:
    """Write files of one month without a manifest."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        bills.cur_file(folder / f"{number}.parquet", rows)
    return folder


def at(hours: int) -> Line:
    return {AT: MIDNIGHT + timedelta(hours=hours)}


def test_the_order_of_lines_and_files_makes_no_difference(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - an order, no secret
    lines = [
        {
            COST: dice.choice([0.1, -0.3, 1e-10, 123456.78, None]),
            **at(dice.randrange(60)),
            "line_item_line_item_type": dice.choice(["Usage", "Tax", "EdpDiscount"]),
            TAGS: dice.choice([{}, OWN_TAGS, {**OWN_TAGS, "team": "web"}]),
        }
        for _ in range(200)
    ]
    before = bills.usage(bill(tmp_path / "one", lines))
    dice.shuffle(lines)
    after = bills.usage(bill(tmp_path / "two", lines[:50], lines[50:51], lines[51:]))
    assert set(before) == set(after)
    known = [Decimal(repr(line[COST])) for line in lines if line[COST] is not None]
    assert sum(row.billed_cost for row in after) == sum(known)
    assert sum(row.charges for row in after) == len(lines)


def test_shares_that_threads_add_up_are_one_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {COST: cents / 100, **at(cents), TAGS: tags}
        for cents in range(-40, 40)
        for tags in ({}, OWN_TAGS)
    ]
    folder = bill(tmp_path / "bill", lines[::3], lines[1::3], lines[2::3])
    alone = bills.usage(folder)
    monkeypatch.setattr(bill_module, "LINES_OF_ONE_SHARE", 0)
    monkeypatch.setattr(bill_module, "THREADS", 2)
    monkeypatch.setattr(pieces, "LINES_AT_ONCE", 7)
    assert len(shares_of(bills.opened(folder).pieces, bill_module.THREADS)) == 3
    assert sorted(bills.usage(folder), key=str) == sorted(alone, key=str)


def test_bytes_between_zones_that_cost_nothing_are_no_flow(tmp_path: Path) -> None:
    moved = {"line_item_usage_type": "DataTransfer-xAZ-In-Bytes", TAGS: OWN_TAGS}
    rows = bills.usage(bill(tmp_path / "bill", [{**moved, COST: 0.01}, {**moved, COST: 0.0}]))
    assert {row.billed_cost > 0: row.flow is not None for row in rows} == {True: True, False: False}


def test_a_column_that_one_file_lacks_or_has_of_no_kind_is_empty_there(tmp_path: Path) -> None:
    folder = bill(tmp_path / "bill", [{}])
    bills.cur_file(folder / "null.parquet", [{}], kinds={"pricing_unit": pa.null()})
    bills.cur_file(folder / "gone.parquet", [{}], without=["pricing_unit"])
    assert {row.unit: row.charges for row in bills.usage(folder)} == {"Hrs": 1, None: 2}


def test_money_in_views_of_text_is_read_and_quarantined(tmp_path: Path) -> None:
    lines = [{COST: "2"}, {COST: "1"}, {COST: "much"}]
    path = bills.cur_file(tmp_path / "bill.parquet", lines, kinds={COST: pa.string_view()})
    delivery = bills.opened(path)
    assert [row.billed_cost for row in bills.usage_rows(delivery) if row.billed_cost] == [3]
    (unread,) = delivery.unread_lines
    assert unread.reason == f"{COST} 'much' is not a number"


def test_texts_come_as_numbers_where_their_file_numbers_them(tmp_path: Path) -> None:
    lines = 600_000
    # Too many for a byte each, so that their numbers alone take more than a MiB.
    few = pa.array([f"i-{n}" for n in range(1000)]).take(pa.array(np.arange(lines) % 1000))
    many = pa.array([f"resource-{n}" for n in range(lines)])
    pq.write_table(pa.table({"few": few, "many": many}), tmp_path / "bill.parquet")
    piece = Piece(str(tmp_path / "bill.parquet"), None, ["few", "many"], lines, 0)
    assert pieces._numbered(piece, ["few", "many"]) == ["few"]


def test_many_columns_of_many_values_are_told_apart() -> None:
    # 5,000 values in six columns are 10^22 combinations: more than a number has room for.
    count = 5_000
    alike = Alike(2 * count)
    for column in range(6):
        alike.tell_apart(pa.array([f"{column}-{row}" for row in range(count)] * 2))
    number, found = alike.numbers()
    assert found == len(np.unique(number)) == count
    assert (number[:count] == number[count:]).all()


def test_a_file_whose_sum_has_no_place_is_refused(tmp_path: Path) -> None:
    folder = bill(tmp_path / "bill", [{COST: 9e14}] * 6_000)
    with pytest.raises(InvalidInput, match=r"0\.parquet is damaged"):
        bills.usage(folder)


def test_shares_are_even_and_a_small_bill_is_one() -> None:
    pieces = [Piece(f"/{n}", None, (), lines=n * 1_000_000) for n in range(1, 9)]
    shares = shares_of(pieces, cores=2)
    sizes = [sum(piece.lines for piece in share) for share in shares]
    dealt = sorted(piece.address for share in shares for piece in share)
    assert dealt == [piece.address for piece in pieces]
    assert max(sizes) <= 2 * min(sizes)
    assert len(shares_of([Piece(f"/{n}", None, (), lines=9) for n in range(9)], cores=2)) == 1
