"""Split cost allocation data: what ran on Kafka's nodes adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local.bills.cluster import Broker, ClusterBill, Coverage, lines
from local.bills.export import Layout, write
from local.bills.line import BillLine, truth
from spark import tables
from spark.ingest import bill
from spark.jobs import ingest
from spark.tables import ParquetStore

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MONTH = "2026-10"
BROKERS = (
    Broker(node_id=10, zone="us-east-1a", coverage=Coverage.MIXED),
    Broker(node_id=20, zone="us-east-1b", coverage=Coverage.SAVINGS_PLAN),
    Broker(node_id=30, zone="us-east-1c", coverage=Coverage.RESERVED),
)
BILL = ClusterBill(brokers=BROKERS, hours=26, net_discount=Decimal("0.1"))
# A double of a share is off by far less; there are some hundred of them on a day.
TOLERANCE = Decimal("1e-9")


@dataclass(frozen=True)
class Made:
    """A bill's tables."""

    store: ParquetStore
    shares: list[Any]
    usage: list[Any]


def made(folder: Path, every: Sequence[BillLine], **how: Any) -> Made:
    delivery = bill.read(write(folder / "bill", every, **how))
    store = ParquetStore(str(folder / "tables"))
    ingest.run(delivery, store, now=NOW)
    ingest.write_node_shares(store, delivery, [MONTH])
    return Made(store, store.rows(tables.NODE_SHARES), store.rows(tables.USAGE))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("splits"), list(lines(BILL)))


def by_node_day(rows: Sequence[Any], id_: str, *names: str) -> dict[Any, Decimal]:
    sums: dict[Any, Decimal] = {}
    for row in rows:
        key = (getattr(row, id_), row.day)
        sums[key] = sums.get(key, Decimal(0)) + sum(
            (getattr(row, name) for name in names), Decimal(0)
        )
    return sums


def test_the_shares_of_a_node_and_day_are_its_amortised_cost(world: Made) -> None:
    compute = [row for row in world.usage if row.component == "broker compute"]
    allocated = [row for row in world.shares if row.kind != "not allocated"]
    for costs, own in (
        (("split_cost", "unused_cost"), "amortised_cost"),
        (("net_split_cost", "net_unused_cost"), "net_cost"),
    ):
        known = by_node_day(compute, "resource_id", own)
        assert len(known) == len(BROKERS) * 2
        assert by_node_day(world.shares, "instance_id", *costs) == known
        shared = by_node_day(allocated, "instance_id", *costs)
        assert all(abs(shared[key] - known[key]) <= TOLERANCE for key in known)


def test_what_each_pod_had_is_what_the_bill_was_written_from(world: Made) -> None:
    kinds = {"": "Kafka", "DaemonSet": "daemon set", "ReplicaSet": "other pod"}
    split: dict[Any, Decimal] = {}
    for line in (line for line in lines(BILL) if line.parent):
        tags = line.tags
        kind = kinds[tags.get("aws:eks:workload-type", "")]
        key = (kind, tags["aws:eks:namespace"], tags.get("aws:eks:workload-name"), line.parent)
        split[key] = split.get(key, Decimal(0)) + line.split_cost
    found: dict[Any, Decimal] = {}
    for row in (row for row in world.shares if row.kind != "not allocated"):
        key = (row.kind, row.namespace, row.workload, row.instance_id)
        found[key] = found.get(key, Decimal(0)) + row.split_cost
    assert found.keys() == split.keys()
    assert all(abs(found[key] - split[key]) <= TOLERANCE for key in split)
    own = {(r.cluster, r.owner, r.pod) for r in world.shares if r.kind == "Kafka"}
    assert ("harbour", "broker-a", "harbour-broker-a-10") in own


def test_an_hour_paid_for_in_two_ways_is_shared_by_its_hours(world: Made) -> None:
    mixed = [r for r in world.shares if r.owner == "broker-a" and r.kind == "Kafka"]
    ways = {
        way: sum((row.split_cost for row in mixed if row.paid_by == way), Decimal(0))
        for way in {row.paid_by for row in mixed}
    }
    assert set(ways) == {"savings plan", "on demand"}
    assert ways["savings plan"] == pytest.approx(ways["on demand"])
    assert {r.paid_by for r in world.shares if r.owner == "broker-c" and r.paid_by} == {"reserved"}


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
    tmp_path: Path, world: Made, how: dict[str, Any]
) -> None:
    found = made(tmp_path, list(lines(BILL)), **how)
    assert sorted(map(str, found.shares)) == sorted(map(str, world.shares))


def test_a_bill_costs_the_same_with_split_lines_and_without(tmp_path: Path) -> None:
    small = replace(BILL, hours=1)
    both = made(tmp_path, list(lines(small)))
    without = list(lines(replace(small, pods=())))
    plain = made(tmp_path, without)
    names = ("billed_cost", "amortised_cost", "net_cost")
    assert [sum(getattr(r, n) for r in plain.usage) for n in names] == [
        sum(getattr(r, n) for r in both.usage) for n in names
    ]
    assert sum(r.billed_cost for r in both.usage) == truth(without).billed
    # The delivery that came later has none, so none of the one before is left.
    assert both.shares
    assert plain.shares == []


def test_hours_that_no_split_line_tells_of_are_kept_as_such(tmp_path: Path) -> None:
    start = datetime(2026, 10, 1, 12, tzinfo=UTC)
    late = [line for line in lines(BILL) if not line.parent or line.hour >= start]
    (row,) = [
        row
        for row in made(tmp_path, late).shares
        if row.kind == "not allocated" and row.owner == "broker-b" and row.day.day == 1
    ]
    assert row.unused_cost == pytest.approx(Decimal("0.3") * 12, abs=TOLERANCE)
    assert row.pod is None
