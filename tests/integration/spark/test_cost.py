"""The cost job from bill to page: every dollar once, the bill's total to the last digit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.ground.errors import InvalidInput, StillwaterError
from local.aws import billing
from local.place import Place
from spark.ingest import bill
from spark.jobs import ingest
from spark.report.model import Line
from spark.rules.names import Attribution, Component
from tests import browser
from tests.unit.spark import bills, cost_report, here

pytestmark = pytest.mark.integration
TODAY = date(2026, 11, 20)


@dataclass(frozen=True)
class Twin:
    bill: billing.Bill
    result: cost_report.CostResult


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
    cost_report.report_on(bill_at=bill.path, out=folder / "out", today=TODAY)
    return Twin(bill, cost_report.report_on(bill_at=bill.path, out=folder / "out", today=TODAY))


def test_the_twins_bill_comes_back_to_the_last_digit_and_to_its_owners(twin: Twin) -> None:
    result = twin.result
    assert str(result.report_total) == str(result.bill_total) == str(twin.bill.total)
    assert result.components["broker compute"] == Decimal("0.05355")
    assert result.components["EC2 instances"] == Decimal("0.05355")
    assert result.components["inter-AZ transfer"] == Decimal("0.1")
    owners = {share.name: share for share in result.report.owners()}
    assert owners["harbour / broker-a"].detail == "node 10 in us-east-1a"
    assert owners["harbour / whole cluster"].billed == Decimal("0.1")
    assert owners["unattributed"].billed == Decimal("0.05355")
    assert result.report.simulated
    assert result.report.provisional


def test_the_table_on_disk_is_what_the_page_shows(twin: Twin) -> None:
    table = pq.read_table(twin.result.page.parent / "cost").to_pylist()
    assert sum(row["billed_cost"] for row in table) == twin.bill.total
    assert sum(row["charges"] for row in table) == twin.result.rows == 2 + 3 + 2


def test_bad_rows_are_counted_shown_and_their_readable_dollars_kept(tmp_path: Path) -> None:
    rows = [{}, {"BilledCost": "abc"}, {"ChargePeriodStart": "NULL", "BilledCost": "0.25"}]
    path = bills.focus_file(tmp_path / "focus.csv", rows)
    result = cost_report.report_on(bill_at=path, out=tmp_path / "out", today=TODAY)
    assert (result.rows, result.bad_rows, result.report.rows_without_cost) == (3, 2, 1)
    assert result.bill_total == result.report_total == Decimal("1.25")
    assert result.components["unreadable rows"] == Decimal("0.25")
    html = result.page.read_text()
    assert "BilledCost &#39;abc&#39; is not a number" in html
    assert "ChargePeriodStart is empty" in html
    assert pq.read_table(tmp_path / "out" / "quarantine").num_rows == 2


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
    table = here.usage_rows(delivery)
    assert sum(row.billed_cost for row in table) == sum(map(Decimal, numbers), Decimal(0))
    assert sum(row.charges for row in table) == len(rows)
    order.shuffle(rows)
    shuffled = bill.read(bills.focus_file(path, rows))
    assert set(here.usage_rows(shuffled)) == set(table)


def test_a_table_that_lost_a_dollar_or_a_row_is_refused() -> None:
    line = Line(
        "2026-11",
        Component.OTHER,
        Attribution.NOBODY,
        None,
        "x",
        None,
        None,
        2,
        Decimal(3),
        Decimal(3),
    )
    for lines, billed, fits in ((2, "3.000", True), (2, "3.000000000001", False), (3, "3", False)):
        month = ingest.Control(lines, 0, Decimal(billed))
        came_in = ingest.Ingested("bill", {"2026-11": month}, {}, simulated=False)
        refused = pytest.raises(StillwaterError, match="the report was not written")
        with nullcontext() if fits else refused:
            cost_report.reconcile(came_in, [line])


def test_two_currencies_are_not_added_up(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus.csv", [{}, {"BillingCurrency": "EUR"}])
    with pytest.raises(InvalidInput, match="has charges in EUR and USD"):
        cost_report.report_on(bill_at=path, out=tmp_path / "out", today=TODAY)


def test_a_bill_without_rows_is_refused(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus.csv", [])
    with pytest.raises(InvalidInput, match="holds no rows"):
        cost_report.report_on(bill_at=path, out=tmp_path / "out", today=TODAY)


def test_a_report_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InvalidInput, match="cannot be written to"):
        cost_report.report_on(bill_at=tmp_path / "a.csv", out=tmp_path / "out")


@browser.needed
def test_the_page_opens_quietly_and_its_table_sorts(twin: Twin, tmp_path: Path) -> None:
    chromium, page = browser.find(), twin.result.page
    assert chromium is not None
    clicked = tmp_path / "clicked.html"
    click = '<script>document.querySelectorAll("th button")[1].click()</script></body>'
    clicked.write_text(page.read_text().replace("</body>", click))
    seen = browser.look(chromium, clicked)
    assert not seen.console
    assert 'aria-sort="descending"' in seen.dom
    names = ("inter-AZ", "broker compute", "gp3 storage")
    order = [seen.dom.index(f'class="text">{name}') for name in names]
    assert order == sorted(order)
    screenshot = browser.photograph(chromium, page, tmp_path / "page.png", size=browser.PHONE)
    assert screenshot.stat().st_size > 10_000
