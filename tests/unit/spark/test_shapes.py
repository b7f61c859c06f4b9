"""The whole report on bills of three shapes: its totals are the lines' own, its sentences true.

Nothing here knows how the report adds up: amounts are decimals, written into the bill as doubles of
few digits, and added up by the account or the owner that the generator chose.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
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
ACCOUNT = "123456789012"
Meter = tuple[str, str, str, str]
GP3: Meter = ("AmazonEC2", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo")
REGIONAL: Meter = ("AmazonEC2", "DataTransfer-Regional-Bytes", "InterZone-In", "GB")
METERS: tuple[Meter, ...] = (
    ("AmazonEC2", "BoxUsage:m7i.large", "RunInstances", "Hrs"),
    GP3,
    ("AmazonEC2", "EBS:VolumeUsage.gp2", "CreateVolume-Gp2", "GB-Mo"),
    ("AmazonEC2", "EBS:SnapshotUsage", "CreateSnapshot", "GB-Mo"),
    REGIONAL,
    ("AmazonEC2", "DataTransfer-Out-Bytes", "RunInstances", "GB"),
    ("AmazonEC2", "NatGateway-Bytes", "NatGateway", "GB"),
    ("AmazonVPC", "PublicIPv4:InUseAddress", "AllocateAddressVPC", "Hrs"),
    ("AmazonS3", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo"),
    ("AmazonRDS", "InstanceUsage:db.r6g.large", "CreateDBInstance", "Hrs"),
    ("AWSLambda", "Lambda-GB-Second", "Invoke", "Second"),
)


def a_line(
    day: int, cost: str, meter: Meter = METERS[0], resource: str = "", zone: str = "", **more: Any
) -> Line:
    """Return one line of a CUR 2.0, the day counted from nought."""
    product, usage_type, operation, unit = meter
    return {
        "line_item_unblended_cost": float(cost), "line_item_product_code": product,
        "line_item_usage_type": usage_type, "line_item_operation": operation,
        "pricing_unit": unit, "line_item_usage_amount": 1.0,
        "line_item_usage_start_date": NOVEMBER + timedelta(days=day),
        "line_item_resource_id": resource, "line_item_availability_zone": zone,
        "resource_tags": {}, **more,
    }  # fmt: skip


def costs(seed: int, most: float = 9.0) -> Iterator[str]:
    """Yield amounts as AWS writes them, of ten places: the same bill every time."""
    chance = random.Random(seed)  # noqa: S311
    while True:
        yield f"{chance.uniform(0, most):.10f}"


def broker(day: int, number: int, cost: str, prefix: str = "", region: str = "us-east-1") -> Line:
    meter = ("AmazonEC2", f"{prefix}BoxUsage:r7g.large", "RunInstances", "Hrs")
    zone = f"{region}{'abc'[number]}"
    return a_line(day, cost, meter, f"i-0{number}", zone, resource_tags=OWN_TAGS)


def tagless() -> Iterator[Line]:
    cost = costs(7)
    for day in range(30):
        yield from (a_line(day, next(cost), meter, f"r-{meter[1]}") for meter in METERS)
        tags = {"user_team": "streaming", "user_name": f"box {day}"}
        yield a_line(day, next(cost), resource="i-0kafka", resource_tags=tags)
    yield a_line(0, "336.00", ("AmazonEKS", "AmazonEKS-Hours:extendedSupport", "", "Hours"))


def eu_west_1() -> Iterator[Line]:
    """Yield a cluster's lines elsewhere, in another currency than price files."""
    cost = costs(1)
    bought: list[Line] = []
    for day in range(30):
        for number, letter in enumerate("abc"):
            claim = {CLAIM: f"data-0-harbour-broker-{letter}-{number}0"}
            tags = {"user_stillwater_cluster": "harbour", **claim}
            more = {"line_item_usage_amount": 100 / 30, "resource_tags": tags}
            volume = (f"vol-0{number}", f"eu-west-1{letter}")
            gp3 = (GP3[0], f"EU-{GP3[1]}", *GP3[2:])
            bought.append(broker(day, number, next(cost), "EU-", "eu-west-1"))
            bought.append(a_line(day, next(cost), gp3, *volume, **more))
        moved = (REGIONAL[0], f"EU-{REGIONAL[1]}", *REGIONAL[2:])
        bought.append(a_line(day, next(cost), moved, "i-00", resource_tags=OWN_TAGS))
        put = ("AmazonS3", "EU-Requests-Tier1", "PutObject", "Requests")
        bought.append(a_line(day, next(cost), put))
    yield from ({**each, "line_item_currency_code": "EUR"} for each in bought)


def a_resource_a_line() -> Iterator[Line]:
    """Yield lines that have nothing in common but what was bought."""
    cost = costs(11, 0.01)
    for number in range(20_000):
        meter, resource = METERS[number % len(METERS)], f"arn:aws:any:{number}"
        account = {"line_item_usage_account_id": f"{300000000000 + number % 5}"}
        tags = {"user_name": f"thing-{number}"}
        yield a_line(number % 30, next(cost), meter, resource, resource_tags=tags, **account)
    yield from (broker(day, 0, next(cost)) for day in range(30))


SHAPES: Mapping[str, Callable[[], Iterator[Line]]] = {
    shape.__name__: shape for shape in (tagless, eu_west_1, a_resource_a_line)
}
TODAY = date(2026, 12, 20)
POOL = Pool("broker", True, "r7g.large", 3, (Volume(100, 3000, 125),))
KNOWN = {
    "facts": replace(simulated.FACTS, region="eu-west-1", pools=(POOL,)),
    "book": book("eu-west-1"),
}


def billed_cost(lines: Iterable[Line]) -> Decimal:
    """Return what lines come to, by the amounts as they are written in the bill."""
    return total(Decimal(repr(float(each["line_item_unblended_cost"]))) for each in lines)


@dataclass(frozen=True)
class Reported:
    """A bill's lines, the report of them, and the table below it."""

    lines: list[Line]
    made: every.Known
    usage: list[Any]

    @property
    def text(self) -> str:
        return formats.write(self.made.document, formats.Format.MD)


def reported(folder: Path, shape: Iterable[Line], **inputs: Any) -> Reported:
    lines = list(shape)
    bill = bills.cur_export(folder / "bill", lines)
    store = ParquetStore(str(folder / "tables"))
    made = every.run(store, every.Inputs(bill=bill, today=TODAY, **inputs))
    return Reported(lines, made, store.rows(tables.USAGE))


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reported]:
    """Every shape, reported once."""
    more = {"eu_west_1": KNOWN}
    return {
        name: reported(tmp_path_factory.mktemp(name), shape(), **more.get(name, {}))
        for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize("name", SHAPES)
def test_every_account_and_day_has_what_its_lines_say_and_kafkas_what_the_tags(
    of: dict[str, Reported], name: str
) -> None:
    one = of[name]
    wanted: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for each in one.lines:
        account = each.get("line_item_usage_account_id", ACCOUNT)
        wanted[account, each["line_item_usage_start_date"].date()] += billed_cost([each])
    found: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for row in one.usage:
        found[row.account, row.day] += row.billed_cost
        assert (row.resource_id is None) or row.attribution != "unattributed"
    assert found == wanted
    assert sum(row.charges for row in one.usage) == len(one.lines)
    own = billed_cost(e for e in one.lines if "user_stillwater_cluster" in e["resource_tags"])
    report, shown = one.made.evidence.report, one.made.document.total
    assert one.made.bill_total == report.billed == Decimal(shown.exact) == total(wanted.values())
    assert (report.kafkas.billed, Decimal(shown.headline)) == (own, own or one.made.bill_total)
    assert not re.search(r"\d\.\d{7,}", " ".join(one.made.document.story))


def test_a_resource_on_every_line_makes_a_small_table(of: dict[str, Reported]) -> None:
    # Eleven meters, five accounts, thirty days; and a broker.
    assert len(of["a_resource_a_line"].usage) <= 11 * 5 * 30 + 30


def test_without_tags_nothing_is_called_kafkas_and_the_tag_is_asked_for(
    of: dict[str, Reported],
) -> None:
    document, text = of["tagless"].made.document, of["tagless"].text
    assert "broker compute" not in text
    assert document.title.startswith("AWS cost report, ")
    assert document.actions[0].title == "Name Kafka's tag"
    assert "team=streaming" in text
    assert "extended support" in document.actions[1].title


def test_a_tag_of_the_users_own_makes_it_kafkas(tmp_path: Path) -> None:
    one = reported(tmp_path, tagless(), kafka=KafkaTags(cluster="team", value="streaming"))
    kafka = one.made.evidence.report.kafkas
    own = [e for e in one.lines if e["resource_tags"].get("user_team") == "streaming"]
    assert (kafka.billed, kafka.clusters) == (billed_cost(own), ["streaming"])
    known = {row.resource_id for row in one.usage if row.attribution != "unattributed"}
    assert known == {"i-0kafka"}


def test_in_another_currency_volumes_are_judged_and_rates_are_the_bills(
    of: dict[str, Reported],
) -> None:
    one = of["eu_west_1"]
    volumes = [(row.size_gib, row.node_id) for row in one.made.evidence.storage]
    assert volumes == [(100, 0), (100, 10), (100, 20)]
    assert "this bill in EUR" in " ".join(one.made.document.story)
    assert not re.search(r"\d USD", one.text)
    kafkas = {"broker compute", "gp3 storage", "inter-AZ transfer"}
    assert {row.component for row in one.usage} >= kafkas
    # Every day of a final month has its unit costs.
    units = one.made.evidence.unit
    assert {row.day.day: row.complete for row in units} == dict.fromkeys(range(1, 31), True)


def test_of_a_bill_by_the_month_no_day_and_no_size_is_said(tmp_path: Path) -> None:
    first = [line for line in eu_west_1() if line["line_item_usage_start_date"].day == 1]
    made = reported(tmp_path, first, **KNOWN).made
    assert story.BY_THE_MONTH in made.document.story
    assert (made.evidence.storage, made.evidence.economics) == ([], [])
    assert made.document.section("unit") is None
    assert made.evidence.report.billed == billed_cost(first)
