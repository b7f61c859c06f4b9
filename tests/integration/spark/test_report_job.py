"""The report from beginning to end: a bill, samples and incidents in, a page out.

Every dollar is there once, to the last digit: of the twin's bill, of a month's, of any bill.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.cost import pricing
from core.cost.price_list import disagreements
from local.aws.billing import Bill
from local.bills import export
from local.bills.cluster import PODS, Broker, ClusterBill, hour_lines, monthly_lines
from local.bills.line import BillLine
from spark import tables
from spark.ingest import bill
from spark.jobs import every
from spark.report import formats
from spark.report.formats import Format
from spark.tables import ParquetStore
from spark.transforms.economics import billed_rates
from tests import browser
from tests.unit.local import test_billing
from tests.unit.local.test_billing import a_volume, an_instance
from tests.unit.spark import bills, simulated
from tests.unit.spark.simulated import FACTS, Rotation

pytestmark = pytest.mark.integration
BOOK = pricing.book("us-east-1")
# Three of today's days are enough for a size; the odd one is the tenth.
OCTOBER_HOURS, NOVEMBER_HOURS, ODD_DAY = 31 * 24, 11 * 24, 10
ROTATIONS = tuple(
    Rotation(node_id, simulated.at(11, 3 + index), 240, held_bytes=300.0 * simulated.GIB)
    for index, node_id in enumerate((10, 20, 30))
)
BROKERS = tuple(
    Broker(node_id=10 * (index + 1), zone=f"us-east-1{letter}", instance_type="r7g.2xlarge",
           volume_gib=4000, iops=6000, throughput_mib_per_s=200)
    for index, letter in enumerate("abc")
)  # fmt: skip
BUSY = (Broker(node_id=10, zone="us-east-1a", crossing_gb_per_hour=Decimal(60)), *BROKERS[1:])
FORGOTTEN = (Broker(node_id=19, zone="us-east-1a", volume_gib=1000),)


@dataclass(frozen=True)
class World:
    """A report that was made, once more from its tables, and what it was made from."""

    made: every.Known
    again: every.Known
    total: Decimal
    store: ParquetStore

    def table(self, name: str) -> list[Any]:
        return list(getattr(self.made.evidence, name))


def lines() -> Iterator[BillLine]:
    """Yield October and eleven days of November, with a volume that nobody mounts."""
    for period, hours in (("2026-10", OCTOBER_HOURS), ("2026-11", NOVEMBER_HOURS)):
        own, busy, lost = (
            ClusterBill(name=FACTS.cluster, period=period, hours=hours, brokers=brokers, pods=pods)
            for brokers, pods in ((BROKERS, PODS[:2]), (BUSY, ()), (FORGOTTEN, ()))
        )
        for hour in range(hours):
            is_odd = period == "2026-11" and hour // 24 + 1 == ODD_DAY
            moving = hour_lines(busy if is_odd else own, hour)
            yield from (line for line in moving if line.component == "inter-AZ transfer")
            rest = hour_lines(own, hour)
            yield from (line for line in rest if line.component != "inter-AZ transfer")
            volumes = hour_lines(lost, hour)
            yield from (line for line in volumes if line.resource_id.startswith("vol-"))
        yield from monthly_lines(own)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("report")
    whole = list(lines())
    export.write(folder / "bill", whole)
    series = [one for rotation in ROTATIONS for one in simulated.series(rotation)]
    series += [one for rotation in ROTATIONS for one in simulated.load(rotation)]
    known: dict[str, Any] = {
        "metrics": str(simulated.write_metrics(folder / "metrics.json", series)),
        "history": str(simulated.write_history(folder / "history", ROTATIONS)),
        "month": "2026-11",
        "facts": FACTS,
        "book": BOOK,
        "today": date(2026, 11, 21),
    }
    store = ParquetStore(str(folder / "tables"))
    made = every.run(store, every.Inputs(bill=folder / "bill", **known))
    again = every.run(store, every.Inputs(**known))
    november = sum((line.unblended for line in whole if line.period == "2026-11"), Decimal(0))
    return World(made, again, november, store)


def test_the_report_comes_to_its_bill_and_says_the_same_when_made_again(world: World) -> None:
    assert world.made.evidence.month == "2026-11"
    assert world.made.evidence.report.billed == world.made.bill_total == world.total
    document, again = (formats.as_json(each.document) for each in (world.made, world.again))
    assert again == document
    told = json.loads(document)
    assert Decimal(told["total"]["exact"]) == world.total
    assert Decimal(told["total"]["kafka"]) == world.made.evidence.report.kafkas.billed
    assert [section["key"] for section in told["sections"]] == [
        *("changes", "cost", "nodes", "transfer", "storage", "resync", "economics", "unit"),
        *("easy", "others"),
    ]


def test_the_odd_day_stands_out_and_says_whose_it_was(world: World) -> None:
    (odd,) = [row for row in world.table("anomalies") if row.component == "inter-AZ transfer"]
    assert (odd.day.day, odd.owner, odd.zone) == (ODD_DAY, "broker-a", "us-east-1a")
    assert odd.excess == pytest.approx(Decimal(2 * 59 * 24) / 100)
    assert "account for 100 % of it" in odd.reason


def test_both_designs_are_compared_at_what_was_measured(world: World) -> None:
    rows = {row.design: row for row in world.table("economics")}
    assert rows["EBS"].brokers == 3
    assert rows["EBS"].rotations_per_month == pytest.approx(3 / 11 * 365 / 12, rel=0.01)
    assert rows["EBS"].rotation_cost < Decimal("0.01") < rows["NVMe"].rotation_cost
    assert rows["NVMe"].rotation_seconds > 5 * rows["EBS"].rotation_seconds


def test_a_unit_costs_its_days_share(world: World) -> None:
    (row,) = [row for row in world.table("unit") if row.day == date(2026, 11, 3)]
    assert row.complete
    assert row.cost_per_broker_month == pytest.approx(float(row.cost) * 30 / row.brokers)
    assert row.cost_per_produced_gib == pytest.approx(float(row.cost) / row.produced_gib)
    assert not max(world.table("unit"), key=lambda each: each.day).complete


def test_the_price_book_is_held_against_the_bill(world: World) -> None:
    rates = billed_rates(world.store.rows(tables.USAGE))
    items = {each.item for each in disagreements(BOOK, rates)}
    # The synthetic bill charges half a dollar an hour, and for the rest what the book says.
    assert items == {"instance_hour:r7g.2xlarge"}
    notes = [n for n in world.made.evidence.notes if n.startswith("A list price is far")]
    (told,) = notes
    assert "instance_hour:r7g.2xlarge is 0.4284 USD" in told


@browser.needed
def test_the_page_opens_quietly_and_sorts_by_what_its_figures_mean(
    world: World, tmp_path: Path
) -> None:
    html = formats.write(world.made.document, Format.HTML)
    clicks = """<script>
      const heads = [...document.querySelectorAll("#storage thead button")];
      heads.find((each) => each.textContent === "Size").click();
      const rows = [...document.querySelectorAll("#storage tbody tr")];
      const sizes = rows.map((row) => row.cells[1].dataset.value);
      document.body.append("sorted: " + sizes.join(" "));
    </script></body>"""
    page, chromium = tmp_path / "page.html", browser.find()
    page.write_text(html.replace("</body>", clicks))
    assert chromium is not None
    seen = browser.look(chromium, page)
    assert seen.console == ()
    assert "sorted: 4000 4000 4000 1000" in seen.dom


# --- The twin's bill.


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bill, every.Known, ParquetStore]:
    """A broker's node and volume and a node no tag names, billed for half an hour.

    The bill is reported on twice: the second run must replace the first.
    """
    folder = tmp_path_factory.mktemp("twin")
    cluster = {"Key": "stillwater:cluster", "Value": "harbour"}
    pool = {"Key": "stillwater:pool", "Value": "broker"}
    claim = {"Key": "kubernetes.io/created-for/pvc/name", "Value": "data-0-harbour-broker-a-10"}
    bill, _ = test_billing.bill(
        folder / "bill",
        instances=[an_instance("i-broker", Tags=[cluster, pool]), an_instance("i-stray", Tags=[])],
        volumes=[a_volume(Iops=4000, Throughput=250, Tags=[cluster, claim])],
        bytes_between_zones=5 * 1024**3,
    )
    store = ParquetStore(str(folder / "tables"))
    for _ in range(2):
        made = every.run(store, every.Inputs(bill=bill.path, today=date(2026, 11, 20)))
    return bill, made, store


def test_the_twins_bill_comes_back_to_the_last_digit_and_to_its_owners(twin: Any) -> None:
    bill, made, store = twin
    found = made.evidence.report
    assert found.billed == made.bill_total == bill.total
    components = {share.name: share.billed for share in found.components()}
    assert components["broker compute"] == components["EC2 instances"] == Decimal("0.05355")
    assert components["inter-AZ transfer"] == Decimal("0.1")
    owners = {share.name: share for share in found.owners()}
    assert owners["harbour / broker-a"].detail == "node 10 in us-east-1a"
    assert owners["harbour / whole cluster"].billed == Decimal("0.1")
    assert owners["unattributed"].billed == Decimal("0.05355")
    assert found.simulated
    assert found.provisional
    table = store.rows(tables.COST)
    assert sum(row.billed_cost for row in table) == bill.total
    assert sum(row.charges for row in table) == found.rows == 2 + 3 + 2


# --- Any bill.

CELLS = st.fixed_dictionaries(
    {
        "BilledCost": st.decimals(min_value=-99999, max_value=99999, places=11).map(str)
        | st.sampled_from(["NULL", "", "x", "NaN", "1e-9"]),
        "ChargeCategory": st.sampled_from(["Usage", "Tax", "Credit", "NULL"]),
        "ChargePeriodStart": st.sampled_from(["2026-11-20 12:00:00", "NULL"]),
        "PricingUnit": st.sampled_from(["Hours", "GB", "GB-Months", "NULL"]),
        "ProviderName": st.sampled_from(["AWS", "Microsoft", "NULL"]),
        "Tags": st.sampled_from(["NULL", "{", '{"stillwater:cluster": "harbour"}', '"text"']),
        "ChargeDescription": st.text(alphabet="a\",\\'é ", max_size=12),
    }
)


@pytest.mark.long
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(CELLS, min_size=1, max_size=40), order=st.randoms())
def test_any_bills_dollars_are_each_in_one_row_in_whatever_order(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, order: Any
) -> None:
    path = tmp_path_factory.mktemp("bill") / "focus.csv"
    numbers = [r["BilledCost"] for r in rows if r["BilledCost"] not in ("NULL", "", "x", "NaN")]
    table = bills.usage_rows(bill.read(bills.focus_file(path, rows)))
    assert sum(row.billed_cost for row in table) == sum(map(Decimal, numbers), Decimal(0))
    assert sum(row.charges for row in table) == len(rows)
    order.shuffle(rows)
    assert set(bills.usage_rows(bill.read(bills.focus_file(path, rows)))) == set(table)
