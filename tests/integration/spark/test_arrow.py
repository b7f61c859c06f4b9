"""Two readers of one Parquet export: what Arrow adds up and what Spark reads line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from core.ground.errors import InvalidInput
from local.bills import bulk
from spark import tables
from spark.ingest import arrow, bill
from spark.ingest.delivery import Delivery
from spark.jobs import ingest
from spark.schemas import LINE_AMOUNTS, PARTS
from spark.tables import ParquetStore
from tests.integration.spark import bills

pytestmark = pytest.mark.integration
NOW = datetime(2026, 11, 20, tzinfo=UTC)
AT = "line_item_usage_start_date"
COST = "line_item_unblended_cost"
ODD: Sequence[Mapping[str, Any]] = (
    {},
    {AT: datetime(2026, 11, 20, 23, 59)},  # noqa: DTZ001 - CUR writes no zone
    {AT: datetime(2026, 11, 21)},  # noqa: DTZ001 - the same
    {AT: None},
    {COST: None},
    {COST: float("nan")},
    {COST: 1e300},
    {COST: -0.1, "line_item_usage_amount": None},
    {"line_item_line_item_type": "RIFee", "reservation_unused_recurring_fee": 0.3},
    {
        "line_item_line_item_type": "RIFee",
        "reservation_unused_recurring_fee": 0.3,
        "reservation_unused_amortized_upfront_fee_for_billing_period": float("nan"),
    },
    {"resource_tags": {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}},
    {"resource_tags": {"user_stillwater_cluster": "harbour", "team": None}},
    {"line_item_resource_id": None, "line_item_currency_code": "USD"},
    {"bill_billing_period_start_date": None},
    {"bill_billing_period_start_date": datetime(2026, 10, 1)},  # noqa: DTZ001 - the same
    {"line_item_line_item_type": "Tax", "line_item_line_item_description": "Tax of a kind"},
)


def is_added_up(delivery: Delivery) -> bool:
    (part,) = delivery.parts
    return {part.schema[name].dataType for name in LINE_AMOUNTS} == {PARTS}


def line_by_line(monkeypatch: pytest.MonkeyPatch, session: SparkSession, folder: Path) -> Delivery:
    with monkeypatch.context() as patch:
        patch.setattr(arrow, "month_columns", lambda *_: None)
        return bill.read(session, folder)


def kept(
    session: SparkSession, delivery: Delivery, folder: Path
) -> tuple[ingest.Ingested, dict[str, list[str]]]:
    """Run the jobs; return what came in, and every row of their tables."""
    store = ParquetStore(session, str(folder))
    found = ingest.run(session, delivery, store, now=NOW)
    made = (tables.USAGE, tables.QUARANTINE, tables.DELIVERIES, tables.COST)
    rows = {table.name: sorted(map(repr, store.read(table).collect())) for table in made}
    return found, rows


@pytest.mark.long
def test_both_readers_make_the_same_tables_of_lines_that_are_odd(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bills.cur_export(tmp_path / "bill", [*ODD, *ODD])
    added_up = bill.read(session, folder)
    assert is_added_up(added_up)
    plain = line_by_line(monkeypatch, session, folder)
    assert not is_added_up(plain)
    found, rows = kept(session, added_up, tmp_path / "arrow")
    assert (found, rows) == kept(session, plain, tmp_path / "spark")
    assert found.lines == 2 * len(ODD)
    assert sum(found.quarantined.values()) == len(rows["quarantine"]) == 12
    assert any("'NaN' is not a number" in row for row in rows["quarantine"])


@pytest.mark.long
def test_both_readers_make_the_same_tables_of_a_whole_bill(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = bulk.write(tmp_path / "bill", rows=20_000, months=["2026-09", "2026-10"])
    # Columns that AWS added after the first month, or that it had none of, and files in pieces.
    for number, path in enumerate(sorted((tmp_path / "bill").glob("data/*/*.parquet"))):
        table = pq.read_table(path, partitioning=None)
        if "2026-09" in str(path):
            table = table.drop_columns(
                ["line_item_net_unblended_cost", "line_item_availability_zone", "resource_tags"]
            )
        pq.write_table(table, path, row_group_size=1_000 + number)
    added_up = bill.read(session, tmp_path / "bill")
    assert is_added_up(added_up)
    found, rows = kept(session, added_up, tmp_path / "arrow")
    plain = line_by_line(monkeypatch, session, tmp_path / "bill")
    assert (found, rows) == kept(session, plain, tmp_path / "spark")
    assert found.lines == lines
    assert list(found.months) == ["2026-09", "2026-10"]
    assert len(rows["usage"]) < lines / 10


@pytest.mark.parametrize(
    ("column", "kind"),
    [(COST, pa.decimal128(30, 12)), (COST, pa.string()), ("line_item_usage_amount", pa.float32())],
)
def test_money_that_is_no_double_is_read_line_by_line(
    session: SparkSession, tmp_path: Path, column: str, kind: pa.DataType
) -> None:
    folder = bills.cur_export(tmp_path, [{COST: 0.5}, {COST: 0.25}])
    (path,) = folder.glob("data/*/*.parquet")
    table = pq.ParquetFile(path).read()
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, pc.cast(table[column], kind)), path)
    delivery = bill.read(session, folder)
    assert not is_added_up(delivery)
    rows: list[Row] = ingest.usage(*delivery.parts).collect()
    assert [row.billed_cost for row in rows] == [Decimal("0.75")]
    assert delivery.control()["2026-11"].billed == Decimal("0.75")


@pytest.mark.parametrize("column", [COST, "line_item_resource_id"])
def test_a_damaged_file_is_one_sentence_and_nothing_is_written(
    session: SparkSession, tmp_path: Path, column: str
) -> None:
    many = [{"line_item_resource_id": f"i-{number}"} for number in range(2_000)]
    folder = bills.cur_export(tmp_path / "bill", many)
    (path,) = folder.glob("data/*/*.parquet")
    _damage(path, column)
    store = ParquetStore(session, str(tmp_path / "tables"))
    with pytest.raises(InvalidInput) as raised:
        ingest.run(session, bill.read(session, folder), store, now=NOW)
    (problem,) = raised.value.problems
    assert "The file export-00001.snappy.parquet is damaged; export it again. In its" in problem
    assert not (tmp_path / "tables").exists()


def _damage(path: Path, column: str) -> None:
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    (chunk,) = (c for c in chunks if c.path_in_schema == column)
    first, size = chunk.dictionary_page_offset, chunk.total_compressed_size
    data = bytearray(path.read_bytes())
    data[first : first + size] = b"\xff" * size
    path.write_bytes(data)
