"""Bills as they arrive: whoever wrote them, the same columns, tags, times and dollars."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark.ingest import bill
from spark.tag_keys import KafkaTags
from tests.unit.spark import bills
from tests.unit.spark.bills import (
    CLUSTER,
    FOCUS_TAGS,
    KIND,
    MARKED,
    OWN_TAGS,
    Written,
    archive,
    billed_by,
    focus,
    legacy,
    parquet,
    several,
    text,
    written,
)

STREAMING = KafkaTags("team", "streaming")


def both_parquet(folder: Path, **second: Any) -> Path:
    (folder / "month").mkdir()
    cost = "line_item_unblended_cost"
    bills.cur_file(folder / "month" / "a.parquet", [{cost: 2.5, "resource_tags": OWN_TAGS}])
    row = {cost: 1, "resource_tags": OWN_TAGS}
    bills.cur_file(folder / "month" / "b.parquet", [{**row, **second.pop("row", {})}], **second)
    return folder / "month"


def in_folders(folder: Path) -> Path:
    """Write a file whose times are in its folders' names, as Spark escapes them."""
    times = {
        "bill_billing_period_start_date": "2026-11-01 00%3A00%3A00",
        "line_item_usage_start_date": "2026-11-20T12%3A00%3A00+00%3A00",
    }
    place = folder / "bill" / Path(*(f"{name}={value}" for name, value in times.items()))
    place.mkdir(parents=True)
    bills.cur_file(place / "100%.parquet", [{"resource_tags": OWN_TAGS}], without=[*times])
    return folder / "bill"


def renamed(spelled: Callable[[str], str]) -> Callable[[str], str]:
    def made(content: str) -> str:
        header, *lines = content.splitlines()
        return "\n".join([",".join(map(spelled, header.split(","))), *lines]) + "\n"

    return made


def _index(content: str) -> str:
    header, *lines = content.splitlines()
    return "\n".join([f",{header}", *(f"{n},{line}" for n, line in enumerate(lines))]) + "\n"


ODD = {
    "resourceTags/user:Cost Center ": "x",
    "resourceTags/user:a`b.c": 'say "a, b" to x',
    **MARKED,
}
DATED = {
    "bill/BillingPeriodStartDate": "2026-10-01T00:00:00Z",
    "lineItem/UsageStartDate": "2026-10-07",
}
STRUCT = pa.struct([(key, pa.string()) for key in OWN_TAGS])
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
PAIRS_OF = [
    *({"key": k, "value": v} for k, v in OWN_TAGS.items()),
    {"key": "user_stillwater_cluster"},
]
BY_CASE = {"resourceTags/user:Owner": "first", "resourceTags/user:owner": "second"}
FIRST, SECOND = legacy([MARKED]), legacy([{"resourceTags/user:new": "x"}])
TURNED = "".join(",".join(reversed(line.split(","))) + "\n" for line in FIRST.splitlines())
HOURS = {"PricingUnit": "Hours", "ChargeDescription": "$0.10 per hour for Amazon EKS cluster"}
BOUGHT = {"ChargeCategory": "Purchase", "BilledCost": "100", "EffectiveCost": "100"}
PLAN = {"CommitmentDiscountId": "arn:plan/1"}
LEAST = "0.000000000000000001"


def seller(name: str, cost: float, usage_type: str = "BoxUsage:m7i.large") -> Mapping[str, Any]:
    return {
        "bill_billing_entity": name,
        "line_item_usage_type": usage_type,
        "line_item_unblended_cost": cost,
        "resource_tags": OWN_TAGS,
    }


# How a bill is written, the columns that are looked at, what each of their values was billed.
READ: Mapping[str, tuple[Written, str, Mapping[Any, str]]] = {
    "a mark of byte order and carriage returns": (
        text(MARKED, {}, change=lambda t: "\ufeff" + t.replace("\n", "\r\n")),
        "cluster",
        {"harbour": "1.25", None: "1.25"},
    ),
    **{
        f"a field over several lines that end in {end!r}": (
            text({}, {"lineItem/LineItemDescription": f"two{end}lines, or{end}three"}, {}),
            "account",
            {"123456789012": "3.75"},
        )
        for end in ("\n", "\r\n", "\r")
    },
    "quotes, commas and small numbers": (
        lambda f: focus(
            f, {"BilledCost": "8E-7", "Tags": '{"a, ""b""": "c"}', "ChargeDescription": 'x, "y"'}
        ),
        "description",
        {'x, "y"': "8E-7"},
    ),
    "a file of gzip": (
        lambda f: bills.focus_file(f / "bill.csv.gz", [{"Tags": FOCUS_TAGS}]),
        "owner",
        {"broker-a": "1"},
    ),
    "a column of AWS's own in FOCUS": (
        lambda f: focus(f, {"x_UsageType": "APS1-EBS:VolumeUsage.gp3"}),
        "usage_type",
        {"EBS:VolumeUsage.gp3": "1"},
    ),
    "an archive of several files": (
        lambda f: written(f, archive("a.csv", "x/b.csv", "__MACOSX/._a.csv"), "bill.zip"),
        "cluster",
        {"harbour": "2.5"},
    ),
    "archives of a folder": (
        several(a_zip=archive("a.csv"), b_zip=archive("b.csv", "c.csv")),
        "cluster",
        {"harbour": "3.75"},
    ),
    "files of two months": (
        several(a_csv=legacy([{}]), b_csv=legacy([DATED])),
        "billing_period",
        {"2026-10": "1.25", "2026-11": "1.25"},
    ),
    "files that order or have other columns": (
        several(a_csv=FIRST, b_csv=TURNED, c_csv=SECOND),
        "cluster",
        {"harbour": "2.5", None: "1.25"},
    ),
    "a table's index": (text(ODD, ODD, change=_index), "cluster", {"harbour": "2.5"}),
    "quotes marked by a backslash": (
        text(ODD, ODD, change=lambda t: t.replace('""', '\\"')),
        "cluster",
        {"harbour": "2.5"},
    ),
    "a comma at the end of every line": (
        text(ODD, change=lambda t: t.replace("\n", ",\n")),
        "cluster",
        {"harbour": "1.25"},
    ),
    "names as Redshift writes them": (
        text(MARKED, change=renamed(lambda name: re.sub("[/:]", "_", name).lower())),
        "cluster",
        {"harbour": "1.25"},
    ),
    "names with dots": (
        text(MARKED, change=renamed(lambda name: name.replace("/", "."))),
        "cluster",
        {"harbour": "1.25"},
    ),
    "FOCUS in snake case": (
        lambda f: written(
            f,
            renamed(lambda n: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", n).lower())(
                focus(f, {"Tags": FOCUS_TAGS}).read_text()
            ),
        ),
        "cluster",
        {"harbour": "1"},
    ),
    "tags in Parquet as a list": (
        lambda f: parquet(f, {"resource_tags": PAIRS_OF}, kinds={"resource_tags": PAIRS}),
        "cluster",
        {"harbour": "1"},
    ),
    "tags in Parquet as fields": (
        lambda f: parquet(
            f,
            {"resource_tags": OWN_TAGS},
            {"resource_tags": dict.fromkeys(OWN_TAGS)},
            kinds={"resource_tags": STRUCT},
        ),
        "owner",
        {"broker-a": "1", "unattributed": "1"},
    ),
    "tags as a map in one file and as text in another, which is in capitals": (
        lambda f: both_parquet(
            f,
            rename=str.upper,
            kinds={"resource_tags": pa.string()},
            row={"resource_tags": json.dumps({"note": "x, user_stillwater_cluster=pier"})},
        ),
        "cluster",
        {"harbour": "2.5", None: "1"},
    ),
    **{
        f"a cost of {kind} in one of two files": (
            lambda f, kind=kind: both_parquet(f, kinds={"line_item_unblended_cost": kind}),
            "cluster",
            {"harbour": "3.5"},
        )
        for kind in (pa.decimal128(38, 18), pa.int64(), pa.float32())
    },
    "times of pandas, columns in capitals, a column of nothing": (
        lambda f: parquet(
            f,
            {"resource_tags": OWN_TAGS},
            rename=str.upper,
            kinds={
                "line_item_usage_start_date": pa.timestamp("ns"),
                "line_item_resource_id": pa.null(),
            },
        ),
        "day",
        {date(2026, 11, 20): "1"},
    ),
    "times that folders say": (in_folders, "day", {date(2026, 11, 20): "1"}),
    "what stands for nothing": (
        text(*({CLUSTER: word, "lineItem/ResourceId": word} for word in ("\\N", "nan", "<NA>"))),
        "cluster",
        {None: "3.75"},
    ),
    "sellers of CUR": (
        lambda f: parquet(
            f,
            seller("AISPL", 10.0, "APS3-BoxUsage:m7i.large"),
            seller("AWS Inc.", 5.0, "APS3-EBS:VolumeUsage.gp2"),
            seller("AWS Marketplace", 2.0),
            seller("AISPL Marketplace", 1.0),
            # Whatever China's sellers are called: AWS's report holds AWS and its marketplace.
            seller("Western Cloud Data", 0.5, "CNW1-BoxUsage:m7i.large"),
        ),
        "provider component",
        {
            ("AISPL", "broker compute"): "10",
            ("AWS Inc.", "other volumes"): "5",
            ("AWS Marketplace", "other"): "2",
            ("AISPL Marketplace", "other"): "1",
            ("AWS (Western Cloud Data)", "broker compute"): "0.5",
        },
    ),
    "sellers of FOCUS, by any of its names": (
        lambda f: focus(
            f,
            {"ProviderName": "", "x_UsageType": "USE2-BoxUsage:m7i.large"},
            {"ServiceName": "Amazon Elastic Kubernetes Service", **HOURS},
            {"ProviderName": "Amazon Web Services, Inc.", "ServiceName": "AmazonEKS", **HOURS},
            {"ProviderName": ""},
            {"PublisherName": "Ningxia Western Cloud Data Technology Co., Ltd."},
            {"PublisherName": "Confluent, Inc."},
            {"ProviderName": "", "HostProviderName": "AWS", "PublisherName": "Amazon Web Services"},
            # FOCUS 1.2 says apart from the meter that a reservation stood idle.
            {
                "CapacityReservationStatus": "Unused",
                "x_UsageType": "EU-BoxUsage:m7i.large",
                "Tags": FOCUS_TAGS,
            },
        ),
        "provider component",
        {
            ("AWS", "EC2 instances"): "3",
            ("AWS", "control plane"): "1",
            ("AWS", "other"): "1",
            ("Amazon Web Services, Inc.", "control plane"): "1",
            ("AWS Marketplace", "other"): "1",
            (None, "other"): "1",
        },
    ),
    "what FOCUS calls unused is no broker's": (
        lambda f: focus(
            f,
            {"CommitmentDiscountStatus": "Used", "Tags": FOCUS_TAGS},
            {"CommitmentDiscountStatus": "Unused", "Tags": FOCUS_TAGS, "BilledCost": "2"},
        ),
        "category component easy",
        {
            ("Usage", "broker compute", None): "1",
            ("Unused commitment", "other", "commitments that nothing uses"): "2",
        },
    ),
}


@pytest.mark.parametrize("case", READ)
def test_a_bill_is_read_however_it_is_written(tmp_path: Path, case: str) -> None:
    made, columns, wanted = READ[case]
    delivery = bill.read(made(tmp_path))
    known = {key: Decimal(cost) for key, cost in wanted.items()}
    assert billed_by(bills.usage_rows(delivery), columns) == known
    assert sum(month.billed for month in delivery.control.values()) == sum(known.values())
    assert delivery.unread_lines == []


@pytest.mark.parametrize(
    ("made", "kafka", "wanted"),
    [
        *((text(BY_CASE), KafkaTags(k), {v: "1.25"}) for k, v in
          (("Owner", "first"), ("owner", "second"), ("OWNER", "first"))),
        (
            text({"resourceTags/user:team": "streaming"}, {"costCategory/team": "streaming"},
                 {"costCategory/team": "web"}),
            STREAMING,
            {"streaming": "2.5", None: "1.25"},
        ),
        (
            lambda f: focus(f, {"x_CostCategories": '{"team": "streaming"}'}, {}),
            STREAMING,
            {"streaming": "1", None: "1"},
        ),
    ],
)  # fmt: skip
def test_a_tag_or_category_of_the_users_own_is_found(
    tmp_path: Path, made: Written, kafka: KafkaTags, wanted: Mapping[Any, str]
) -> None:
    rows = bills.usage(made(tmp_path), kafka)
    assert billed_by(rows, "cluster") == {name: Decimal(cost) for name, cost in wanted.items()}


@pytest.mark.parametrize(
    ("rows", "amortised"),
    [
        ([{**BOUGHT, **PLAN}, {**PLAN, "BilledCost": "0", "EffectiveCost": "100"}], 100),
        # Of something else, a marketplace's product.
        ([BOUGHT], 100),
        ([{**BOUGHT, **PLAN, "ChargeCategory": "Credit"}], 100),
        ([{**BOUGHT, **PLAN}], 0),
    ],
)
def test_a_commitment_is_amortised_by_its_usage_and_not_by_its_purchase_too(
    tmp_path: Path, rows: Sequence[Mapping[str, str]], amortised: int
) -> None:
    found = bills.usage(focus(tmp_path, *rows))
    assert sum(row.billed_cost for row in found) == 100
    assert {sum(getattr(r, n) for r in found) for n in ("amortised_cost", "net_cost")} == {
        amortised
    }


def test_amortised_keeps_every_place_of_text(tmp_path: Path) -> None:
    plan = {
        KIND: "SavingsPlanRecurringFee",
        "savingsPlan/TotalCommitmentToDate": f"2{LEAST[1:]}",
        "savingsPlan/UsedCommitment": "2",
    }
    found = bills.usage(text({"lineItem/UnblendedCost": LEAST}, plan)(tmp_path))
    assert [row.amortised_cost for row in found] == [Decimal(LEAST)] * 2
