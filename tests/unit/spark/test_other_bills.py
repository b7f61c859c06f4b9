"""More traps of bills (57 to 60): other sellers, other services, other people's writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark import tables
from spark.rules.names import Component, Easy
from spark.transforms.easy import easy_savings
from spark.transforms.grain import table_grain
from tests.unit.spark import bills
from tests.unit.spark.written import ingested

OURS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
CUR = {**bills.CUR_ROW, "resource_tags": OURS, "bill_billing_entity": "AWS"}


def lines(
    path: Path, rows: Sequence[Mapping[str, Any]], *, times: str = "ms", loud: bool = False
) -> Path:
    """Write lines of a CUR 2.0 in Parquet, their times by a unit, their columns in capitals."""
    kinds = {datetime: pa.timestamp(times), dict: pa.map_(pa.string(), pa.string())}
    columns = {}
    for name, usual in CUR.items():
        values = [{**CUR, **row}[name] for row in rows]
        if isinstance(usual, dict):
            values = [list(value.items()) for value in values]
        columns[name.upper() if loud else name] = pa.array(values, kinds.get(type(usual)))
    pq.write_table(pa.table(columns), path)
    return path


def used(usage_type: str, cost: float, **changes: Any) -> dict[str, Any]:
    return {"line_item_usage_type": usage_type, "line_item_unblended_cost": cost, **changes}


def test_57_who_sells_aws_makes_no_other_cloud_of_it(tmp_path: Path) -> None:
    rows = [
        used("APS3-BoxUsage:m7i.large", 10.0, bill_billing_entity="AISPL"),
        used("APS3-EBS:VolumeUsage.gp2", 5.0, bill_billing_entity="AWS Inc."),
        used("BoxUsage:m7i.large", 2.0, bill_billing_entity="AWS Marketplace"),
        used("BoxUsage:m7i.large", 1.0, bill_billing_entity="AISPL Marketplace"),
        # Whatever China's sellers are called: a report of AWS's holds AWS and its marketplace.
        used("CNW1-BoxUsage:m7i.large", 0.5, bill_billing_entity="Western Cloud Data"),
    ]
    came, usage, store = ingested(lines(tmp_path / "bill.parquet", rows))
    assert {(row.provider, row.component) for row in usage} == {
        ("AISPL", Component.BROKER_COMPUTE),
        ("AWS Inc.", Component.OTHER_VOLUMES),
        ("AWS Marketplace", Component.OTHER),
        ("AISPL Marketplace", Component.OTHER),
        ("AWS (Western Cloud Data)", Component.BROKER_COMPUTE),
    }
    assert came.billed == sum(row.billed_cost for row in usage) == Decimal("18.5")
    found = easy_savings(table_grain(store.table(tables.USAGE, ["2026-11"])))
    assert [(each.easy, each.usd) for each in found] == [(Easy.GP2_VOLUMES, Decimal(5))]


@pytest.mark.parametrize(
    ("times", "loud"), [("ns", False), ("us", True)], ids=["pandas", "capitals"]
)
def test_59_what_another_writer_made_of_a_report_is_read(
    tmp_path: Path, times: str, *, loud: bool
) -> None:
    path = lines(tmp_path / "bill.parquet", [used("BoxUsage:x", 1.5)] * 2, times=times, loud=loud)
    came, usage, _ = ingested(path)
    assert (came.lines, came.billed) == (2, Decimal(3))
    assert [(str(row.day), row.cluster) for row in usage] == [("2026-11-20", "harbour")]


def test_60_a_focus_bill_says_by_any_of_its_names_that_it_is_awss(tmp_path: Path) -> None:
    hours = {"PricingUnit": "Hours", "ChargeDescription": "$0.10 per hour for Amazon EKS cluster"}
    rows = [
        {"ProviderName": "", "x_UsageType": "USE2-BoxUsage:m7i.large"},
        {"ServiceName": "Amazon Elastic Kubernetes Service", **hours},
        {"ProviderName": "Amazon Web Services, Inc.", "ServiceName": "AmazonEKS", **hours},
        {"ProviderName": ""},
        # FOCUS 1.2 says apart from the meter that a reservation stood idle.
        {
            "CapacityReservationStatus": "Unused",
            "x_UsageType": "EU-BoxUsage:m7i.large",
            "Tags": '{"stillwater:cluster": "harbour", "stillwater:pool": "broker"}',
        },
    ]
    path = bills.focus_file(tmp_path / "focus.csv", rows)
    came, usage, store = ingested(path)
    assert came.billed == sum(row.billed_cost for row in usage) == 5
    (idle,) = easy_savings(table_grain(store.table(tables.USAGE, ["2026-11"])))
    assert (idle.easy, idle.usd) == (Easy.IDLE_RESERVATION, Decimal("0.8"))
    assert sorted((row.provider or "", str(row.component)) for row in usage) == [
        ("", Component.OTHER),
        ("AWS", Component.INSTANCES),
        ("AWS", Component.CONTROL_PLANE),
        ("AWS", Component.OTHER),
        ("Amazon Web Services, Inc.", Component.CONTROL_PLANE),
    ]
