"""More traps of bills (91 to 95): times, nothing, names and tags that are said in other ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.ingest import bill
from spark.rules.names import Component
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills, here
from tests.unit.spark.written import usage

CLUSTER = "resourceTags/user:stillwater:cluster"
# 2026-11-01 and 2026-11-20 12:00, both UTC.
MONTH, HOUR = 1_793_491_200, 1_795_176_000
STREAMING = KafkaTags("team", "streaming")


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_92_columns_of_numbers_are_times_by_their_size_and_accounts_with_their_zeros(
    tmp_path: Path, unit: int
) -> None:
    row = {**bills.CUR_ROW, "resource_tags": "{}"}
    row["bill_billing_period_start_date"] = MONTH * unit
    row["line_item_usage_start_date"] = HOUR * unit
    row["line_item_usage_account_id"] = 12 if unit > 1 else 12.0
    pq.write_table(pa.table({name: [value] for name, value in row.items()}), tmp_path / "b.parquet")
    (found,) = usage(tmp_path / "b.parquet")
    assert (found.billing_period, found.day) == ("2026-11", date(2026, 11, 20))
    assert found.account == "000000000012"


def test_94_columns_of_focus_are_known_by_their_display_names(tmp_path: Path) -> None:
    shown = {"ProviderName": "Provider", "PublisherName": "Publisher", "ResourceId": "Resource ID"}
    row = {**bills.FOCUS_ROW, "PublisherName": "AWS", "Tags": '{"stillwater:cluster": "harbour"}'}
    columns = {shown.get(name, _apart(name)): [value] for name, value in row.items()}
    pq.write_table(pa.table(columns), tmp_path / "bill.parquet")
    delivery = bill.read(tmp_path / "bill.parquet")
    (found,) = here.usage_rows(delivery)
    assert (found.provider, found.cluster, found.component) == ("AWS", "harbour", Component.OTHER)
    assert not [note for note in delivery.notes if "ProviderName" in note]


def _apart(name: str) -> str:
    return "".join(f" {letter}" if letter.isupper() else letter for letter in name).strip()


def test_95_a_cost_category_or_a_tag_of_the_account_says_whose_it_is(tmp_path: Path) -> None:
    said: Mapping[str, Mapping[str, str]] = {
        "resource": {"resourceTags/team": "streaming", "accountTag/team": "web"},
        "category": {"costCategory/team": "streaming"},
        "account": {"accountTag/team": "streaming"},
        "another resource": {"resourceTags/team": "web", "accountTag/team": "streaming"},
        "whoever ran it": {"userAttribute/team": "streaming"},
    }
    rows = [
        {**bills.CUR_ROW, "line_item_usage_account_id": name, "tags": [*tags.items()]}
        for name, tags in said.items()
    ]
    names = [name for name in rows[0] if name != "resource_tags"]
    kinds = {"tags": pa.map_(pa.string(), pa.string())}
    columns = {name: pa.array([row[name] for row in rows], kinds.get(name)) for name in names}
    pq.write_table(pa.table(columns), tmp_path / "bill.parquet")
    assert _kafkas(tmp_path / "bill.parquet") == {"resource", "category", "account"}
    sorted_by = {"x_CostCategories": json.dumps({"team": "streaming"})}
    path = bills.focus_file(tmp_path / "focus.csv", [{"SubAccountId": "focus", **sorted_by}, {}])
    assert _kafkas(path) == {"focus"}


def _kafkas(path: Path) -> set[str]:
    """Return the accounts of what is Kafka's on a bill."""
    rows = here.usage(path, STREAMING)
    return {row.account for row in rows if row.attribution != "unattributed"}
