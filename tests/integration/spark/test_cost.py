"""The twin's bill from beginning to end, and any bill: every dollar once, to the last digit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.aws import billing
from local.place import Place
from spark import tables
from spark.ingest import bill
from spark.jobs import every
from spark.report import formats
from spark.tables import ParquetStore
from tests import browser
from tests.unit.spark import bills

pytestmark = pytest.mark.integration
TODAY = date(2026, 11, 20)


@dataclass(frozen=True)
class Twin:
    bill: billing.Bill
    made: every.Known
    store: ParquetStore


class Ec2:
    """One broker's node and its volume, and a node no tag names, for half an hour."""

    launched = datetime(2026, 11, 20, 12, tzinfo=UTC)
    cluster: Mapping[str, str] = {"Key": "stillwater:cluster", "Value": "harbour"}

    def describe_instances(self, **_: Any) -> dict[str, Any]:
        broker = [self.cluster, {"Key": "stillwater:pool", "Value": "broker"}]
        instances = [self._instance("i-broker", broker), self._instance("i-stray", [])]
        return {"Reservations": [{"Instances": instances}]}

    def _instance(self, identity: str, tags: list[Mapping[str, str]]) -> dict[str, Any]:
        return {
            "InstanceId": identity,
            "InstanceType": "r7g.large",
            "LaunchTime": self.launched,
            "Placement": {"AvailabilityZone": "us-east-1a"},
            "Tags": tags,
        }

    def describe_volumes(self, **_: Any) -> dict[str, Any]:
        claim = "kubernetes.io/created-for/pvc/name"
        volume = {
            "VolumeId": "vol-1",
            "VolumeType": "gp3",
            "Size": 100,
            "Iops": 4000,
            "Throughput": 250,
            "CreateTime": self.launched,
            "AvailabilityZone": "us-east-1a",
            "Tags": [self.cluster, {"Key": claim, "Value": "data-0-harbour-broker-a-10"}],
        }
        return {"Volumes": [volume]}


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Twin:
    """The twin's bill, reported on twice: the second run must replace the first."""
    folder = tmp_path_factory.mktemp("twin")
    started = Ec2.launched.timestamp()
    bill = billing.write_bill(
        Place(79, folder),
        ec2=Ec2(),
        out=folder / "bill",
        started_at=started,
        ended_at=started + 1800,
        bytes_between_zones=5 * 1024**3,
    )
    store = ParquetStore(str(folder / "tables"))
    for _ in range(2):
        made = every.run(store, every.Inputs(bill=bill.path, today=TODAY))
    return Twin(bill, made, store)


def test_the_twins_bill_comes_back_to_the_last_digit_and_to_its_owners(twin: Twin) -> None:
    found = twin.made.evidence.report
    assert found.billed == twin.made.bill_total == twin.bill.total
    components = {share.name: share.billed for share in found.components()}
    assert components["broker compute"] == Decimal("0.05355")
    assert components["EC2 instances"] == Decimal("0.05355")
    assert components["inter-AZ transfer"] == Decimal("0.1")
    owners = {share.name: share for share in found.owners()}
    assert owners["harbour / broker-a"].detail == "node 10 in us-east-1a"
    assert owners["harbour / whole cluster"].billed == Decimal("0.1")
    assert owners["unattributed"].billed == Decimal("0.05355")
    assert found.simulated
    assert found.provisional
    table = twin.store.rows(tables.COST)
    assert sum(row.billed_cost for row in table) == twin.bill.total
    assert sum(row.charges for row in table) == found.rows == 2 + 3 + 2


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
    delivery = bill.read(bills.focus_file(path, rows))
    table = bills.usage_rows(delivery)
    assert sum(row.billed_cost for row in table) == sum(map(Decimal, numbers), Decimal(0))
    assert sum(row.charges for row in table) == len(rows)
    order.shuffle(rows)
    shuffled = bill.read(bills.focus_file(path, rows))
    assert set(bills.usage_rows(shuffled)) == set(table)


@browser.needed
def test_the_page_opens_quietly_and_its_table_sorts(twin: Twin, tmp_path: Path) -> None:
    chromium = browser.find()
    assert chromium is not None
    html = formats.as_html(twin.made.document)
    page, clicked = tmp_path / "page.html", tmp_path / "clicked.html"
    page.write_text(html)
    click = """<script>
      document.querySelectorAll('#cost table')[0].querySelectorAll('th button')[1].click();
    </script></body>"""
    clicked.write_text(html.replace("</body>", click))
    seen = browser.look(chromium, clicked)
    assert not seen.console
    assert 'aria-sort="descending"' in seen.dom
    shown = seen.dom.partition('id="cost"')[2]
    names = ("inter-AZ", "broker compute", "gp3 storage")
    order = [shown.index(f'class="text">{name}') for name in names]
    assert order == sorted(order)
    screenshot = browser.photograph(chromium, page, tmp_path / "page.png", size=browser.PHONE)
    assert screenshot.stat().st_size > 10_000
