"""Bills as they arrive: whoever wrote them, the same columns, tags, times and dollars.

A line that cannot be read is kept with its reason; a file that cannot be is named in one sentence.
"""

import gzip
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
from spark.ingest.unread_lines import Control
from spark.tag_keys import KafkaTags
from tests.every_case import every_case
from tests.unit.spark import bills
from tests.unit.spark.bills import (
    CLUSTER,
    FOCUS_TAGS,
    KIND,
    MARKED,
    NOVEMBER,
    OWN_TAGS,
    Line,
    Written,
    archive,
    billed_by,
    focus,
    legacy,
    parquet,
    refused,
    several,
    text,
    written,
)  # fmt: skip

COST = "line_item_unblended_cost"
STREAMING = KafkaTags("team", "streaming")


def both_parquet(folder: Path, **second: Any) -> Path:
    """Write a line into each of two files, of which the second is written in another way."""
    (folder / "month").mkdir()
    bills.cur_file(folder / "month" / "a.parquet", [{COST: 2.5, "resource_tags": OWN_TAGS}])
    row = {COST: 1, "resource_tags": OWN_TAGS, **second.pop("row", {})}
    bills.cur_file(folder / "month" / "b.parquet", [row], **second)
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


def with_index(content: str) -> str:
    header, *lines = content.splitlines()
    return "\n".join([f",{header}", *(f"{n},{line}" for n, line in enumerate(lines))]) + "\n"


def in_snake_case(folder: Path) -> Path:
    content = focus(folder, {"Tags": FOCUS_TAGS}).read_text()
    spelled = renamed(lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return written(folder, spelled(content))


def seller(name: str, cost: float, usage_type: str = "BoxUsage:m7i.large") -> Line:
    own = {"bill_billing_entity": name, "line_item_usage_type": usage_type}
    return {**own, COST: cost, "resource_tags": OWN_TAGS}


# --- What is read.

HARBOUR = {"harbour": "1.25"}
TWICE = {"harbour": "2.5"}
ODD = {
    "resourceTags/user:Cost Center ": "x", "resourceTags/user:a`b.c": 'say "a, b" to x', **MARKED,
}  # fmt: skip
STRUCT = {"resource_tags": pa.struct([(key, pa.string()) for key in OWN_TAGS])}
PAIRS = {"resource_tags": pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))}
LISTED = [{"key": key, "value": value} for key, value in OWN_TAGS.items()]
FIRST, SECOND = legacy([MARKED]), legacy([{"resourceTags/user:new": "x"}])
TURNED = "".join(",".join(reversed(line.split(","))) + "\n" for line in FIRST.splitlines())
HOURS = {"PricingUnit": "Hours", "ChargeDescription": "$0.10 per hour for Amazon EKS cluster"}
# How a bill is written, the columns that are looked at, what each of their values was billed.
READ: Mapping[str, tuple[Written, str, Mapping[Any, str]]] = {
    "a mark of byte order and carriage returns": (
        text(MARKED, {}, change=lambda t: "\ufeff" + t.replace("\n", "\r\n")),
        "cluster", {**HARBOUR, None: "1.25"},
    ),
    **{
        f"a field over several lines that end in {end!r}": (
            text({}, {"lineItem/LineItemDescription": f"two{end}lines, or{end}three"}, {}),
            "account", {"123456789012": "3.75"},
        )
        for end in ("\n", "\r\n", "\r")
    },
    "an archive of several files": (
        lambda f: written(f, archive("a.csv", "x/b.csv", "__MACOSX/._a.csv"), "bill.zip"),
        "cluster", TWICE,
    ),
    "archives of a folder": (
        several(a_zip=archive("a.csv"), b_zip=archive("b.csv", "c.csv")),
        "cluster", {"harbour": "3.75"},
    ),
    "files that order or have other columns": (
        several(a_csv=FIRST, b_csv=TURNED, c_csv=SECOND), "cluster", {**TWICE, None: "1.25"},
    ),
    "a table's index": (text(ODD, ODD, change=with_index), "cluster", TWICE),
    "quotes marked by a backslash": (
        text(ODD, ODD, change=lambda t: t.replace('""', '\\"')), "cluster", TWICE,
    ),
    "a comma at the end of every line": (
        text(ODD, change=lambda t: t.replace("\n", ",\n")), "cluster", HARBOUR,
    ),
    "names as Redshift writes them": (
        text(MARKED, change=renamed(lambda name: re.sub("[/:]", "_", name).lower())),
        "cluster", HARBOUR,
    ),
    "names with dots": (
        text(MARKED, change=renamed(lambda name: name.replace("/", "."))), "cluster", HARBOUR,
    ),
    "FOCUS in snake case": (in_snake_case, "cluster", {"harbour": "1"}),
    "tags in Parquet as a list": (
        lambda f: parquet(
            f, {"resource_tags": [*LISTED, {"key": "user_stillwater_cluster"}]}, kinds=PAIRS
        ),
        "cluster", {"harbour": "1"},
    ),
    "tags in Parquet as fields": (
        lambda f: parquet(
            f, {"resource_tags": OWN_TAGS}, {"resource_tags": dict.fromkeys(OWN_TAGS)}, kinds=STRUCT
        ),
        "owner", {"broker-a": "1", "unattributed": "1"},
    ),
    "tags as a map in one file and as text in another, which is in capitals": (
        lambda f: both_parquet(
            f, rename=str.upper, kinds={"resource_tags": pa.string()},
            row={"resource_tags": json.dumps({"note": "x, user_stillwater_cluster=pier"})},
        ),
        "cluster", {"harbour": "2.5", None: "1"},
    ),
    **{
        f"a cost of {kind} in one of two files": (
            lambda f, kind=kind, one=one: both_parquet(f, kinds={COST: kind}, row={COST: one}),
            "cluster", {"harbour": "3.5"},
        )
        for kind, one in (
            (pa.decimal128(38, 18), 1), (pa.int64(), 1), (pa.float32(), 1), (pa.string(), "1"),
        )
    },
    "times of pandas, columns in capitals, a column of nothing": (
        lambda f: parquet(
            f, {"resource_tags": OWN_TAGS}, rename=str.upper,
            kinds={
                "line_item_usage_start_date": pa.timestamp("ns"),
                "line_item_resource_id": pa.null(),
            },
        ),
        "day", {date(2026, 11, 20): "1"},
    ),
    "times that folders say": (in_folders, "day", {date(2026, 11, 20): "1"}),
    "what stands for nothing": (
        text(*({CLUSTER: word, "lineItem/ResourceId": word} for word in ("\\N", "nan", "<NA>"))),
        "cluster", {None: "3.75"},
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
            ("AISPL", "broker compute"): "10", ("AWS Inc.", "other volumes"): "5",
            ("AWS Marketplace", "other"): "2", ("AISPL Marketplace", "other"): "1",
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
            {"CapacityReservationStatus": "Unused", "x_UsageType": "EU-BoxUsage:m7i.large",
             "Tags": FOCUS_TAGS},
        ),
        "provider component",
        {
            ("AWS", "EC2 instances"): "3", ("AWS", "control plane"): "1", ("AWS", "other"): "1",
            ("Amazon Web Services, Inc.", "control plane"): "1",
            ("AWS Marketplace", "other"): "1", (None, "other"): "1",
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
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_a_bill_is_read_however_it_is_written(tmp_path: Path, case: str) -> None:
    made, columns, wanted = READ[case]
    delivery = bill.read(made(tmp_path))
    known = {key: Decimal(cost) for key, cost in wanted.items()}
    assert billed_by(bills.usage_rows(delivery), columns) == known
    assert sum(month.billed for month in delivery.control.values()) == sum(known.values())
    assert delivery.unread_lines == []


BY_CASE = text({"resourceTags/user:Owner": "first", "resourceTags/user:owner": "second"})
OF_TEAM = text(
    {"resourceTags/user:team": "streaming"}, {"costCategory/team": "streaming"},
    {"costCategory/team": "web"},
)  # fmt: skip


@every_case(
    ("made", "kafka", "wanted"),
    [
        (BY_CASE, KafkaTags("Owner"), {"first": "1.25"}),
        (BY_CASE, KafkaTags("owner"), {"second": "1.25"}),
        (BY_CASE, KafkaTags("OWNER"), {"first": "1.25"}),
        (OF_TEAM, STREAMING, {"streaming": "2.5", None: "1.25"}),
        (lambda f: focus(f, {"x_CostCategories": '{"team": "streaming"}'}, {}),
         STREAMING, {"streaming": "1", None: "1"}),
    ],
)  # fmt: skip
def test_a_tag_or_category_of_the_users_own_is_found(
    tmp_path: Path, made: Written, kafka: KafkaTags, wanted: Mapping[Any, str]
) -> None:
    rows = bills.usage(made(tmp_path), kafka)
    assert billed_by(rows, "cluster") == {name: Decimal(cost) for name, cost in wanted.items()}


PLAN = {"CommitmentDiscountId": "arn:plan/1"}
BOUGHT = {"ChargeCategory": "Purchase", "BilledCost": "100", "EffectiveCost": "100"}


@every_case(
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
    tmp_path: Path, rows: Sequence[Line], amortised: int
) -> None:
    found = bills.usage(focus(tmp_path, *rows))
    sums = [sum(getattr(r, f"{n}_cost") for r in found) for n in ("billed", "amortised", "net")]
    assert sums == [100, amortised, amortised]


def test_amortised_keeps_every_place_of_text(tmp_path: Path) -> None:
    least = "0.000000000000000001"
    plan = {
        KIND: "SavingsPlanRecurringFee",
        "savingsPlan/TotalCommitmentToDate": f"2{least[1:]}",
        "savingsPlan/UsedCommitment": "2",
    }
    found = bills.usage(text({"lineItem/UnblendedCost": least}, plan)(tmp_path))
    assert [row.amortised_cost for row in found] == [Decimal(least)] * 2


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    path = bills.focus_file(tmp_path / "focus {a} [1]*.csv", [{}])
    # CREATE_NEW_REPORT names its folders by time, and Hadoop takes a colon for a scheme.
    export = bills.cur_export(tmp_path / "2026-11-20T08:00:00.000Z-aaaa", [{}])
    assert [bill.read(each).control["2026-11"].lines for each in (path, export)] == [1, 1]


def test_an_engine_is_told_that_text_takes_as_long_as_ten_times_its_lines(tmp_path: Path) -> None:
    told: list[int] = []
    bill.read(bills.cur_export(tmp_path / "parquet", [{}] * 40), engine=told.append)
    as_text = bills.cur_export_as_csv(tmp_path / "csv", [{}] * 40)
    pieces = bill.read(as_text, engine=told.append).pieces
    assert told == [40, bill.TEXT_LINE * sum(piece.lines for piece in pieces)]
    assert told[1] > told[0]


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
    start = "bill_billing_period_start_date"
    odd: Mapping[str, Line] = {
        f"{COST} 'NaN' is not a number": {COST: float("nan")},
        f"{COST} is empty": {COST: None},
        f"{start} is empty": {start: None},
        "the line is of another month than the delivery it came in": {
            start: NOVEMBER.replace(month=10)
        },
    }
    export = bills.cur_export(tmp_path, [*odd.values(), {}])
    found = bills.quarantine(export)
    assert [row["reason"] for row in found] == [*odd]
    assert [row["billed_cost"] for row in found] == [None, None, 1, 1]
    assert sum(row.charges for row in bills.usage(export) if row.is_unreadable) == 4


def test_a_broken_line_is_kept_and_none_of_its_values_is_trusted(tmp_path: Path) -> None:
    path = focus(tmp_path, {})
    good = path.read_text().splitlines()[1]
    with path.open("a") as sink:
        sink.write(f'"us-east-1a","9.0"\n{good},"stillwater:cluster"\n{good}\n')
    delivery = bill.read(path)
    bad = bills.quarantine(path)
    assert bad[0]["line"] == "us-east-1a,9.0"
    assert {(row["billing_period"], row["billed_cost"]) for row in bad} == {("unknown", None)}
    whole, broken = sorted(bills.usage_rows(delivery), key=lambda row: row.billing_period)
    assert (broken.charges, broken.zone, broken.account, broken.billed_cost) == (2, None, None, 0)
    assert whole.charges == 2
    assert delivery.control == {
        "2026-11": Control(2, 0, Decimal(2)),
        "unknown": Control(2, 2, Decimal(0)),
    }


def test_a_file_that_lacks_the_cost_is_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    export = bills.cur_export(tmp_path / "bill", [{}])
    later = bills.cur_export(tmp_path / "later", [{}], without=[COST])
    for path in later.rglob("*.*"):
        place = export / str(path.relative_to(later)).replace("2026-11", "2026-12")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes().replace(b"2026-11", b"2026-12"))
    came, _, _ = bills.ingested(export)
    assert (came.billed, came.lines, sum(came.quarantined.values())) == (1, 2, 1)


# --- What is refused.


def locked() -> bytes:
    """Pack an archive that says of its file that a password is needed."""
    raw = bytearray(archive("bill.csv"))
    for place in (6, raw.rfind(b"PK\x01\x02") + 8):
        raw[place] |= 1
    return bytes(raw)


def as_file(content: str | bytes, name: str = "bill.csv") -> Written:
    return lambda folder: written(folder, content, name)


def export_without(column: str, **line: Any) -> Written:
    return lambda folder: bills.cur_export(folder / "export", [line], without=[column])


LINE = legacy([{}])
PACKED = gzip.compress(LINE.encode() * 50, mtime=0)
ACCENTED = legacy([{"resourceTags/user:\u00e9quipe": "x"}]).encode("latin-1")
OPEN_QUOTE = legacy([{"lineItem/LineItemDescription": "QUOTE"}, {}]).replace("QUOTE", '"an hour')
COVERED = {KIND: "SavingsPlanCoveredUsage"}
EFFECTIVE = "savings_plan_savings_plan_effective_cost"
REFUSED: Mapping[str, tuple[Written, str]] = {
    "gzip": (as_file(PACKED), "call it .csv.gz"),
    "gzip cut off in its header": (as_file(PACKED[:25], "bill.csv.gz"), "copy it again"),
    "gzip cut off": (
        as_file(PACKED[:-20], "bill.csv.gz"), "ends before its data does; copy it again",
    ),
    "no gzip": (as_file(b"not gzip at all", "bill.csv.gz"), "cannot be read"),
    "zip": (as_file(b"PK\x03\x04" + bytes(60)), "call it .zip"),
    "no zip": (as_file(b"x", "bill.zip"), "is not a zip archive, or holds no csv file"),
    "a locked zip": (as_file(locked(), "bill.zip"), "needs a password; pack it again without one"),
    "parquet": (as_file(b"PAR1" + bytes(60)), "call it .parquet"),
    "no parquet": (
        as_file(b"PAR1 and then nothing", "bill.parquet"), "is damaged, or no Parquet file",
    ),
    "excel": (as_file(b"PK", "bill.xlsx"), "is neither .csv, .csv.gz, .zip nor .parquet"),
    "html": (as_file("<!doctype html>\n<title>Sign in</title>"), "copy the bill again"),
    "json": (as_file('{"BilledCost": 1, "EffectiveCost": 1}'), "choose csv or Parquet"),
    "nothing": (as_file(""), "is empty; its first line must name its columns"),
    "a header alone": (as_file(legacy([])), "holds no rows: nothing was charged yet"),
    "another bill": (as_file("Service,Total\nEC2,1\n"), "its columns are Service, Total"),
    "utf-16": (as_file(LINE.encode("utf-16-le")), "is not written in UTF-8"),
    "latin-1": (as_file(ACCENTED), "is not written in UTF-8"),
    "a quote that is never closed": (
        as_file(OPEN_QUOTE), "has a quote that its field does not end with",
    ),
    "a header that is longer than its lines": (
        as_file(LINE.replace("\n", ",\n", 1)),
        "None of the 1 lines of the bill bill.csv can be read: the line does not hold the columns",
    ),
    "no time": (
        text(*[{"bill/BillingPeriodStartDate": "11/1/2026 0:00"}] * 2),
        "bill_billing_period_start_date '11/1/2026 0:00' is not a time; a spreadsheet or a script",
    ),
    "no time in Parquet": (
        lambda f: parquet(f, {"line_item_usage_start_date": True}), "'True' is not a time",
    ),
    "a column twice": (
        text({"lineitem/unblendedcost": "2"}),
        "names column lineitem/unblendedcost twice, once as lineItem/UnblendedCost",
    ),
    "two currencies": (text({}, {"lineItem/CurrencyCode": "EUR"}), "charges in EUR and USD"),
    "files of other columns": (
        several(a_csv=LINE, b_csv=",".join(bills.FOCUS_ROW) + "\n"),
        "b.csv has other columns than a.csv",
    ),
    "two formats": (
        lambda f: bills.cur_file(f / "a.parquet", [bills.FOCUS_ROW]), "holds bills of two formats",
    ),
    "legacy without a column of each line": (
        as_file(legacy([{}], without=["lineItem/CurrencyCode"])),
        "has no column lineItem/CurrencyCode; choose it in the report's content",
    ),
    "FOCUS without two columns": (
        lambda f: focus(f, {}, without=["EffectiveCost", "PricingUnit"]),
        "has no column EffectiveCost; list it in the export's column selection",
    ),
    "an export without resources": (
        export_without("line_item_resource_id"), "set INCLUDE_RESOURCES = TRUE",
    ),
    "an export without tags": (
        export_without("resource_tags"), "activate the tags as cost allocation tags",
    ),
    "an export without a cost": (export_without(COST), "SELECT from COST_AND_USAGE_REPORT"),
    # Of a kind of line; where there are none it is not missed.
    "legacy without a column of its kind": (
        text(COVERED), "no column savingsPlan/SavingsPlanEffectiveCost",
    ),
    "an export without a column of its kind": (
        export_without(EFFECTIVE, line_item_line_item_type="SavingsPlanCoveredUsage"),
        "SavingsPlanCoveredUsage lines but no column savings",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_bill_that_cannot_be_read_is_refused_in_a_sentence_and_no_table_is_written(
    tmp_path: Path, case: str
) -> None:
    made, sentence = REFUSED[case]
    said = refused(made(tmp_path))
    assert sentence in said
    assert ("\n" in said) is ("two columns" in case)
    assert "_corrupt_line" not in said
    assert not (tmp_path / "tables").exists()


def test_a_column_of_one_kind_of_line_is_missed_only_where_there_are_any(tmp_path: Path) -> None:
    assert [row.charges for row in bills.usage(export_without(EFFECTIVE)(tmp_path))] == [1]
