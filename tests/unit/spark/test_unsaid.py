"""More traps of bills (62 to 72): what a report must not pass over, nor take for something else."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cost.pricing import INSTANCE_HOUR, PriceBook
from spark import tables
from spark.jobs import every, report
from spark.months import UNKNOWN_PERIOD
from spark.report import story
from spark.tables import ParquetStore
from spark.transforms import rates
from tests.unit.spark import bills
from tests.unit.spark.written import ingested, legacy, refused, written

PERIOD_START, USED_AT = "bill/BillingPeriodStartDate", "lineItem/UsageStartDate"
CLUSTER = "resourceTags/user:stillwater:cluster"


def reported(path: Path) -> report.Made:
    store = ParquetStore(str(path.parent / "tables"))
    return report.run(store, every.Inputs(bill=path, today=date(2026, 12, 20)))


def test_62_lines_whose_month_cannot_be_read_are_said_beside_every_month(tmp_path: Path) -> None:
    text = legacy([{}, {PERIOD_START: "Nov 2026"}, {}])
    broken = text.replace("an hour,Hrs", "an hour,Hrs,surplus", 1)
    path = written(tmp_path, broken)
    made = reported(path)
    told = story.sentences(made.evidence.report)
    assert told[0] == "The bill of 2026-11 is 1.25 USD in its readable rows."
    assert told[-3:] == [
        "2 rows of the bill name no readable month and are in no total.",
        "Their known cost is 1.25 USD.",
        "The cost of 1 of these rows is unknown.",
    ]
    section = made.document.section("unreadable")
    assert section is not None
    assert section.title == "Unreadable rows: 2"
    # Mended and delivered once more: nothing is left of them.
    written(tmp_path, legacy([{}, {}, {}]))
    again = reported(path)
    assert story.sentences(again.evidence.report)[0] == "The bill of 2026-11 is 3.75 USD."
    store = ParquetStore(str(tmp_path / "tables"))
    assert UNKNOWN_PERIOD not in {row.billing_period for row in store.rows(tables.USAGE)}


def test_63_the_cells_of_a_broken_line_are_no_tags(tmp_path: Path) -> None:
    text = legacy([{CLUSTER: "harbour"}, {CLUSTER: "harbour"}]).splitlines()
    assert text[2].endswith(",harbour")
    path = written(tmp_path, "\n".join([*text[:2], text[2] + ",surplus"]) + "\n")
    _, rows, _ = ingested(path)
    assert {row.cluster: row.charges for row in rows} == {"harbour": 1, None: 1}


def test_65_tags_that_nobody_can_read_are_not_called_absent(tmp_path: Path) -> None:
    written_as = ["stillwater:cluster=harbour;team", '{"team": "we', "{}"]
    path = bills.focus_file(tmp_path / "bill.csv", [{"Tags": tags} for tags in written_as])
    section = reported(path).document.section("tags")
    assert section is not None
    told = " ".join(section.sentences)
    assert "The tags of 2 rows are unreadable, such as " in told
    assert "No line of the bill has a tag" not in told


def test_68_files_that_order_or_have_other_columns_are_one_bill(tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    first = legacy([{CLUSTER: "harbour"}])
    header, line = first.splitlines()
    turned = "\n".join(",".join(reversed(each.split(","))) for each in (header, line)) + "\n"
    written(folder, first, "a.csv")
    written(folder, turned, "b.csv")
    written(folder, legacy([{"resourceTags/user:new": "x"}]), "c.csv")
    came, rows, _ = ingested(folder)
    assert (came.lines, came.billed) == (3, Decimal("3.75"))
    assert {row.cluster: row.charges for row in rows} == {"harbour": 2, None: 1}


def test_69_bills_of_two_formats_are_not_one(tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    written(folder, legacy([{}]), "a.csv")
    bills.focus_file(folder / "b.csv", [{}])
    assert "b.csv has other columns than a.csv" in refused(folder)
    both = tmp_path / "both"
    both.mkdir()
    for name, row in (("a", {**bills.CUR_ROW, "resource_tags": "{}"}), ("b", bills.FOCUS_ROW)):
        columns = {key: pa.array([value]) for key, value in row.items()}
        pq.write_table(pa.table(columns), both / f"{name}.parquet")
    assert "holds bills of two formats" in refused(both)


def test_71_amortised_keeps_every_place_of_text(tmp_path: Path) -> None:
    least = "0.000000000000000001"
    plan = {
        "lineItem/LineItemType": "SavingsPlanRecurringFee",
        "savingsPlan/TotalCommitmentToDate": f"2{least[1:]}",
        "savingsPlan/UsedCommitment": "2",
    }
    text = legacy([{"lineItem/UnblendedCost": least}, plan])
    _, rows, _ = ingested(written(tmp_path, text))
    found = {row.category: row.amortised_cost for row in rows}
    assert set(found) == {"Usage", "SavingsPlanRecurringFee"}
    assert set(found.values()) == {Decimal(least)}


@pytest.mark.parametrize("as_line", [True, False], ids=["lines", "net columns"])
def test_72_a_clusters_own_rates_hold_its_discounts_however_they_are_written(
    tmp_path: Path, as_line: bool
) -> None:
    ours = {CLUSTER: "harbour", "lineItem/UsageAmount": "10", "lineItem/UnblendedCost": "2.0"}
    discount = {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-0.5"}
    strangers = {**discount, CLUSTER: "", "lineItem/UnblendedCost": "-1.0"}
    lines = [ours, {**ours, **discount}, strangers]
    if not as_line:
        lines = [{**ours, "lineItem/NetUnblendedCost": "1.5"}, strangers]
    _, _, store = ingested(written(tmp_path, legacy(lines)))
    usage = store.rows(tables.USAGE, cluster="harbour")
    known = rates.cluster_book(usage, PriceBook("eu-west-1", "none"), date(2026, 11, 30))
    assert known.usd(f"{INSTANCE_HOUR}:m7i.large") == Decimal("0.15")
