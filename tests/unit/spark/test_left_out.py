"""More traps of bills (73 to 76): columns that an export leaves out, or calls otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

from spark.ingest import bill
from spark.jobs import every, report
from spark.rules.names import Component
from spark.tables import ParquetStore
from tests.unit.spark import bills
from tests.unit.spark.written import legacy, usage, written

OURS = '{"stillwater:cluster": "harbour", "stillwater:pool": "broker"}'
CLUSTER = "resourceTags/user:stillwater:cluster"


def test_73_what_a_bill_cannot_tell_for_want_of_a_column_is_said_and_kept(tmp_path: Path) -> None:
    lacking = ["Tags", "ResourceId", "AvailabilityZone", "ProviderName"]
    path = bills.focus_file(tmp_path / "bill.csv", [{}], without=lacking)
    store = ParquetStore(str(tmp_path / "tables"))
    made = report.run(store, every.Inputs(bill=path, today=date(2026, 12, 20)))
    told = " ".join(made.evidence.notes)
    for name in (*lacking, "CommitmentDiscountStatus"):
        assert f"The bill has no column {name}: " in told
    section = made.document.section("tags")
    assert section is not None
    assert "include them in the export" in " ".join(section.sentences)
    # A report of finished tables knows it as well.
    known = every.told_month(store, every.Inputs(today=date(2026, 12, 20)))
    assert set(made.evidence.notes[:5]) <= set(known.evidence.notes)


def test_73_a_report_says_which_of_its_columns_are_missing_by_its_own_names(tmp_path: Path) -> None:
    net = {"lineItem/NetUnblendedCost": "1.00", "resourceTags/user:team": "web"}
    covered = {
        "lineItem/LineItemType": "SavingsPlanCoveredUsage",
        "savingsPlan/SavingsPlanEffectiveCost": "0.9",
    }
    path = written(tmp_path, legacy([net, {**net, **covered}]))
    told = " ".join(bill.read(path).notes)
    assert "no column bill/BillingEntity: what a marketplace sold" in told
    assert "no column savingsPlan/NetSavingsPlanEffectiveCost, so that net cost is without" in told
    path = written(tmp_path, legacy([{}], without=["resourceTags/user:team"]), "tagless.csv")
    assert "The bill has no column of tags" in " ".join(bill.read(path).notes)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def test_74_columns_are_known_by_their_letters(tmp_path: Path) -> None:
    spellings: dict[str, Callable[[str], str]] = {
        "redshift": lambda name: re.sub("[/:]", "_", name).lower(),
        "dots": lambda name: name.replace("/", "."),
    }
    for called, spelled in spellings.items():
        header, *lines = legacy([{CLUSTER: "harbour"}]).splitlines()
        names = ",".join(map(spelled, header.split(",")))
        path = written(tmp_path, "\n".join([names, *lines]) + "\n", f"{called}.csv")
        rows = usage(path)
        assert [(row.cluster, row.billed_cost) for row in rows] == [("harbour", Decimal("1.25"))]
    path = bills.focus_file(tmp_path / "dbt.csv", [{"Tags": OURS}])
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([_snake(header), *lines]))
    rows = usage(path)
    assert [(row.cluster, row.billed_cost) for row in rows] == [("harbour", 1)]


def test_75_what_another_published_is_no_meter_of_awss(tmp_path: Path) -> None:
    own = "Amazon Web Services EMEA SARL"
    rows = [
        {"PublisherName": own},
        {"PublisherName": "Ningxia Western Cloud Data Technology Co., Ltd."},
        {"PublisherName": "Confluent, Inc."},
        {"PublisherName": own, "ProviderName": "", "HostProviderName": "AWS"},
    ]
    found = usage(bills.focus_file(tmp_path / "bill.csv", rows))
    assert {(row.provider, row.component): row.charges for row in found} == {
        ("AWS", Component.INSTANCES): 3,
        ("AWS Marketplace", Component.OTHER): 1,
    }


def test_76_what_stands_for_nothing_is_nothing(tmp_path: Path) -> None:
    arn = "reservation/ReservationARN"
    words = ("\\N", "None", "nan", "<NA>")
    rows = [
        {"lineItem/LineItemType": "Fee", arn: word, CLUSTER: word, "lineItem/ResourceId": word}
        for word in words
    ]
    rows.append({"lineItem/LineItemType": "Fee", arn: "arn:aws:ec2:::reserved-instances/a"})
    found = usage(written(tmp_path, legacy(rows)))
    assert {row.cluster for row in found} == {None}
    assert sum(row.billed_cost for row in found) == Decimal("6.25")
    # The fee of a reservation is spread over hours; any other is not.
    assert sum(row.amortised_cost for row in found) == Decimal("5.00")
