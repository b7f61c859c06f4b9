"""What a worker makes of its share of a bill's files: days of all of them, added up once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark.ingest import arrow
from spark.ingest.combine import combined_lines
from spark.ingest.grain import Grain
from spark.tag_keys import OURS

TAGS = pa.map_(pa.string(), pa.string())
COLUMNS = pa.schema(
    [
        ("at", pa.timestamp("us")),
        ("meter", pa.string()),
        ("unit", pa.string()),
        ("tags", TAGS),
        ("cost", "float64"),
    ]
)
PERIOD = "month"
DAY = datetime(2026, 10, 1, tzinfo=UTC).replace(tzinfo=None)


def rows_of(folder: Path, files: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """Write files, and return the rows that one worker hands on of them."""
    pieces = []
    for number, table in enumerate(files):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        pieces.append(arrow.Piece(str(path), 0, table.num_rows, "2026-10"))
    like = combined_lines(pa.RecordBatch.from_pylist([], COLUMNS), ["cost"])
    like = like.append_column(PERIOD, pa.array([], pa.string()))
    kind = from_arrow_schema(like.schema, prefer_timestamp_ntz=True)
    worker = arrow._Rows([pieces], COLUMNS, ("cost",), PERIOD, kind, Grain(OURS, "none", "none"))
    share = pa.RecordBatch.from_pydict({"id": [0]})
    return [row for batch in worker([share]) for row in batch.to_pylist()]


def lines(unit: str | None, *costs: float, meter: str = "gp3") -> pa.Table:
    tags = [(OURS.cluster, "harbour")]
    shared = {"at": DAY, "meter": meter, "unit": unit, "tags": tags}
    rows = [{**shared, "cost": cost} for cost in costs]
    return pa.Table.from_pylist(rows, COLUMNS)


def test_files_that_hold_the_same_day_come_as_one_row_of_it(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, [lines("GB", 0.5, 0.7), lines("GB", 0.9)])
    assert row["cost"] == {"whole": 2, "trillionths": 100_000_000_000}
    assert (row["charges"], row["unit"], row[PERIOD]) == (3, "GB", "2026-10")


def test_a_column_that_one_file_lacks_or_has_of_no_kind_is_empty_there(tmp_path: Path) -> None:
    empty = lines(None, 0.25)
    of_no_kind = empty.set_column(2, "unit", pa.nulls(1))
    found = rows_of(tmp_path, [lines("GB", 0.5), of_no_kind, empty.drop_columns(["unit"])])
    assert {row["unit"]: row["charges"] for row in found} == {"GB": 1, None: 2}


def test_lines_of_a_file_without_tags_are_without_them(tmp_path: Path) -> None:
    found = rows_of(tmp_path, [lines("GB", 0.5), lines("GB", 0.25).drop_columns(["tags"])])
    tagged = {tuple(row["tags"] or ()): row["charges"] for row in found}
    assert tagged == {((OURS.cluster, "harbour"),): 1, (): 1}


def test_more_rows_than_a_worker_may_hold_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "ROWS_HELD", 4)
    files = [lines("GB", 1.0, meter=f"m{n}") for n in range(9)]
    found = rows_of(tmp_path, [*files, *files])
    assert len(found) > len(files)
    assert sum(row["charges"] for row in found) == len(files) * 2


def test_texts_as_views_are_left_to_sparks_own_reader() -> None:
    schema = pa.schema([("cost", pa.float64()), ("what", pa.string_view())])
    columns = arrow.Columns(cast("SparkSession", None), [], schema, PERIOD)
    assert columns.added_up(["cost", "what"], [], ["cost"], "cost", Grain(OURS, "a", "b")) is None
