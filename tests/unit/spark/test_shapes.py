"""The whole report on bills of five shapes: its totals are the lines' own, its sentences true."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost.pricing import book
from core.settings.facts import Facts, Pool, Volume
from spark import tables
from spark.jobs import report
from spark.report import formats, story
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills, shapes

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

    lines: list[shapes.Line]
    made: report.Made
    usage: list[Any]

    @property
    def text(self) -> str:
        return formats.write(self.made.document, formats.Format.MD)


def reported(folder: Path, name: str, **inputs: object) -> Reported:
    lines = list(shapes.SHAPES[name]())
    bill = bills.cur_export(folder / "bill", lines)
    store = ParquetStore(str(folder / "tables"))
    asked = report.Inputs(bill=bill, today=TODAY, **inputs)  # type: ignore[arg-type]
    made = report.run(store, asked)
    return Reported(lines, made, store.rows(tables.USAGE))


def total(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reported]:
    """Every shape, reported once."""
    more = {"eu_west_1": {"facts": FACTS, "book": book("eu-west-1")}}
    return {
        name: reported(tmp_path_factory.mktemp(name), name, **more.get(name, {}))
        for name in shapes.SHAPES
    }


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_totals_are_the_lines_own_to_the_last_digit(of: dict[str, Reported], name: str) -> None:
    one = of[name]
    assert (
        one.made.bill_total
        == one.made.evidence.report.billed
        == total(map(shapes.billed_cost, one.lines))
    )
    assert total(row.billed_cost for row in one.usage) == one.made.bill_total
    assert total(row.amortised_cost for row in one.usage) == total(
        map(shapes.amortised_cost, one.lines)
    )
    assert sum(row.charges for row in one.usage) == len(one.lines)


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_every_account_and_day_has_what_its_lines_say(of: dict[str, Reported], name: str) -> None:
    one = of[name]
    wanted: dict[tuple[str, date], Decimal] = {}
    for each in one.lines:
        account = each.get("line_item_usage_account_id", "123456789012")
        key = (account, each["line_item_usage_start_date"].date())
        wanted[key] = wanted.get(key, Decimal(0)) + shapes.billed_cost(each)
    found: dict[tuple[str, date], Decimal] = {}
    for row in one.usage:
        key = (row.account, row.day)
        found[key] = found.get(key, Decimal(0)) + row.billed_cost
    assert found == wanted


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_kafkas_is_what_the_tags_say_and_the_headline(of: dict[str, Reported], name: str) -> None:
    one = of[name]
    own = [each for each in one.lines if shapes.is_kafkas(each)]
    kafka = one.made.evidence.report.kafkas
    assert kafka.billed == total(map(shapes.billed_cost, own))
    assert kafka.amortised == total(map(shapes.amortised_cost, own))
    shown = one.made.document.total
    assert Decimal(shown.exact) == one.made.bill_total
    assert Decimal(shown.headline) == (kafka.billed if own else one.made.bill_total)


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_nothing_but_kafkas_lines_keeps_a_resource(of: dict[str, Reported], name: str) -> None:
    for row in of[name].usage:
        assert (row.resource_id is None) or row.attribution != "unattributed"


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
    assert kafka.billed == total(map(shapes.billed_cost, own))
    assert kafka.clusters == ["streaming"]
    assert {row.resource_id for row in one.usage if row.attribution != "unattributed"} == {
        "i-0kafka"
    }


def test_in_a_region_without_prices_volumes_are_judged_and_rates_are_the_bills(
    of: dict[str, Reported],
) -> None:
    one = of["eu_west_1"]
    volumes = one.made.evidence.storage
    assert [(row.size_gib, row.node_id) for row in volumes] == [(100, 0), (100, 10), (100, 20)]
    assert "eu-west-1" in " ".join(one.made.document.story)
    assert "USD" not in one.text
    assert {row.component for row in one.usage} >= {
        "broker compute",
        "gp3 storage",
        "inter-AZ transfer",
    }


def test_every_day_of_a_final_month_has_its_unit_costs(of: dict[str, Reported]) -> None:
    units = of["eu_west_1"].made.evidence.unit
    assert {row.day.day: row.complete for row in units} == dict.fromkeys(range(1, 31), True)


def test_discounts_of_others_are_no_part_of_broker_compute(of: dict[str, Reported]) -> None:
    one = of["discounts_and_refunds"]
    own = [each for each in one.lines if shapes.is_kafkas(each)]
    rows = [row for row in one.usage if row.component == "broker compute"]
    assert total(row.billed_cost for row in rows) == total(map(shapes.billed_cost, own))
    unused = [each for each in one.made.evidence.easy if "commitments" in each.easy.value]
    assert [each.usd for each in unused] == [Decimal("14.375")]


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_no_sentence_has_a_figure_that_looks_like_a_float(
    of: dict[str, Reported], name: str
) -> None:
    for sentence in of[name].made.document.story:
        assert not re.search(r"\d\.\d{7,}", sentence), sentence


def is_of_the_first(each: shapes.Line) -> bool:
    return bool(each["line_item_usage_start_date"].day == 1)


def test_of_a_bill_by_the_month_no_day_and_no_size_is_said(tmp_path: Path) -> None:
    first = [each for each in shapes.SHAPES["eu_west_1"]() if is_of_the_first(each)]
    path = bills.cur_export(tmp_path / "bill", first)
    store = ParquetStore(str(tmp_path / "tables"))
    given = report.Inputs(bill=path, today=TODAY, facts=FACTS, book=book("eu-west-1"))
    made = report.run(store, given)
    assert story.BY_THE_MONTH in made.document.story
    assert (made.evidence.storage, made.evidence.economics) == ([], [])
    assert made.document.section("unit") is None
    assert made.evidence.report.billed == total(map(shapes.billed_cost, first))
