"""The whole report on one bill, tagged and untagged: its totals are the lines' own.

Nothing here knows how the report adds up: amounts are decimals, written into the bill as doubles of
few digits, and added up by the account or the owner that the generator chose.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost.pricing import book, total
from core.settings.facts import Pool, Volume
from spark import tables
from spark.jobs import every
from spark.report import formats, story
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills, simulated
from tests.unit.spark.bills import NOVEMBER, OWN_TAGS, Line

CLAIM = "user_kubernetes_io_created_for_pvc_name"
STREAMING = {"user_team": "streaming"}
# What anybody buys: product, usage type, operation and unit.
STRANGERS = """AmazonEC2 BoxUsage:m7i.large RunInstances Hrs
    AmazonEC2 EBS:VolumeUsage.gp2 CreateVolume-Gp2 GB-Mo
    AmazonEC2 EBS:SnapshotUsage CreateSnapshot GB-Mo
    AmazonEC2 DataTransfer-Out-Bytes RunInstances GB
    AmazonEC2 NatGateway-Bytes NatGateway GB
    AmazonVPC PublicIPv4:InUseAddress AllocateAddressVPC Hrs
    AmazonS3 TimedStorage-ByteHrs StandardStorage GB-Mo
    AmazonRDS InstanceUsage:db.r6g.large CreateDBInstance Hrs
    AWSLambda Lambda-GB-Second Invoke Second""".splitlines()
EXTENDED = "AmazonEKS AmazonEKS-Hours:extendedSupport RunCluster Hours"
TODAY = date(2026, 12, 20)
POOL = Pool("broker", True, "r7g.large", 3, (Volume(100, 3000, 125),))
KNOWN = {
    "facts": replace(simulated.FACTS, region="eu-west-1", pools=(POOL,)),
    "book": book("eu-west-1"),
}


def a_line(day: int, cost: str, meter: str, resource: str, **more: Any) -> Line:
    """Return one line of a CUR 2.0, the day counted from nought, not in dollars."""
    product, usage_type, operation, unit = meter.split()
    return {
        "line_item_unblended_cost": float(cost), "line_item_product_code": product,
        "line_item_usage_type": f"EU-{usage_type}", "line_item_operation": operation,
        "pricing_unit": unit, "line_item_usage_start_date": NOVEMBER + timedelta(days=day),
        "line_item_resource_id": resource, "line_item_availability_zone": "",
        "line_item_currency_code": "EUR", **more,
    }  # fmt: skip


def lines() -> Iterator[Line]:
    """Yield three brokers' lines, and strangers' with nothing in common but what was bought."""
    chance = random.Random(1)  # noqa: S311 - the same bill every time

    def cost() -> str:
        return f"{chance.uniform(0, 9):.10f}"

    for day in range(30):
        for number, letter in enumerate("abc"):
            zone = {"line_item_availability_zone": f"eu-west-1{letter}"}
            box = "AmazonEC2 BoxUsage:r7g.large RunInstances Hrs"
            yield a_line(day, cost(), box, f"i-0{number}", resource_tags=OWN_TAGS, **zone)
            claim = {CLAIM: f"data-0-harbour-broker-{letter}-{number}0"}
            own = {"resource_tags": {"user_stillwater_cluster": "harbour", **claim}}
            size = {"line_item_usage_amount": 100 / 30}
            gp3 = "AmazonEC2 EBS:VolumeUsage.gp3 CreateVolume-Gp3 GB-Mo"
            yield a_line(day, cost(), gp3, f"vol-0{number}", **own, **zone, **size)
        moved = "AmazonEC2 DataTransfer-Regional-Bytes InterZone-In GB"
        yield a_line(day, cost(), moved, "i-00", resource_tags=OWN_TAGS)
        for number, meter in enumerate(STRANGERS * 20):
            account = {"line_item_usage_account_id": f"{300000000000 + number % 5}"}
            tags = {"user_name": f"thing-{day}-{number}"}
            resource = f"arn:aws:any:{day}-{number}"
            yield a_line(day, cost(), meter, resource, resource_tags=tags, **account)
    yield a_line(0, "9000.00", EXTENDED, "arn:aws:eks:x")


def is_kafkas(line: Line) -> bool:
    return "user_stillwater_cluster" in line.get("resource_tags", {})


def untagged() -> Iterator[Line]:
    """Yield the same lines, of which a tag of the user's own alone says whose they are."""
    for line in lines():
        yield {**line, "resource_tags": STREAMING} if is_kafkas(line) else line


def billed_cost(lines: Iterable[Line]) -> Decimal:
    """Return what lines come to, by the amounts as they are written in the bill."""
    return total(Decimal(repr(float(each["line_item_unblended_cost"]))) for each in lines)


OWN_COST = billed_cost(filter(is_kafkas, lines()))


@dataclass(frozen=True)
class Reported:
    """The report of a bill, and the table below it."""

    made: every.Known
    usage: list[Any]

    @property
    def text(self) -> str:
        return formats.write(self.made.document, formats.Format.MD)


def reported(folder: Path, lines: Iterable[Line], **inputs: Any) -> Reported:
    bill = bills.cur_export(folder / "bill", list(lines))
    store = ParquetStore(str(folder / "tables"))
    made = every.run(store, every.Inputs(bill=bill, today=TODAY, **inputs))
    return Reported(made, store.rows(tables.USAGE))


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return reported(tmp_path_factory.mktemp("tagged"), lines(), **KNOWN)


def test_every_account_and_day_has_what_its_lines_say(tagged: Reported) -> None:
    wanted: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for each in lines():
        account = each.get("line_item_usage_account_id", "123456789012")
        wanted[account, each["line_item_usage_start_date"].date()] += billed_cost([each])
    found: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for row in tagged.usage:
        found[row.account, row.day] += row.billed_cost
        assert (row.resource_id is None) or row.attribution != "unattributed"
    assert found == wanted
    assert sum(row.charges for row in tagged.usage) == len([*lines()])
    report, shown = tagged.made.evidence.report, tagged.made.document.total
    assert tagged.made.bill_total == report.billed == Decimal(shown.exact) == total(wanted.values())
    assert report.kafkas.billed == Decimal(shown.headline) == OWN_COST
    assert not re.search(r"\d\.\d{7,}", " ".join(tagged.made.document.story))
    # A resource on every line makes a small table: nine meters, five accounts, thirty days, and
    # what three brokers have each day; EKS's one line.
    assert len(tagged.usage) <= 30 * (9 * 5 + 7) + 1


def test_in_another_currency_volumes_are_judged_and_rates_are_the_bills(tagged: Reported) -> None:
    volumes = [(row.size_gib, row.node_id) for row in tagged.made.evidence.storage]
    assert volumes == [(100, 0), (100, 10), (100, 20)]
    assert "this bill in EUR" in " ".join(tagged.made.document.story)
    assert not re.search(r"\d USD", tagged.text)
    kafkas = {"broker compute", "gp3 storage", "inter-AZ transfer"}
    assert {row.component for row in tagged.usage} >= kafkas
    # Every day of a final month has its unit costs.
    units = tagged.made.evidence.unit
    assert {row.day.day: row.complete for row in units} == dict.fromkeys(range(1, 31), True)


def test_a_tag_of_the_users_own_makes_it_kafkas(tmp_path: Path) -> None:
    one = reported(tmp_path, untagged(), kafka=KafkaTags(cluster="team", value="streaming"))
    kafka = one.made.evidence.report.kafkas
    assert (kafka.billed, kafka.clusters) == (OWN_COST, ["streaming"])


def test_of_a_bill_by_the_month_no_day_and_no_size_is_said(tmp_path: Path) -> None:
    first = [line for line in lines() if line["line_item_usage_start_date"].day == 1]
    made = reported(tmp_path, first, **KNOWN).made
    assert story.BY_THE_MONTH in made.document.story
    assert (made.evidence.storage, made.evidence.economics) == ([], [])
    assert made.document.section("unit") is None
    assert made.evidence.report.billed == billed_cost(first)
