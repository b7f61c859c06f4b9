"""Which bill a header belongs to, and when its columns cannot be trusted: decided without Java."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from spark.ingest import bill, cur, focus, lines
from spark.ingest.pieces import Piece
from spark.ingest.source import Source
from spark.tag_keys import KafkaTags, category_name, parse_tags, spellings

CUR = [*cur.REQUIRED, "resource_tags"]
LEGACY = ["lineItem/UsageType", "lineItem/UnblendedCost", "lineItem/UsageStartDate"]
FOCUS = list(focus.REQUIRED)
WHAT = "The bill x"


def read(columns: Sequence[str], kafka: KafkaTags | None = None) -> str:
    """Return why a bill of these columns is refused before a line of it is read."""
    piece = Piece("/bill.parquet", None, list(columns))
    with pytest.raises(InvalidInput) as raised:
        bill._delivery(None, Source("x", [piece]), WHAT, kafka or KafkaTags())
    return str(raised.value)


@pytest.mark.parametrize(
    ("columns", "twice"),
    [
        (
            [*CUR, "reservation_reservation_arn", "reservation_reservation_a_r_n"],
            "reservation_reservation_arn and reservation_reservation_a_r_n",
        ),
        ([*CUR, "lineItem/UsageType"], "line_item_usage_type and lineItem/UsageType"),
        ([*CUR, "lineitem_unblendedcost"], "line_item_unblended_cost and lineitem_unblendedcost"),
        ([*FOCUS, "Billed Cost"], "BilledCost and Billed Cost"),
        ([*FOCUS, "Tags", "tags_"], "Tags and tags_"),
        ([*FOCUS, "Resource ID", "resource_id"], "Resource ID and resource_id"),
    ],
)
def test_a_column_under_two_names_is_refused_by_both(columns: Sequence[str], twice: str) -> None:
    assert read(columns) == f"{WHAT} has one column under 2 names, {twice}; export it once."


def test_a_tag_or_category_under_two_names_is_refused_only_where_it_is_asked_for() -> None:
    pair = ["costCategory/cost center", "costCategory/cost-center"]
    assert " and ".join(pair) in read([*CUR, *pair], parse_tags("cost center", None))
    spread = ["resourcetags_user_team", "resourcetags.user.team"]
    assert " and ".join(spread) in read([*CUR, *spread], parse_tags("team", None))


@pytest.mark.parametrize(
    ("columns", "reader"),
    [
        (CUR, cur.opened),
        (LEGACY, cur.opened),
        ([name.upper() for name in CUR], cur.opened),
        (FOCUS, focus.opened),
        (["Billed Cost", "Effective Cost", "Service Name"], focus.opened),
        (["line_item_id", "line_item_description", "line_item_amount"], None),
        (["lineItem/Id", "lineItem/Amount"], None),
        (["invoice", "effective_cost", "amount"], None),
        (["id", "Billed Cost", "vendor"], None),
        (["line_item_usage_type"], None),
    ],
)
def test_a_format_is_known_by_several_of_its_columns(columns: Sequence[str], reader: Any) -> None:
    assert bill.reader_of(columns) is reader


def test_what_is_no_bill_is_told_by_its_columns() -> None:
    said = read(["line_item_id", "line_item_amount"])
    assert "neither a Cost and Usage Report nor FOCUS" in said
    assert "line_item_id, line_item_amount" in said


HEAD = "a,b,c"
LINE = "1,2,3"


@pytest.mark.parametrize(
    ("content", "names", "cells"),
    [
        (f"{HEAD},\n{LINE}\n{LINE}\n", 4, 3),
        (f"{HEAD},note\n{LINE}\n", 4, 3),
        (f"note,{HEAD}\r\n{LINE}\r\n", 4, 3),
        (f"{HEAD}\n{LINE},\n{LINE},\n", 3, 4),
        (f"{HEAD}\n0,{LINE}\n1,{LINE}\n", 3, 4),
        (f'{HEAD},\n"1\n1",2,3\n', 4, 3),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_is_longer_or_shorter_than_every_line_is_refused(
    tmp_path: Path, content: str, names: int, cells: int, packed: bool
) -> None:
    path = tmp_path / ("bill.csv.gz" if packed else "bill.csv")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(InvalidInput) as raised:
        lines.header(path.read_bytes(), WHAT, is_packed=packed)
    assert f"names {names} columns and its lines hold {cells} cells" in str(raised.value)
    assert "too many" in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [
        f"{HEAD}\n",
        f"{HEAD}\n\n{LINE}\n",
        f"{HEAD},\n{LINE},\n",
        f"{HEAD}\n{LINE}\n1,2\n",
        f'{HEAD}\n1,"2, and 3",3\n',
        f'{HEAD}\n1,"2,3\n{LINE}\n',
        f'{HEAD}\n1,"{{\\"x\\": 1, \\"y\\": 2}}",3\n',
    ],
)
def test_a_header_of_its_lines_length_is_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(content)
    assert lines.header(path.read_bytes(), WHAT).names[:3] == ("a", "b", "c")


@pytest.mark.parametrize(
    "asked",
    ["costCategory/team", "cost_category/team", "cost_category_team", "x_CostCategories.team"],
)
def test_a_cost_category_is_found_by_any_of_its_names(asked: str) -> None:
    assert category_name(asked) == "team"
    assert {"costCategory/team", "team"} <= set(spellings(asked))


@pytest.mark.parametrize("key", ["team", "cost_centre", "costCategory"])
def test_a_key_that_names_no_category_stays_as_it_is(key: str) -> None:
    assert category_name(key) == key


def test_a_bill_with_the_asked_category_does_not_lack_tags() -> None:
    category = {"cost_category_team", "line_item_resource_id"}
    assert cur.NO_TAGS not in cur._lacking(category, str, has_tags=True)
    maps = (*focus.TAGS, focus.CATEGORIES)
    assert not any("Tags" in each for each in focus._lacking({"xcostcategories"}, {}, maps))
    assert any("Tags" in each for each in focus._lacking(set(), {}, maps))
    kafka = parse_tags("costCategory/team", None)
    assert focus._tag_columns(["x_CostCategories.team"], kafka)
