"""The report from beginning to end: a bill, samples and incidents in, a page out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost import pricing
from core.cost.price_list import disagreements
from local.bills import cluster as bills
from local.bills import export
from local.bills.cluster import PODS
from local.bills.line import BillLine
from spark import tables
from spark.jobs import every
from spark.report import formats
from spark.report.formats import Format
from spark.tables import ParquetStore
from spark.transforms.economics import billed_rates
from tests import browser
from tests.unit.spark import simulated
from tests.unit.spark.simulated import FACTS, Rotation

pytestmark = pytest.mark.integration
BOOK = pricing.book("us-east-1")
TODAY = date(2026, 11, 21)
# Three of today's days are enough for a size; the odd one is the tenth.
OCTOBER_HOURS, NOVEMBER_HOURS, ODD_DAY = 31 * 24, 11 * 24, 10
ROTATIONS = tuple(
    Rotation(node_id, simulated.at(11, 3 + index), 240, held_bytes=300.0 * simulated.GIB)
    for index, node_id in enumerate((10, 20, 30))
)
BROKERS = tuple(
    bills.Broker(node_id=10 * (index + 1), zone=f"us-east-1{letter}", instance_type="r7g.2xlarge",
                 volume_gib=4000, iops=6000, throughput_mib_per_s=200)
    for index, letter in enumerate("abc")
)  # fmt: skip
FORGOTTEN = bills.Broker(node_id=19, zone="us-east-1a", volume_gib=1000)


@dataclass(frozen=True)
class World:
    """A report that was made, and what it was made from."""

    made: every.Known
    again: every.Known
    total: Decimal
    store: ParquetStore
    folder: Path

    def table(self, name: str) -> list[Any]:
        return list(getattr(self.made.evidence, name))


def lines() -> Iterator[BillLine]:
    """Yield October and eleven days of November, with a volume that nobody mounts."""
    for period, hours in (("2026-10", OCTOBER_HOURS), ("2026-11", NOVEMBER_HOURS)):
        bill = bills.ClusterBill(
            name=FACTS.cluster, period=period, hours=hours, brokers=BROKERS, pods=PODS[:2]
        )
        busy = bills.ClusterBill(
            name=FACTS.cluster,
            period=period,
            pods=(),
            brokers=[
                *BROKERS[1:],
                bills.Broker(node_id=10, zone="us-east-1a", crossing_gb_per_hour=Decimal(60)),
            ],
        )
        lost = bills.ClusterBill(name=FACTS.cluster, period=period, brokers=[FORGOTTEN], pods=())
        for hour in range(hours):
            is_odd = period == "2026-11" and hour // 24 + 1 == ODD_DAY
            own = bills.hour_lines(bill, hour)
            moved = bills.hour_lines(busy, hour)
            yield from (
                line for line in own if not (is_odd and line.component == "inter-AZ transfer")
            )
            if is_odd:
                yield from (line for line in moved if line.component == "inter-AZ transfer")
            yield from (
                line for line in bills.hour_lines(lost, hour) if line.resource_id.startswith("vol-")
            )
        yield from bills.monthly_lines(bill)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("report")
    whole = list(lines())
    export.write(folder / "bill", whole)
    series = [one for rotation in ROTATIONS for one in simulated.series(rotation)]
    series += [one for rotation in ROTATIONS for one in simulated.load(rotation)]
    simulated.write_metrics(folder / "metrics.json", series)
    simulated.write_history(folder / "history", ROTATIONS)
    store = ParquetStore(str(folder / "tables"))
    given = {
        "metrics": str(folder / "metrics.json"),
        "history": str(folder / "history"),
        "facts": FACTS,
        "book": BOOK,
        "today": TODAY,
    }
    made = every.run(store, every.Inputs(bill=folder / "bill", month="2026-11", **given))
    again = every.run(store, every.Inputs(month="2026-11", **given))
    november = sum((line.unblended for line in whole if line.period == "2026-11"), Decimal(0))
    return World(made, again, november, store, folder)


def test_the_report_of_the_last_month_comes_to_its_bill(world: World) -> None:
    assert world.made.evidence.month == "2026-11"
    assert world.made.evidence.report.billed == world.made.bill_total == world.total


def test_a_report_made_again_from_the_tables_says_the_same(world: World) -> None:
    assert formats.as_json(world.again.document) == formats.as_json(world.made.document)


def test_volumes_are_sized_and_the_forgotten_one_is_found(world: World) -> None:
    found = {row.node_id: row for row in world.table("storage") if row.node_id is not None}
    assert found[10].finding == "larger than needed"
    assert (found[10].size_gib, found[10].iops, found[10].throughput_mib_per_s) == (4000, 6000, 200)
    assert found[10].known_from == "bill"
    assert found[10].used_bytes == 300 * simulated.GIB
    # 300 GiB and 15 % free above; the catch-up within ten minutes is what asks for throughput.
    assert found[10].wanted_size_gib == 360
    assert found[10].wanted_iops == 3000
    assert found[10].monthly_saving > 300
    assert found[19].finding == "attached to nothing"
    assert found[19].monthly_saving == pytest.approx(Decimal(80), abs=Decimal("0.01"))


def test_the_odd_day_stands_out_and_says_whose_it_was(world: World) -> None:
    odd = [row for row in world.table("anomalies") if row.component == "inter-AZ transfer"]
    assert [row.day for row in odd] == [date(2026, 11, ODD_DAY)]
    assert (odd[0].owner, odd[0].zone) == ("broker-a", "us-east-1a")
    assert odd[0].excess == pytest.approx(Decimal(2 * 59 * 24) / 100)
    assert "account for 100 % of it" in odd[0].reason


def test_both_designs_are_compared_at_what_was_measured(world: World) -> None:
    rows = {row.design: row for row in world.table("economics")}
    assert rows["EBS"].brokers == 3
    assert rows["EBS"].rotations_per_month == pytest.approx(3 / 11 * 365 / 12, rel=0.01)
    assert rows["EBS"].rotation_cost < Decimal("0.01") < rows["NVMe"].rotation_cost
    assert rows["NVMe"].rotation_seconds > 5 * rows["EBS"].rotation_seconds


def test_a_unit_costs_its_days_share(world: World) -> None:
    rows = [row for row in world.table("unit") if row.day == date(2026, 11, 3)]
    (row,) = rows
    assert row.complete
    assert row.cost_per_broker_month == pytest.approx(float(row.cost) * 30 / row.brokers)
    assert row.cost_per_produced_gib == pytest.approx(float(row.cost) / row.produced_gib)
    last = max(world.table("unit"), key=lambda each: each.day)
    assert not last.complete


def test_what_ran_on_the_nodes_adds_up_to_what_they_cost(world: World) -> None:
    rows = world.table("nodes")
    assert {row.kind for row in rows} == {"Kafka", "daemon set"}
    cost = [each for each in world.made.evidence.report.lines if each.component == "broker compute"]
    assert sum(row.split_cost + row.unused_cost for row in rows) == sum(
        c.amortised_cost for c in cost
    )


def test_the_price_book_is_held_against_the_bill(world: World) -> None:
    rates = billed_rates(world.store.rows(tables.USAGE))
    items = {each.item for each in disagreements(BOOK, rates)}
    # The synthetic bill charges half a dollar an hour, and for the rest what the book says.
    assert items == {"instance_hour:r7g.2xlarge"}
    told = [note for note in world.made.evidence.notes if note.startswith("A list price is far")]
    assert len(told) == 1
    assert "instance_hour:r7g.2xlarge is 0.4284 USD" in told[0]


@browser.needed
def test_the_page_opens_quietly_and_sorts_by_what_its_figures_mean(world: World) -> None:
    html = formats.write(world.made.document, Format.HTML)
    clicks = """<script>
      const heads = [...document.querySelectorAll("#storage thead button")];
      heads.find((each) => each.textContent === "Size").click();
      const rows = [...document.querySelectorAll("#storage tbody tr")];
      const sizes = rows.map((row) => row.cells[1].dataset.value);
      document.body.append("sorted: " + sizes.join(" "));
    </script></body>"""
    page = world.folder / "page.html"
    page.write_text(html.replace("</body>", clicks))
    chromium = browser.find()
    assert chromium is not None
    seen = browser.look(chromium, page)
    assert seen.console == ()
    assert "sorted: 4000 4000 4000 1000" in seen.dom


def test_the_json_says_what_the_page_says(world: World) -> None:
    document = json.loads(formats.write(world.made.document, Format.JSON))
    assert Decimal(document["total"]["exact"]) == world.total
    assert Decimal(document["total"]["kafka"]) == world.made.evidence.report.kafkas.billed
    keys = [section["key"] for section in document["sections"]]
    assert keys == [
        *("changes", "cost", "nodes", "transfer", "storage", "resync", "economics", "unit"),
        *("easy", "others"),
    ]
