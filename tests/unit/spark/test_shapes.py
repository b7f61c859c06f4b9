"""The whole report on bills of three shapes: its totals are the lines' own, its sentences true.

Nothing here knows how the report adds up: amounts are decimals, written into the bill as doubles of
few digits, and added up by the account or the owner that the generator chose.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost.pricing import book
from core.settings.facts import Facts, Pool, Volume
from spark import tables
from spark.jobs import every
from spark.report import formats, story
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills

Line = Mapping[str, Any]
START = datetime(2026, 11, 1)  # noqa: DTZ001 - CUR writes no zone
OURS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
METERS = (
    ("AmazonEC2", "BoxUsage:m7i.large", "RunInstances", "Hrs"),
    ("AmazonEC2", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo"),
    ("AmazonEC2", "EBS:VolumeUsage.gp2", "CreateVolume-Gp2", "GB-Mo"),
    ("AmazonEC2", "EBS:SnapshotUsage", "CreateSnapshot", "GB-Mo"),
    ("AmazonEC2", "DataTransfer-Regional-Bytes", "InterZone-In", "GB"),
    ("AmazonEC2", "DataTransfer-Out-Bytes", "RunInstances", "GB"),
    ("AmazonEC2", "NatGateway-Bytes", "NatGateway", "GB"),
    ("AmazonVPC", "PublicIPv4:InUseAddress", "AllocateAddressVPC", "Hrs"),
    ("AmazonS3", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo"),
    ("AmazonRDS", "InstanceUsage:db.r6g.large", "CreateDBInstance", "Hrs"),
    ("AWSLambda", "Lambda-GB-Second", "Invoke", "Second"),
)


def a_line(day: int, cost: str, meter: tuple[str, str, str, str] = METERS[0], **more: Any) -> Line:
    """Return one line of a CUR 2.0, the day counted from nought."""
    product, usage_type, operation, unit = meter
    begins = START + timedelta(days=day, hours=more.pop("hour", 0))
    return {
        "line_item_unblended_cost": float(cost),
        "line_item_product_code": product,
        "line_item_usage_type": usage_type,
        "line_item_operation": operation,
        "pricing_unit": unit,
        "line_item_usage_amount": 1.0,
        "line_item_usage_start_date": begins,
        "line_item_resource_id": "",
        "line_item_availability_zone": "",
        "resource_tags": {},
        **more,
    }


def seeded_random(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same bill every time


def a_cost(chance: random.Random, most: float = 9.0) -> str:
    """Return an amount as AWS writes it: ten places."""
    return f"{chance.uniform(0, most):.10f}"


def _broker(day: int, number: int, cost: str, prefix: str = "", **more: Any) -> Line:
    zone = f"{more.pop('region', 'us-east-1')}{'abc'[number]}"
    account = more.pop("account", "123456789012")
    return a_line(
        day,
        cost,
        ("AmazonEC2", f"{prefix}BoxUsage:r7g.large", "RunInstances", "Hrs"),
        line_item_usage_account_id=account,
        line_item_resource_id=f"i-0{number}",
        line_item_availability_zone=zone,
        resource_tags=OURS,
        **more,
    )


def tagless() -> Iterator[Line]:
    chance = seeded_random(7)
    for day in range(30):
        for meter in METERS:
            yield a_line(day, a_cost(chance), meter, line_item_resource_id=f"r-{meter[1]}")
        yield a_line(
            day,
            a_cost(chance),
            line_item_resource_id="i-0kafka",
            resource_tags={"user_team": "streaming", "user_name": f"box {day}"},
        )
    yield a_line(0, "336.00", ("AmazonEKS", "AmazonEKS-Hours:extendedSupport", "", "Hours"))


def eu_west_1() -> Iterator[Line]:
    """Yield a cluster's lines elsewhere, in another currency than price files."""
    for each in _of_eu_west_1():
        yield {**each, "line_item_currency_code": "EUR"}


def _of_eu_west_1() -> Iterator[Line]:
    chance = seeded_random(1)
    for day in range(30):
        for number in range(3):
            yield _broker(day, number, a_cost(chance), "EU-", region="eu-west-1")
            yield a_line(
                day,
                a_cost(chance),
                ("AmazonEC2", "EU-EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo"),
                line_item_resource_id=f"vol-0{number}",
                line_item_availability_zone=f"eu-west-1{'abc'[number]}",
                line_item_usage_amount=100 / 30,
                resource_tags={
                    "user_stillwater_cluster": "harbour",
                    "user_kubernetes_io_created_for_pvc_name": (
                        f"data-0-harbour-broker-{'abc'[number]}-{number}0"
                    ),
                },
            )
        yield a_line(
            day,
            a_cost(chance),
            ("AmazonEC2", "EU-DataTransfer-Regional-Bytes", "InterZone-In", "GB"),
            line_item_resource_id="i-00",
            resource_tags=OURS,
        )
        yield a_line(
            day, a_cost(chance), ("AmazonS3", "EU-Requests-Tier1", "PutObject", "Requests")
        )


def a_resource_a_line(lines: int = 20_000) -> Iterator[Line]:
    """Yield lines that have nothing in common but what was bought."""
    chance = seeded_random(11)
    for number in range(lines):
        yield a_line(
            number % 30,
            a_cost(chance, 0.01),
            METERS[number % len(METERS)],
            line_item_resource_id=f"arn:aws:any:{number}",
            line_item_usage_account_id=f"{300000000000 + number % 5}",
            resource_tags={"user_name": f"thing-{number}"},
        )
    for day in range(30):
        yield _broker(day, 0, a_cost(chance))


SHAPES: Mapping[str, Callable[[], Iterator[Line]]] = {
    shape.__name__: shape for shape in (tagless, eu_west_1, a_resource_a_line)
}


def billed_cost(each: Line) -> Decimal:
    """Return an amount as it is written in the bill."""
    return Decimal(repr(float(each["line_item_unblended_cost"])))


def is_kafkas(each: Line) -> bool:
    return "user_stillwater_cluster" in each["resource_tags"]


TODAY = date(2026, 12, 20)
FACTS = Facts(
    cluster="harbour",
    archive_name="try-harbour",
    region="eu-west-1",
    zones=3,
    replication_factor=3,
    retention_seconds=604_800,
    resync_within_seconds=600,
    pools=(Pool("broker", True, "r7g.large", 3, (Volume(100, 3000, 125),)),),
)


@dataclass(frozen=True)
class Reported:
    """One shape: its lines, the report of them, and the table below it."""

    lines: list[Line]
    made: every.Known
    usage: list[Any]

    @property
    def text(self) -> str:
        return formats.write(self.made.document, formats.Format.MD)


def reported(folder: Path, name: str, **inputs: object) -> Reported:
    lines = list(SHAPES[name]())
    bill = bills.cur_export(folder / "bill", lines)
    store = ParquetStore(str(folder / "tables"))
    asked = every.Inputs(bill=bill, today=TODAY, **inputs)  # type: ignore[arg-type]
    made = every.run(store, asked)
    return Reported(lines, made, store.rows(tables.USAGE))


def total(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reported]:
    """Every shape, reported once."""
    more = {"eu_west_1": {"facts": FACTS, "book": book("eu-west-1")}}
    return {
        name: reported(tmp_path_factory.mktemp(name), name, **more.get(name, {})) for name in SHAPES
    }


@pytest.mark.parametrize("name", SHAPES)
def test_every_account_and_day_has_what_its_lines_say_and_kafkas_what_the_tags(
    of: dict[str, Reported], name: str
) -> None:
    one = of[name]
    wanted: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for each in one.lines:
        account = each.get("line_item_usage_account_id", "123456789012")
        wanted[account, each["line_item_usage_start_date"].date()] += billed_cost(each)
    found: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    for row in one.usage:
        found[row.account, row.day] += row.billed_cost
        assert (row.resource_id is None) or row.attribution != "unattributed"
    assert found == wanted
    assert sum(row.charges for row in one.usage) == len(one.lines)
    own = total(billed_cost(each) for each in one.lines if is_kafkas(each))
    report = one.made.evidence.report
    shown = one.made.document.total
    assert one.made.bill_total == report.billed == Decimal(shown.exact) == total(wanted.values())
    assert (report.kafkas.billed, Decimal(shown.headline)) == (own, own or one.made.bill_total)
    for sentence in one.made.document.story:
        assert not re.search(r"\d\.\d{7,}", sentence), sentence


def test_a_resource_on_every_line_makes_a_small_table(of: dict[str, Reported]) -> None:
    # Eleven meters, five accounts, thirty days; and a broker.
    assert len(of["a_resource_a_line"].usage) <= 11 * 5 * 30 + 30


def test_without_tags_nothing_is_called_kafkas_and_the_tag_is_asked_for(
    of: dict[str, Reported],
) -> None:
    one = of["tagless"]
    assert "broker compute" not in one.text
    assert one.made.document.title.startswith("AWS cost report, ")
    assert one.made.document.actions[0].title == "Name Kafka's tag"
    assert "team=streaming" in one.text
    assert "extended support" in one.made.document.actions[1].title


def test_a_tag_of_the_users_own_makes_it_kafkas(tmp_path: Path) -> None:
    tags = KafkaTags(cluster="team", value="streaming")
    one = reported(tmp_path, "tagless", kafka=tags)
    own = [each for each in one.lines if each["resource_tags"].get("user_team") == "streaming"]
    kafka = one.made.evidence.report.kafkas
    assert kafka.billed == total(map(billed_cost, own))
    assert kafka.clusters == ["streaming"]
    assert {row.resource_id for row in one.usage if row.attribution != "unattributed"} == {
        "i-0kafka"
    }


def test_in_another_currency_volumes_are_judged_and_rates_are_the_bills(
    of: dict[str, Reported],
) -> None:
    one = of["eu_west_1"]
    volumes = one.made.evidence.storage
    assert [(row.size_gib, row.node_id) for row in volumes] == [(100, 0), (100, 10), (100, 20)]
    assert "this bill in EUR" in " ".join(one.made.document.story)
    assert not re.search(r"\d USD", one.text)
    assert {row.component for row in one.usage} >= {
        "broker compute",
        "gp3 storage",
        "inter-AZ transfer",
    }


def test_every_day_of_a_final_month_has_its_unit_costs(of: dict[str, Reported]) -> None:
    units = of["eu_west_1"].made.evidence.unit
    assert {row.day.day: row.complete for row in units} == dict.fromkeys(range(1, 31), True)


def is_of_the_first(each: Line) -> bool:
    return bool(each["line_item_usage_start_date"].day == 1)


def test_of_a_bill_by_the_month_no_day_and_no_size_is_said(tmp_path: Path) -> None:
    first = [each for each in SHAPES["eu_west_1"]() if is_of_the_first(each)]
    path = bills.cur_export(tmp_path / "bill", first)
    store = ParquetStore(str(tmp_path / "tables"))
    given = every.Inputs(bill=path, today=TODAY, facts=FACTS, book=book("eu-west-1"))
    made = every.run(store, given)
    assert story.BY_THE_MONTH in made.document.story
    assert (made.evidence.storage, made.evidence.economics) == ([], [])
    assert made.document.section("unit") is None
    assert made.evidence.report.billed == total(map(billed_cost, first))
