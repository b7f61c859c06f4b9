"""More traps of bills (96 to 100): what a query or a tool makes of tags, and zones by their ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark import tables
from spark.ingest import cur
from spark.ingest.delivery import Format
from tests.unit.spark import bills
from tests.unit.spark.written import ingested, refused, usage

TAGS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}


def _with(folder: Path, columns: Mapping[str, list[str]]) -> Path:
    (path,) = folder.glob("data/*/*.parquet")
    table = pq.read_table(path, partitioning=None)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path)
    return folder


def test_96_a_data_export_is_one_whatever_its_query_calls_its_columns(tmp_path: Path) -> None:
    rows = bills.cur_export(tmp_path, [{}, {}], without=["resource_tags"])
    # AWS's own way from legacy reports to a query selects product_region; a tag has any name.
    own = {"stillwater_cluster": ["harbour", ""], "user_stillwater_pool": ["broker", ""]}
    folder = _with(rows, {"product_region": ["us-east-1"] * 2, **own})
    came, found, store = ingested(folder)
    assert cur.NO_TAGS not in came.notes
    assert {(row.cluster, row.owner): row.billed_cost for row in found} == {
        ("harbour", "broker-a"): 1,
        (None, "unattributed"): 1,
    }
    (noted,) = store.rows(tables.DELIVERIES)
    assert noted.format == Format.CUR2
    lacking = bills.cur_export(
        tmp_path / "lacking", [{}], without=["resource_tags", "line_item_resource_id"]
    )
    folder = _with(lacking, {"product_region": ["us-east-1"], "user_team": ["web"]})
    assert "INCLUDE_RESOURCES" in refused(folder)


@pytest.mark.parametrize("place", ["Tags.{}", "tag_{}", "Tags.user:{}"])
def test_97_tags_that_a_tool_gave_columns_of_their_own_are_read_in_focus(
    tmp_path: Path, place: str
) -> None:
    cluster, pool = (place.format(f"stillwater:{name}") for name in ("cluster", "pool"))
    lines = [{cluster: "harbour", pool: "broker"}, {}]
    bill = bills.focus_file(tmp_path / "bill.csv", lines, without=["Tags"])
    came, found, _ = ingested(bill)
    assert {(row.cluster, row.owner): row.billed_cost for row in found} == {
        ("harbour", "broker-a"): 1,
        (None, "unattributed"): 1,
    }
    assert not [note for note in came.notes if "Tags" in note]


def test_99_a_maps_value_is_no_tag_where_another_file_has_text(tmp_path: Path) -> None:
    hostile = {"user_note": "x, user_stillwater_cluster=harbour", "user_stillwater_pool": ""}
    maps = bills.cur_export(
        tmp_path / "maps", [{"resource_tags": hostile}, {"resource_tags": TAGS}]
    )
    texts = bills.cur_export(tmp_path / "texts", [{}], without=["resource_tags"])
    _with(texts, {"resource_tags": [json.dumps(TAGS)]})
    folder = tmp_path / "bill"
    folder.mkdir()
    for name, export in (("a", maps), ("b", texts)):
        (path,) = export.glob("data/*/*.parquet")
        table = pq.read_table(path, partitioning=None)
        # The letters of a name say nothing here, either.
        spelled = [str.upper(each) if name == "b" else each for each in table.column_names]
        pq.write_table(table.rename_columns(spelled), folder / f"{name}.parquet")
    found = usage(folder)
    assert {row.cluster: row.billed_cost for row in found} == {"harbour": Decimal(2), None: 1}


def test_100_times_that_folders_say_are_read_as_spark_escapes_them(tmp_path: Path) -> None:
    named = {
        "bill_billing_period_start_date": "2026-11-01 00%3A00%3A00",
        "line_item_usage_start_date": "2026-11-20T12%3A00%3A00+00%3A00",
    }
    (part,) = bills.cur_export(tmp_path / "e", [{}], without=[*named]).glob("data/*/*.parquet")
    place = tmp_path / "bill" / Path(*(f"{name}={value}" for name, value in named.items()))
    place.mkdir(parents=True)
    part.rename(place / "100%.parquet")
    (found,) = usage(tmp_path / "bill")
    assert (found.billing_period, found.day) == ("2026-11", date(2026, 11, 20))
