"""Bills as they arrive: a row is read or keeps its reason, a bad file is a sentence."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cost.pricing import INSTANCE_HOUR, PriceBook
from spark import tables
from spark.ingest import bill, cur
from spark.ingest.layout import Format
from spark.ingest.unread_lines import Control
from spark.jobs import every, report
from spark.jobs.ingest import found_tags
from spark.months import UNKNOWN_PERIOD
from spark.report import story
from spark.report.evidence import month_comparison
from spark.rows import row_type
from spark.tables import ParquetStore
from spark.tag_keys import KafkaTags
from spark.transforms import rates
from spark.transforms.grain import easy_savings, grain_of
from tests.unit.spark import bills
from tests.unit.spark.bills import ingested, legacy, refused, written

TODAY = date(2026, 12, 20)
CLUSTER = "resourceTags/user:stillwater:cluster"
MARKED = {CLUSTER: "harbour"}
TAGS = {"user_stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
FOCUS_TAGS = '{"stillwater:cluster": "harbour", "stillwater:pool": "broker"}'
STREAMING = KafkaTags("team", "streaming")
KIND = "lineItem/LineItemType"
NOVEMBER = datetime(2026, 11, 1)  # noqa: DTZ001 - CUR writes no zone


def focus(folder: Path, *rows: Mapping[str, str], **how: Any) -> Path:
    return bills.focus_file(folder / "bill.csv", rows, **how)


def parquet(folder: Path, *rows: Mapping[str, Any], **how: Any) -> Path:
    return bills.cur_file(folder / "bill.parquet", rows, **how)


def text(*rows: Mapping[str, str], change: Callable[[str], str] = str) -> Callable[[Path], Path]:
    return lambda folder: written(folder, change(legacy(rows)))


def several(**files: str | bytes) -> Callable[[Path], Path]:
    """Write a folder of files; an underscore of a name stands for its dot."""

    def made(folder: Path) -> Path:
        (folder / "bill").mkdir()
        for name, content in files.items():
            written(folder / "bill", content, name.replace("_", "."))
        return folder / "bill"

    return made


def both_parquet(folder: Path, **second: Any) -> Path:
    (folder / "month").mkdir()
    cost = "line_item_unblended_cost"
    bills.cur_file(folder / "month" / "a.parquet", [{cost: 2.5, "resource_tags": TAGS}])
    row = {cost: 1, "resource_tags": TAGS}
    bills.cur_file(folder / "month" / "b.parquet", [{**row, **second.pop("row", {})}], **second)
    return folder / "month"


def archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for number, name in enumerate(names):
            made.writestr(name, legacy([{**MARKED, "identity/LineItemId": f"{number}"}]))
    return packed.getvalue()


def in_folders(folder: Path) -> Path:
    """Write a file whose times are in its folders' names, as Spark escapes them."""
    times = {
        "bill_billing_period_start_date": "2026-11-01 00%3A00%3A00",
        "line_item_usage_start_date": "2026-11-20T12%3A00%3A00+00%3A00",
    }
    place = folder / "bill" / Path(*(f"{name}={value}" for name, value in times.items()))
    place.mkdir(parents=True)
    bills.cur_file(place / "100%.parquet", [{"resource_tags": TAGS}], without=[*times])
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
STRUCT = pa.struct([(key, pa.string()) for key in TAGS])
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
PAIRS_OF = [*({"key": k, "value": v} for k, v in TAGS.items()), {"key": "user_stillwater_cluster"}]
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
        "resource_tags": TAGS,
    }


Written = Callable[[Path], Path]
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
            {"resource_tags": TAGS},
            {"resource_tags": dict.fromkeys(TAGS)},
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
            {"resource_tags": TAGS},
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


def billed_by(rows: Sequence[Any], columns: str) -> dict[Any, Decimal]:
    """Return what was billed for each value of some columns of USAGE."""
    names, found = columns.split(), dict[Any, Decimal]()
    for row in rows:
        values = tuple(getattr(row, name) for name in names)
        key = values if len(values) > 1 else values[0]
        found[key] = found.get(key, Decimal(0)) + row.billed_cost
    return found


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


# --- Lines that cannot be read.


def test_a_bad_row_keeps_its_reason_and_spoils_no_other(tmp_path: Path) -> None:
    odd = {
        "BilledCost 'abc' is not a number": {"BilledCost": "abc"},
        "BilledCost is empty": {"BilledCost": "NULL"},
        "EffectiveCost '1,5' is not a number": {"EffectiveCost": "1,5"},
        "BillingPeriodStart is empty": {"BillingPeriodStart": "NULL"},
        "ChargePeriodStart 'yesterday' is not a time": {"ChargePeriodStart": "yesterday"},
        "BillingCurrency is empty": {"BillingCurrency": ""},
    }
    path = focus(tmp_path, {}, *odd.values(), {})
    assert [row["reason"] for row in bills.quarantine(path)] == [*odd]
    assert {row.charges for row in bills.usage(path) if not row.is_unreadable} == {2}


def test_a_cur_row_without_a_finite_cost_or_its_own_month_is_quarantined(tmp_path: Path) -> None:
    odd = {
        "line_item_unblended_cost 'NaN' is not a number": {
            "line_item_unblended_cost": float("nan")
        },
        "line_item_unblended_cost is empty": {"line_item_unblended_cost": None},
        "bill_billing_period_start_date is empty": {"bill_billing_period_start_date": None},
        "the line is of another month than the delivery it came in": {
            "bill_billing_period_start_date": NOVEMBER.replace(month=10)
        },
    }
    export = bills.cur_export(tmp_path, [*odd.values(), {}])
    found = bills.quarantine(export)
    assert [row["reason"] for row in found] == [*odd]
    assert [row["billed_cost"] for row in found] == [None, None, 1, 1]
    unread = [row for row in bills.usage(export) if row.is_unreadable]
    assert sum(row.charges for row in unread) == 4


def test_a_broken_line_is_kept_and_neither_its_numbers_nor_its_tags_are_trusted(
    tmp_path: Path,
) -> None:
    path = focus(tmp_path, {})
    good = path.read_text().splitlines()[1]
    with path.open("a") as sink:
        sink.write(f'"us-east-1a","9.0"\n{good},"stillwater:cluster"\n{good}\n')
    delivery = bill.read(path)
    bad = bills.quarantine(path)
    assert bad[0]["line"] == "us-east-1a,9.0"
    assert {(row["billing_period"], row["billed_cost"]) for row in bad} == {("unknown", None)}
    broken, whole = sorted(bills.usage_rows(delivery), key=lambda row: row.billing_period)[::-1]
    assert (broken.charges, broken.zone, broken.account, broken.billed_cost) == (2, None, None, 0)
    assert whole.charges == 2
    assert delivery.control == {
        "2026-11": Control(2, 0, Decimal(2)),
        "unknown": Control(2, 2, Decimal(0)),
    }


def test_a_file_that_lacks_the_cost_is_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    export = bills.cur_export(tmp_path / "bill", [{}])
    later = bills.cur_export(tmp_path / "later", [{}], without=["line_item_unblended_cost"])
    for path in later.rglob("*.*"):
        place = export / str(path.relative_to(later)).replace("2026-11", "2026-12")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes().replace(b"2026-11", b"2026-12"))
    came, _, _ = ingested(export)
    assert (came.billed, came.lines, sum(came.quarantined.values())) == (1, 2, 1)


# --- Files that are refused.

LINE = legacy([{}])
PACKED = gzip.compress(LINE.encode() * 50, mtime=0)
COVERED = {KIND: "SavingsPlanCoveredUsage"}
FILES: Mapping[str, tuple[str | bytes, str, str]] = {
    "gzip": (PACKED, "bill.csv", "call it .csv.gz"),
    "gzip cut off in its header": (PACKED[:25], "bill.csv.gz", "copy it again"),
    "gzip cut off": (PACKED[:-20], "bill.csv.gz", "ends before its data does; copy it again"),
    "no gzip": (b"not gzip at all", "bill.csv.gz", "cannot be read"),
    "zip": (b"PK\x03\x04" + bytes(60), "bill.csv", "call it .zip"),
    "no zip": (b"x", "bill.zip", "is not a zip archive, or holds no csv file"),
    "parquet": (b"PAR1" + bytes(60), "bill.csv", "call it .parquet"),
    "no parquet": (b"PAR1 and then nothing", "bill.parquet", "is damaged, or no Parquet file"),
    "excel": (b"PK", "bill.xlsx", "is neither .csv, .csv.gz, .zip nor .parquet"),
    "html": ("<!doctype html>\n<title>Sign in</title>", "bill.csv", "copy the bill again"),
    "json": ('{"BilledCost": 1, "EffectiveCost": 1}', "bill.csv", "choose csv or Parquet"),
    "nothing": ("", "bill.csv", "is empty; its first line must name its columns"),
    "a header alone": (legacy([]), "bill.csv", "holds no rows: nothing was charged yet"),
    "another bill": ("Service,Total\nEC2,1\n", "bill.csv", "its columns are Service, Total"),
    "utf-16": (LINE.encode("utf-16-le"), "bill.csv", "is not written in UTF-8"),
    "latin-1": (
        legacy([{"resourceTags/user:\u00e9quipe": "x"}]).encode("latin-1"),
        "bill.csv",
        "is not written in UTF-8",
    ),
    "a quote that is never closed": (
        legacy([{"lineItem/LineItemDescription": "QUOTE"}, {}]).replace("QUOTE", '"an hour'),
        "bill.csv",
        "has a quote that its field does not end with",
    ),
    "a header that is longer than its lines": (
        LINE.replace("\n", ",\n", 1),
        "bill.csv",
        "None of the 1 lines of the bill bill.csv can be read: the line does not hold the columns",
    ),
    "no time": (
        legacy([{"bill/BillingPeriodStartDate": "11/1/2026 0:00"}] * 2),
        "bill.csv",
        "bill_billing_period_start_date '11/1/2026 0:00' is not a time; a spreadsheet or a script",
    ),
    "a column twice": (
        legacy([{"lineitem/unblendedcost": "2"}]),
        "bill.csv",
        "names column lineitem/unblendedcost twice, once as lineItem/UnblendedCost",
    ),
    "two currencies": (
        legacy([{}, {"lineItem/CurrencyCode": "EUR"}]),
        "bill.csv",
        "charges in EUR and USD",
    ),
    "without a column of each line": (
        legacy([{}], without=["lineItem/CurrencyCode"]),
        "bill.csv",
        "has no column lineItem/CurrencyCode; choose it in the report's content",
    ),
    "without a column of its kind": (
        legacy([COVERED]),
        "bill.csv",
        "no column savingsPlan/SavingsPlanEffectiveCost",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read_is_named_in_one_sentence_and_no_table_is_written(
    tmp_path: Path, case: str
) -> None:
    content, name, sentence = FILES[case]
    said = refused(written(tmp_path, content, name))
    assert sentence in said
    assert "\n" not in said
    assert "_corrupt_line" not in said
    assert not (tmp_path / "tables").exists()


def locked() -> bytes:
    """Pack an archive that says of its file that a password is needed."""
    raw = bytearray(archive("bill.csv"))
    for place in (6, raw.rfind(b"PK\x01\x02") + 8):
        raw[place] |= 1
    return bytes(raw)


BOTH = {**bills.CUR_ROW, "resource_tags": "{}"}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda f: written(f, locked(), "bill.zip"), "needs a password; pack it again without one"),
        (lambda f: parquet(f, {"line_item_usage_start_date": True}), "'True' is not a time"),
        (
            several(a_csv=LINE, b_csv=",".join(bills.FOCUS_ROW) + "\n"),
            "b.csv has other columns than a.csv",
        ),
        (
            lambda f: bills.cur_file(f / "a.parquet", [bills.FOCUS_ROW]),
            "holds bills of two formats",
        ),
        (
            lambda f: focus(f, {}, without=["EffectiveCost", "PricingUnit"]),
            "has no column EffectiveCost; list it in the export's column selection",
        ),
        *(
            (lambda f, name=name: bills.cur_export(f, [{}], without=[name]), sentence)
            for name, sentence in (
                ("line_item_resource_id", "set INCLUDE_RESOURCES = TRUE"),
                ("resource_tags", "activate the tags as cost allocation tags"),
                ("line_item_unblended_cost", "SELECT from COST_AND_USAGE_REPORT"),
            )
        ),
    ],
)
def test_a_bill_that_would_say_what_is_not_so_is_refused(
    tmp_path: Path, made: Written, sentence: str
) -> None:
    assert sentence in refused(made(tmp_path))


def test_a_column_that_a_kind_of_line_needs_is_missed_only_where_there_are_any(
    tmp_path: Path,
) -> None:
    lacking = ("savings_plan_savings_plan_effective_cost",)
    plain = bills.cur_export(tmp_path / "plain", [{}], without=lacking)
    assert [row.charges for row in bills.usage(plain)] == [1]
    covered = {"line_item_line_item_type": "SavingsPlanCoveredUsage"}
    said = refused(bills.cur_export(tmp_path / "covered", [covered], without=lacking))
    assert "SavingsPlanCoveredUsage lines but no column savings" in said


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus {a} [1]*.csv", [{}])
    # CREATE_NEW_REPORT names its folders by time, and Hadoop takes a colon for a scheme.
    export = bills.cur_export(tmp_path / "2026-11-20T08:00:00.000Z-aaaa", [{}])
    assert [bill.read(each).control["2026-11"].lines for each in (path, export)] == [1, 1]


def test_an_engine_is_told_that_text_takes_as_long_as_ten_times_its_lines(tmp_path: Path) -> None:
    told: list[int] = []
    exports = [
        bills.cur_export(tmp_path / "parquet", [{}] * 40),
        bills.cur_export_as_csv(tmp_path / "csv", [{}] * 40),
    ]
    for path in exports:
        bill.read(path, engine=told.append)
    pieces = bill.read(exports[1]).pieces
    assert told == [40, bill.TEXT_LINE * sum(piece.lines for piece in pieces)]
    assert told[1] > told[0]


# --- What a bill cannot say, and what must be said of it.


def reported(path: Path) -> report.Made:
    store = ParquetStore(str(path.parent / "tables"))
    return report.run(store, every.Inputs(bill=path, today=TODAY))


def test_what_a_bill_cannot_tell_for_want_of_a_column_is_said_and_kept(tmp_path: Path) -> None:
    lacking = ["Tags", "ResourceId", "AvailabilityZone", "ProviderName"]
    made = reported(focus(tmp_path, {}, without=lacking))
    told = " ".join(made.evidence.notes)
    for name in (*lacking, "CommitmentDiscountStatus"):
        assert f"The bill has no column {name}: " in told
    section = made.document.section("tags")
    assert section is not None
    assert "include them in the export" in " ".join(section.sentences)
    # A report of finished tables knows it as well.
    store = ParquetStore(str(tmp_path / "tables"))
    known = every.told_month(store, every.Inputs(today=TODAY))
    assert set(made.evidence.notes[:5]) <= set(known.evidence.notes)


def test_a_report_says_which_of_its_columns_are_missing_by_its_own_names(tmp_path: Path) -> None:
    net = {"lineItem/NetUnblendedCost": "1.00", "resourceTags/user:team": "web"}
    path = text(net, {**net, **COVERED, "savingsPlan/SavingsPlanEffectiveCost": "0.9"})(tmp_path)
    told = " ".join(bill.read(path).notes)
    assert "no column bill/BillingEntity: what a marketplace sold" in told
    assert "no column savingsPlan/NetSavingsPlanEffectiveCost, so that net cost is without" in told
    path = written(tmp_path, legacy([{}], without=["resourceTags/user:team"]), "tagless.csv")
    notes = bill.read(path).notes
    assert "Include resource IDs" in notes[0]
    assert "The bill has no column of tags" in " ".join(notes)


def test_a_data_export_is_one_whatever_its_query_calls_its_columns(tmp_path: Path) -> None:
    folder = bills.cur_export(tmp_path, [{}, {}], without=["resource_tags"])
    # AWS's own way from legacy reports to a query selects product_region; a tag has any name.
    tags = {"stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
    bills.append_columns(folder, product_region="us-east-1", **tags)
    came, found, store = ingested(folder)
    assert cur.NO_TAGS not in came.notes
    assert billed_by(found, "cluster owner") == {("harbour", "broker-a"): 2}
    (noted,) = store.rows(tables.DELIVERIES)
    assert noted.format == Format.CUR2
    lacking = bills.cur_export(
        tmp_path / "lacking", [{}], without=["resource_tags", "line_item_resource_id"]
    )
    bills.append_columns(lacking, product_region="us-east-1", user_team="web")
    assert "INCLUDE_RESOURCES" in refused(lacking)


def test_files_of_one_export_may_write_columns_in_other_letters(tmp_path: Path) -> None:
    export = bills.cur_export(tmp_path / "bill", [{"resource_tags": TAGS}])
    (data,) = export.rglob("*.parquet")
    other = data.with_name("export-00002.snappy.parquet")
    table = pq.read_table(data, partitioning=None)
    pq.write_table(table.rename_columns([name.upper() for name in table.column_names]), other)
    (manifest,) = export.rglob("*-Manifest.json")
    (named,) = json.loads(manifest.read_text())["dataFiles"]
    manifest.write_text(json.dumps({"dataFiles": [named, named.replace("00001", "00002")]}))
    assert billed_by(bills.usage(export), "cluster") == {"harbour": 2}


def test_a_month_whose_manifest_names_no_files_keeps_no_other_from_being_read(
    tmp_path: Path,
) -> None:
    export = bills.cur_export(tmp_path / "bill", [{}])
    (manifest,) = export.rglob("*-Manifest.json")
    empty = Path(str(manifest).replace("2026-11", "2026-12"))
    empty.parent.mkdir(parents=True)
    empty.write_text('{"dataFiles": []}')
    came, rows, _ = ingested(export)
    assert came.billed == sum(row.billed_cost for row in rows) == 1
    assert "The manifest of 2026-12 names no files: nothing of it was delivered." in came.notes
    manifest.unlink()
    assert "names no files" in refused(export)


def test_a_month_that_does_not_name_the_cluster_is_told_of_where_another_does(
    tmp_path: Path,
) -> None:
    was = {"BillingPeriodStart": "2026-10-01 00:00:00", "ChargePeriodStart": "2026-10-07 00:00:00"}
    _, _, store = ingested(focus(tmp_path, {}, {**was, "Tags": FOCUS_TAGS}), cluster="harbour")
    noted = {row.billing_period: row.notes for row in store.rows(tables.DELIVERIES)}
    assert "No line of 2026-11 carries the tag stillwater:cluster = harbour" in noted["2026-11"]
    assert "carries the tag" not in noted["2026-10"]


def test_lines_whose_month_cannot_be_read_are_said_beside_every_month(tmp_path: Path) -> None:
    lines = legacy([{}, {"bill/BillingPeriodStartDate": "Nov 2026"}, {}])
    path = written(tmp_path, lines.replace("an hour,Hrs", "an hour,Hrs,surplus", 1))
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


def test_tags_that_cannot_be_read_are_not_called_absent(tmp_path: Path) -> None:
    tags = ["stillwater:cluster=harbour;team", '{"team": "we', "{}"]
    section = reported(focus(tmp_path, *({"Tags": each} for each in tags))).document.section("tags")
    assert section is not None
    told = " ".join(section.sentences)
    assert "The tags of 2 rows are unreadable, such as " in told
    assert "No line of the bill has a tag" not in told


def test_without_any_kafka_the_tags_are_told_and_long_ones_cut_short(tmp_path: Path) -> None:
    key, long = "resourceTags/user:team", {"resourceTags/user:note": "x" * 9000}
    path = text({key: "streaming"}, {key: "web", **long}, {key: "web"}, {})(tmp_path)
    _, rows, store = ingested(path)
    found, note = store.rows(tables.TAGS_FOUND)
    assert {row.attribution for row in rows} == {"unattributed"}
    assert (found.key, found.value, found.names_kafka) == ("team", "streaming", True)
    assert (found.different_values, found.charges, found.billed_cost) == (2, 3, Decimal("3.75"))
    assert len(note.value) == 257


def test_of_many_tags_those_that_name_kafka_come_first() -> None:
    tagged = row_type(["billing_period", "key", "value", "charges", "billed_cost"])
    rows = [tagged("2026-11", f"user_b{n}", "y", 1, f"{100 + n}") for n in range(40)]
    found = found_tags([*rows, tagged("2026-11", "user_team", "strimzi", 1, "0.5")])
    assert len(found) == 30
    assert found[0].key == "team"


def test_easy_savings_are_what_their_meters_cost(tmp_path: Path) -> None:
    def meter(usage_type: str, cost: float, **more: Any) -> Mapping[str, Any]:
        known = {"line_item_usage_type": usage_type, "line_item_unblended_cost": cost}
        return {**known, "line_item_product_code": "Any", **more}

    lines = [
        meter("USE1-AmazonEKS-Hours:extendedSupport", 336.0),
        meter("USE1-AmazonEKS-Hours:perCluster", 67.2),
        meter("EU-UnusedBox:m5.xlarge", 88.4, resource_tags=TAGS),
        meter("EBS:VolumeUsage.gp2", 40.0),
    ]
    delivery = bill.read(bills.cur_export(tmp_path, lines))
    found = easy_savings(grain_of(delivery.usage()))
    assert [(each.easy.name, each.is_kafkas, each.usd, each.at_most) for each in found] == [
        ("IDLE_RESERVATION", True, Decimal("88.4"), False),
        ("EXTENDED_SUPPORT", False, Decimal(336), False),
        ("GP2_VOLUMES", False, Decimal(40), True),
    ]


def test_a_correction_of_an_earlier_month_is_no_day_of_this_one(tmp_path: Path) -> None:
    lines = [{"ChargePeriodStart": f"2026-11-{n:02d} 00:00:00"} for n in range(1, 9)]
    lines += [
        {"ChargePeriodStart": when, "BilledCost": "-40", "ChargeClass": "Correction"}
        for when in ("2026-10-05 00:00:00", "2027-03-01 00:00:00")
    ]
    made = reported(focus(tmp_path, *({**line, "Tags": FOCUS_TAGS} for line in lines)))
    assert made.evidence.report.billed == Decimal(-72)
    assert {each.day.month for each in made.evidence.all_days} == {11}
    assert month_comparison(made.evidence) is None


@pytest.mark.parametrize("as_line", [True, False], ids=["lines", "net columns"])
def test_a_clusters_own_rates_hold_its_discounts_however_they_are_written(
    tmp_path: Path, as_line: bool
) -> None:
    ours = {**MARKED, "lineItem/UsageAmount": "10", "lineItem/UnblendedCost": "2.0"}
    discount = {KIND: "EdpDiscount", "lineItem/UnblendedCost": "-0.5"}
    strangers = {**discount, CLUSTER: "", "lineItem/UnblendedCost": "-1.0"}
    lines = [ours, {**ours, **discount}, strangers]
    if not as_line:
        lines = [{**ours, "lineItem/NetUnblendedCost": "1.5"}, strangers]
    _, _, store = ingested(text(*lines)(tmp_path))
    usage = store.rows(tables.USAGE, cluster="harbour")
    known = rates.cluster_book(usage, PriceBook("eu-west-1", "none"), date(2026, 11, 30))
    assert known.usd(f"{INSTANCE_HOUR}:m7i.large") == Decimal("0.15")
