"""Synthetic bills whose truth is known, down to each component, owner, node and pod.

What ran on Kafka's nodes adds up, and a report on one's own machine reads again what is not final,
or has changed.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.cost.pricing import total
from core.ground.errors import InvalidInput
from local.bills.cluster import Broker, ClusterBill, Coverage, hour_lines, lines
from local.bills.export import Layout, write
from local.bills.line import BillLine, month_start, truth
from spark import tables
from spark.ingest import bill
from spark.jobs import every, ingest
from spark.jobs.every import Inputs
from spark.tables import ParquetStore
from tests.unit.spark import bills
from tests.unit.spark.bills import billed_by

NOW = datetime(2026, 11, 20, tzinfo=UTC)
BILL = ClusterBill(region_prefix="APS1-")
MONEY = ("billed_cost", "amortised_cost", "net_cost")


def usage(folder: Path, every: Iterable[BillLine], **how: Any) -> list[Any]:
    """Deliver these lines and return their USAGE."""
    return bills.usage(write(folder, every, **how))


def cost(rows: Iterable[Any], column: str = "billed_cost", **wanted: object) -> Decimal:
    """Return what rows cost that have these values."""
    chosen = (r for r in rows if all(getattr(r, n) == value for n, value in wanted.items()))
    return total(getattr(row, column) for row in chosen)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The USAGE of the whole bill."""
    return usage(tmp_path_factory.mktemp("bill"), lines(BILL))


def test_amortised_is_what_was_paid_over_a_closed_month(rows: list[Any]) -> None:
    known = truth(lines(BILL))
    assert cost(rows, "amortised_cost") == known.amortised == known.billed == cost(rows)
    for name, amount in known.amortised_by_component.items():
        assert cost(rows, "amortised_cost", component=name) == amount, name


def test_a_private_discount_counts_once_however_the_export_writes_it(tmp_path: Path) -> None:
    start, hour = month_start("2026-10"), next(iter(hour_lines(BILL, 0)))
    edp = BillLine(hour=start, kind="EdpDiscount", product="AmazonEC2", unblended=Decimal("-0.05"))
    for name, line in (("lines", hour), ("both", replace(hour, net=Decimal("0.45")))):
        found = usage(tmp_path / name, [line, edp])
        assert cost(found, "net_cost") == cost(found) == Decimal("0.45")


@pytest.mark.parametrize("layout", [Layout.CUR2, Layout.LEGACY, Layout.FOCUS_10])
def test_a_tag_is_found_in_every_spelling_and_missed_aloud(tmp_path: Path, layout: Layout) -> None:
    found = usage(tmp_path / "bill", hour_lines(BILL, 0), layout=layout)
    owners = {row.owner for row in found if row.component == "broker compute"}
    assert owners == {"broker-a", "broker-b", "broker-c"}
    if layout is not Layout.CUR2:
        return
    store = ParquetStore(str(tmp_path / "tables"))
    with pytest.raises(InvalidInput) as raised:
        ingest.run(bill.read(tmp_path / "bill"), store, now=NOW, cluster="another")
    assert "stillwater:cluster = another; it names harbour" in str(raised.value)
    assert "user_stillwater_cluster, user:stillwater:cluster" in str(raised.value)
    assert store.rows(tables.USAGE) == []


def test_a_month_that_is_not_asked_for_is_not_opened(tmp_path: Path) -> None:
    for period in ("2026-09", "2026-10"):
        write(tmp_path, lines(replace(BILL, period=period)))
    one = bill.read(tmp_path, months=["2026-10"])
    assert list(one.refreshes) == ["2026-10"]
    assert all("2026-10" in piece.address for piece in one.pieces)
    assert {row.billing_period for row in bills.usage_rows(one)} == {"2026-10"}


def test_a_refresh_replaces_its_month_and_says_until_when_it_may_change(tmp_path: Path) -> None:
    store, folder = ParquetStore(str(tmp_path / "tables")), tmp_path / "bill"
    first = [*lines(BILL)]
    late = BillLine(hour=month_start("2026-10"), kind="Tax", unblended=Decimal("0.11"))
    second = [*first[1:], late]
    for execution, every_line in (("2026-11-01", first), ("2026-11-02", second)):
        write(folder, every_line, execution=execution)
        ingest.run(bill.read(folder), store, now=NOW)
    known = truth(second)
    (noted,) = store.rows(tables.DELIVERIES)
    assert (noted.execution, noted.lines) == ("2026-11-02", known.lines)
    assert (noted.billed_cost, noted.previous_billed_cost) == (known.billed, truth(first).billed)
    assert noted.final_on == date(2026, 11, 15)
    assert cost(store.rows(tables.USAGE)) == known.billed


def test_every_component_and_owner_gets_what_is_known_to_be_theirs(rows: list[Any]) -> None:
    known = truth(lines(BILL))
    for name, amount in known.by_component.items():
        assert cost(rows, component=name) == amount, name
    for name, amount in known.by_owner.items():
        assert cost(rows, owner=name) == amount, name
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
            here, there = (billed_by(each, column, amount) for each in (found, rows))
            assert here == there, (column, amount)


# --- Split cost allocation data: what ran on Kafka's nodes.

NODES = ClusterBill(
    brokers=(
        Broker(node_id=10, zone="us-east-1a", coverage=Coverage.MIXED),
        Broker(node_id=20, zone="us-east-1b", coverage=Coverage.SAVINGS_PLAN),
        Broker(node_id=30, zone="us-east-1c", coverage=Coverage.RESERVED),
    ),
    hours=26,
    net_discount=Decimal("0.1"),
)
# A double of a share is off by far less; there are some hundred of them on a day.
TOLERANCE = Decimal("1e-9")


def shared(folder: Path, every_line: Iterable[BillLine], **how: Any) -> tuple[list[Any], list[Any]]:
    """Return the NODE_SHARES of a bill and its USAGE."""
    store = ParquetStore(str(folder / "tables"))
    delivery = bill.read(write(folder / "bill", every_line, **how))
    ingest.run(delivery, store, now=NOW)
    ingest.write_node_shares(store, delivery, ["2026-10"])
    return store.rows(tables.NODE_SHARES), store.rows(tables.USAGE)


def is_close(found: Mapping[Any, Decimal], known: Mapping[Any, Decimal]) -> bool:
    assert found.keys() == known.keys()
    return all(abs(found[key] - known[key]) <= TOLERANCE for key in known)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any]]:
    return shared(tmp_path_factory.mktemp("splits"), lines(NODES))


def test_the_shares_of_a_node_and_day_are_its_amortised_cost(nodes: tuple[Any, Any]) -> None:
    shares, found = nodes
    compute = [row for row in found if row.component == "broker compute"]
    allocated = [row for row in shares if row.kind != "not allocated"]
    for costs, own in (
        ("split_cost unused_cost", "amortised_cost"),
        ("net_split_cost net_unused_cost", "net_cost"),
    ):
        known = billed_by(compute, "resource_id day", own)
        assert len(known) == len(NODES.brokers) * 2
        assert billed_by(shares, "instance_id day", costs) == known
        assert is_close(billed_by(allocated, "instance_id day", costs), known)


def test_what_each_pod_had_is_what_the_bill_was_written_from(nodes: tuple[Any, Any]) -> None:
    shares, _ = nodes
    kinds = {"": "Kafka", "DaemonSet": "daemon set", "ReplicaSet": "other pod"}

    written = [
        SimpleNamespace(
            kind=kinds[line.tags.get("aws:eks:workload-type", "")],
            namespace=line.tags["aws:eks:namespace"],
            workload=line.tags.get("aws:eks:workload-name"),
            instance_id=line.parent,
            split_cost=line.split_cost,
        )
        for line in lines(NODES)
        if line.parent
    ]
    allocated = [row for row in shares if row.kind != "not allocated"]
    found, known = (
        billed_by(each, "kind namespace workload instance_id", "split_cost")
        for each in (allocated, written)
    )
    assert is_close(found, known)
    own = {(r.cluster, r.owner, r.pod) for r in shares if r.kind == "Kafka"}
    assert ("harbour", "broker-a", "harbour-broker-a-10") in own


def test_an_hour_paid_for_in_two_ways_is_shared_by_its_hours(nodes: tuple[Any, Any]) -> None:
    shares, _ = nodes
    mixed = [r for r in shares if r.owner == "broker-a" and r.kind == "Kafka"]
    ways = billed_by(mixed, "paid_by", "split_cost")
    assert set(ways) == {"savings plan", "on demand"}
    assert ways["savings plan"] == pytest.approx(ways["on demand"])
    assert {r.paid_by for r in shares if r.owner == "broker-c" and r.paid_by} == {"reserved"}


@pytest.mark.parametrize(
    "how",
    [
        {"layout": Layout.LEGACY},
        {"layout": Layout.LEGACY, "suffix": ".csv.gz"},
        {"suffix": ".csv.gz"},
    ],
    ids=["legacy Parquet", "legacy csv", "csv"],
)
def test_every_report_that_carries_split_lines_says_the_same(
    tmp_path: Path, nodes: tuple[Any, Any], how: dict[str, Any]
) -> None:
    found, _ = shared(tmp_path, lines(NODES), **how)
    assert sorted(map(str, found)) == sorted(map(str, nodes[0]))


def test_a_bill_costs_the_same_with_split_lines_and_without(tmp_path: Path) -> None:
    small = replace(NODES, hours=1)
    shares, both = shared(tmp_path, lines(small))
    without = list(lines(replace(small, pods=())))
    # The delivery that came later has none, so none of the one before is left.
    left, plain = shared(tmp_path, without)
    assert shares
    assert left == []
    assert [cost(plain, name) for name in MONEY] == [cost(both, name) for name in MONEY]
    assert cost(both) == truth(without).billed


def test_hours_that_no_split_line_tells_of_are_kept_as_such(tmp_path: Path) -> None:
    start = datetime(2026, 10, 1, 12, tzinfo=UTC)
    late = [line for line in lines(NODES) if not line.parent or line.hour >= start]
    shares, _ = shared(tmp_path, late)
    unknown = [row for row in shares if row.kind == "not allocated" and row.owner == "broker-b"]
    (row,) = [row for row in unknown if row.day.day == 1]
    assert row.unused_cost == pytest.approx(Decimal("0.3") * 12, abs=TOLERANCE)
    assert row.pod is None


# --- What is read again.

BEFORE, FINAL, OPEN = "2024-01", "2024-02", f"{datetime.now(UTC):%Y-%m}"


def test_files_without_a_manifest_are_read_again_where_one_of_them_changed(tmp_path: Path) -> None:
    store, folder = ParquetStore(str(tmp_path / "tables")), tmp_path / "bill"
    folder.mkdir()
    for number, period in enumerate((BEFORE, FINAL), start=1):
        start = f"{period}-01 00:00:00"
        row = {"BillingPeriodStart": start, "ChargePeriodStart": start, "ResourceId": f"i-{number}"}
        bills.focus_file(folder / f"{period}.csv", [row])
    first = every.run(store, Inputs(bill=folder))
    # No reader can read it now; its size and time are as they were.
    spoilt = folder / f"{FINAL}.csv"
    was = spoilt.stat()
    spoilt.write_bytes(b"?" * was.st_size)
    os.utime(spoilt, ns=(was.st_atime_ns, was.st_mtime_ns))
    again = every.run(store, Inputs(bill=folder))
    assert (first.kept, again.kept) == ([], [BEFORE, FINAL])
    assert again.bill_total == first.bill_total == 1
    bills.focus_file(folder / "late.csv", [{"ResourceId": "i-3"}])
    # Then all of them are read, and the one that is spoilt is found.
    with pytest.raises(InvalidInput, match="2024-02"):
        every.run(store, Inputs(bill=folder))


def test_a_month_that_is_delivered_again_without_a_line_holds_nothing(tmp_path: Path) -> None:
    store, folder = ParquetStore(str(tmp_path / "tables")), tmp_path / "bill"
    for period in (FINAL, OPEN):
        write(folder, lines(ClusterBill(period=period, hours=2)), execution="first")
    every.run(store, Inputs(bill=folder))
    (data,) = folder.glob(f"data/*={OPEN}/**/*.parquet")
    pq.write_table(pq.read_table(data).slice(0, 0), data)
    every.run(store, Inputs(bill=folder))
    noted = {row.billing_period: row for row in store.rows(tables.DELIVERIES)}
    assert (noted[OPEN].lines, noted[OPEN].billed_cost) == (0, 0)
    assert noted[OPEN].previous_billed_cost > 0
    assert {row.billing_period for row in store.rows(tables.USAGE)} == {FINAL}
