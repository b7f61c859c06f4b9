"""Split cost allocation data: what ran on Kafka's nodes adds up to what they cost, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.bills.cluster import Broker, ClusterBill, Coverage, lines
from local.bills.export import Layout, write
from local.bills.line import BillLine, truth
from spark import tables
from spark.ingest import bill
from spark.ingest.splits import POD
from spark.jobs import ingest
from spark.rows import row_type
from spark.schemas import USAGE
from spark.tables import ParquetStore
from spark.transforms.node_shares import AMOUNTS, node_shares, parts_of_hours

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MONTH = "2026-10"
BROKERS = (
    Broker(node_id=10, zone="us-east-1a", coverage=Coverage.MIXED),
    Broker(node_id=20, zone="us-east-1b", coverage=Coverage.SAVINGS_PLAN),
    Broker(node_id=30, zone="us-east-1c", coverage=Coverage.RESERVED),
)
BILL = ClusterBill(brokers=BROKERS, hours=26, net_discount=Decimal("0.1"))
# A double of a share is off by less than this; there are some hundred of them on a day.
PLACES = Decimal("1e-12")
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


# A node's interval: the hours of each of its lines, and its pods' shares per meter.
HOURS = st.decimals(min_value="0.0001", max_value=1, places=4)
COST = st.floats(min_value=0, max_value=100, allow_nan=False).map(lambda each: round(each, 10))
INTERVAL = st.tuples(
    st.dictionaries(st.sampled_from(["on demand", "savings plan", "reserved"]), HOURS, max_size=3),
    st.lists(st.tuples(st.sampled_from("pqr"), COST, COST), max_size=4),
)


def twin(nodes_: Sequence[Any]) -> dict[Any, Fraction]:
    """Share costs out in plain Python: (node, way, pod, amount) -> money."""
    sums: dict[Any, Fraction] = {}
    for node, (ways, pods) in enumerate(nodes_):
        hours = sum(map(Fraction, ways.values()))
        for pod, split, unused in pods:
            for way, part in ways.items():
                for name, cost in (("split_cost", split), ("unused_cost", unused)):
                    key = (f"i-{node}", way, pod, name)
                    own = Fraction(Decimal(repr(cost))) * Fraction(part) / hours
                    sums[key] = sums.get(key, Fraction(0)) + own
    return sums


def rows_of(nodes_: Sequence[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    first = datetime(2026, 10, 1)  # noqa: DTZ001 - frames write UTC without a zone
    for node, (ways, pods) in enumerate(nodes_):
        at = first + timedelta(hours=node)
        for way, hours in ways.items():
            yield "hours", (MONTH, f"i-{node}", at, way, hours)
        for pod, split, unused in pods:
            yield "pods", (at, f"i-{node}", pod, split, unused)


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(intervals=st.lists(INTERVAL, min_size=8, max_size=16))
def test_shares_are_those_of_a_plain_python_twin(intervals: list[Any]) -> None:
    hours = row_type(["billing_period", "instance_id", "at", "paid_by", "hours"])
    pods = row_type(["billing_period", "day", "instance_id", "paid_by", *POD, *AMOUNTS])
    told = list(rows_of(intervals))
    parts = parts_of_hours(hours(*row) for what, row in told if what == "hours")
    scaled = []
    for at, instance, pod, *costs in (row for what, row in told if what == "pods"):
        for way, part in parts.get((MONTH, instance, at), {}).items():
            exact = (Decimal(repr(cost * part)).quantize(PLACES) for cost in (*costs, *costs))
            scaled.append(pods(MONTH, at.date(), instance, way, *([None] * 4), pod, *exact))
    day = {
        "billing_period": MONTH,
        "component": "broker compute",
        "attribution": "node pool",
        "cluster": "orders",
        "owner": "broker-a",
        "amortised_cost": Decimal(7),
        "net_cost": Decimal(5),
    }
    usage = [
        row_type(USAGE)(
            **{
                **dict.fromkeys(USAGE.names),
                **day,
                "resource_id": f"i-{node}",
                "day": date(2026, 10, 1),
            }
        )
        for node in range(len(intervals))
    ]
    found = node_shares(usage, scaled)
    known = twin(intervals)
    sums: dict[Any, Decimal] = {}
    for row in (row for row in found if row.kind != "not allocated"):
        for name in AMOUNTS[:2]:
            key = (row.instance_id, row.paid_by, row.pod, name)
            sums[key] = sums.get(key, Decimal(0)) + getattr(row, name)
    assert sums.keys() == known.keys()
    assert all(abs(Fraction(sums[key]) - known[key]) <= Fraction(TOLERANCE) for key in known)
    whole = by_node_day(found, "instance_id", "split_cost", "unused_cost")
    assert set(whole.values()) == {Decimal(7)}
