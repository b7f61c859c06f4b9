"""The twelve traps of AWS's bills, each walked into: synthetic bills whose truth is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.ground.errors import InvalidInput
from local.aws.billing import seconds_in_month
from local.bills.cluster import Broker, ClusterBill, hour_lines, lines
from local.bills.export import Layout, write
from local.bills.line import BillLine, month_start, truth
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.tables import ParquetStore
from tests.unit.spark import bills

NOW = datetime(2026, 11, 20, tzinfo=UTC)
BILL = ClusterBill(region_prefix="APS1-")


def usage(folder: Path, every: Iterable[BillLine], **how: Any) -> list[Any]:
    """Deliver these lines and return their USAGE."""
    return bills.usage(write(folder, every, **how))


def total(rows: Iterable[Any], column: str = "billed_cost") -> Decimal:
    return sum((getattr(row, column) for row in rows), Decimal(0))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The whole bill once: most traps lie in one line of it."""
    return usage(tmp_path_factory.mktemp("bill"), lines(BILL))


def test_1_amortised_is_what_was_paid_over_a_closed_month(rows: list[Any]) -> None:
    known = truth(lines(BILL))
    assert total(rows, "amortised_cost") == known.amortised == known.billed == total(rows)
    for name, amount in known.amortised_by_component.items():
        assert total((r for r in rows if r.component == name), "amortised_cost") == amount, name


def test_2_a_private_discount_counts_once_however_the_export_writes_it(tmp_path: Path) -> None:
    start = month_start("2026-10")
    hour = next(iter(hour_lines(BILL, 0)))
    edp = BillLine(hour=start, kind="EdpDiscount", product="AmazonEC2", unblended=Decimal("-0.05"))
    as_line = usage(tmp_path / "lines", [hour, edp])
    assert total(as_line, "net_cost") == Decimal("0.45")
    in_columns = [dataclasses.replace(hour, net=Decimal("0.45")), edp]
    both = usage(tmp_path / "both", in_columns)
    assert total(both, "net_cost") == Decimal("0.45")
    assert total(both) == total(as_line) == Decimal("0.45")


def test_3_what_names_no_resource_is_kept_and_nobodys(rows: list[Any]) -> None:
    kept = {r.category: r.billed_cost for r in rows if r.category in ("Tax", "Credit", "Refund")}
    assert kept == {"Tax": Decimal("1.23"), "Credit": Decimal("-0.5"), "Refund": Decimal("-0.07")}
    assert {r.attribution for r in rows if r.category in kept} == {"unattributed"}
    assert {r.resource_id for r in rows if r.category in kept} == {None}


def test_4_a_pods_share_of_its_node_is_no_second_cost(rows: list[Any]) -> None:
    split = [row for row in rows if row.component == "split cost allocation"]
    assert sum(row.charges for row in split) == sum(bool(line.parent) for line in lines(BILL)) > 0
    assert total(split) == total(split, "amortised_cost") == total(split, "net_cost") == 0


@pytest.mark.parametrize("layout", [Layout.CUR2, Layout.LEGACY, Layout.FOCUS_10])
def test_5_a_tag_is_found_in_every_spelling_and_missed_aloud(
    tmp_path: Path, layout: Layout
) -> None:
    found = usage(tmp_path / "bill", hour_lines(BILL, 0), layout=layout)
    owners = {row.owner for row in found if row.component == "broker compute"}
    assert owners == {"broker-a", "broker-b", "broker-c"}
    if layout is not Layout.CUR2:
        return
    delivery = bill.read(tmp_path / "bill")
    store = ParquetStore(str(tmp_path / "tables"))
    with pytest.raises(InvalidInput) as raised:
        ingest.run(delivery, store, now=NOW, cluster="another")
    assert "stillwater:cluster = another; it names harbour" in str(raised.value)
    assert "user_stillwater_cluster, user:stillwater:cluster" in str(raised.value)
    assert store.rows(tables.USAGE) == []


def test_6_throughput_is_billed_per_gib_though_its_text_says_mib(rows: list[Any]) -> None:
    (row,) = [r for r in rows if r.component == "gp3 throughput" and r.billed_cost > 0]
    month = seconds_in_month(month_start("2026-10"))
    provisioned = row.quantity * month / (3600 * BILL.hours) * 1024
    assert row.unit == "GiBps-mo"
    assert round(provisioned) == 125
    assert row.billed_cost == pytest.approx(row.quantity * Decimal("40.96"), abs=Decimal("1e-8"))


def test_7_a_volume_at_its_baseline_has_lines_of_nothing(rows: list[Any]) -> None:
    iops = {r.node_id: r for r in rows if r.component == "gp3 IOPS"}
    assert (iops[10].quantity, iops[10].billed_cost, iops[10].charges) == (0, 0, BILL.hours)
    month = seconds_in_month(month_start("2026-10"))
    above = iops[20].quantity * month / (3600 * BILL.hours)
    assert 3000 + round(above) == 4000


@pytest.mark.parametrize("period", ["2026-02", "2026-10"])
def test_8_storage_is_prorated_by_the_months_own_length(tmp_path: Path, period: str) -> None:
    small = ClusterBill(period=period, hours=24, brokers=(Broker(node_id=10, zone="us-east-1a"),))
    found = usage(tmp_path, lines(small))
    (row,) = [r for r in found if r.component == "gp3 storage"]
    size = row.quantity * seconds_in_month(month_start(period)) / 86400
    assert size == pytest.approx(100, abs=Decimal("1e-3"))


def test_10_a_month_that_is_not_asked_for_is_not_opened(tmp_path: Path) -> None:
    for period in ("2026-09", "2026-10"):
        write(tmp_path, lines(dataclasses.replace(BILL, period=period)))
    one = bill.read(tmp_path, months=["2026-10"])
    assert list(one.refreshes) == ["2026-10"]
    assert all("2026-10" in piece.address for piece in one.pieces)
    assert {row.billing_period for row in bills.usage_rows(one)} == {"2026-10"}


def test_11_a_refresh_replaces_its_month_and_says_until_when_it_may_change(tmp_path: Path) -> None:
    store = ParquetStore(str(tmp_path / "tables"))
    folder = tmp_path / "bill"
    first = [*lines(BILL)]
    late = BillLine(hour=month_start("2026-10"), kind="Tax", unblended=Decimal("0.11"))
    for execution, every in (("2026-11-01", first), ("2026-11-02", [*first[1:], late])):
        write(folder, every, execution=execution)
        ingest.run(bill.read(folder), store, now=NOW)
    known = truth([*first[1:], late])
    (noted,) = store.rows(tables.DELIVERIES)
    assert (noted.execution, noted.lines) == ("2026-11-02", known.lines)
    assert (noted.billed_cost, noted.previous_billed_cost) == (known.billed, truth(first).billed)
    assert noted.final_on == date(2026, 11, 15)
    assert total(store.rows(tables.USAGE)) == known.billed


def test_12_support_and_the_marketplace_are_on_the_bill_and_on_no_component(
    rows: list[Any],
) -> None:
    support = [r for r in rows if r.service == "AWSSupportEnterprise"]
    market = [r for r in rows if r.provider == "AWS Marketplace"]
    assert {r.component for r in [*support, *market]} == {"other"}
    assert {r.attribution for r in [*support, *market]} == {"unattributed"}
    assert total(support) + total(market) == BILL.support + BILL.marketplace


def test_every_component_and_owner_gets_what_is_known_to_be_theirs(rows: list[Any]) -> None:
    known = truth(lines(BILL))
    for name, amount in known.by_component.items():
        assert total(r for r in rows if r.component == name) == amount, name
    for name, amount in known.by_owner.items():
        assert total(r for r in rows if r.owner == name) == amount, name
    assert sum(row.charges for row in rows) == known.lines


@pytest.mark.parametrize(
    ("layout", "suffix"),
    [
        (Layout.CUR2, ".csv.gz"),
        (Layout.LEGACY, ".csv.zip"),
        (Layout.LEGACY, ".csv.gz"),
        (Layout.LEGACY, ".snappy.parquet"),
        (Layout.FOCUS_10, ".csv.gz"),
        (Layout.FOCUS_12, ".snappy.parquet"),
    ],
)
def test_every_format_tells_the_same(
    tmp_path: Path, rows: list[Any], layout: Layout, suffix: str
) -> None:
    found = usage(tmp_path, lines(BILL), layout=layout, suffix=suffix)
    for column in ("component", "owner", "node_id"):
        for amount in ("billed_cost", "amortised_cost"):
            assert _sums(found, column, amount) == _sums(rows, column, amount), (column, amount)


def _sums(rows: list[Any], column: str, amount: str) -> dict[Any, Decimal]:
    return {
        key: total((r for r in rows if getattr(r, column) == key), amount)
        for key in {getattr(r, column) for r in rows}
    }
