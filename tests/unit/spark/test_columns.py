"""What columns are called, whose tags they hold, and what a report says of those a bill lacks."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.cost.pricing import INSTANCE_HOUR, PriceBook
from core.ground.errors import InvalidInput
from core.ground.naming import CLUSTER_TAG, POOL_TAG
from spark import tables
from spark.ingest import bill, cur, focus
from spark.ingest.bill import Source
from spark.ingest.columns import day_of, month_of, tags_in
from spark.ingest.cur import modern_name
from spark.ingest.layout import Format
from spark.ingest.pieces import Piece
from spark.jobs import every
from spark.jobs.ingest import found_tags
from spark.months import UNKNOWN_PERIOD
from spark.report import story
from spark.report.document import Section
from spark.report.evidence import month_comparison
from spark.rows import row_type
from spark.tables import ParquetStore
from spark.tag_keys import (
    UNREAD_TAGS,
    KafkaTags,
    category_name,
    column_spellings,
    export_key,
    parse_tags,
    spellings,
    tag_columns,
)
from spark.transforms import economics
from spark.transforms.grain import easy_savings, grain_of
from tests.every_case import every_case
from tests.unit.spark import bills
from tests.unit.spark.bills import (
    CLUSTER,
    FOCUS_TAGS,
    KIND,
    MARKED,
    OWN_TAGS,
    Line,
    billed_by,
    ingested,
    legacy,
    text,
    written,
)  # fmt: skip

CUR = [*cur.REQUIRED, "resource_tags"]
LEGACY = ["lineItem/UsageType", "lineItem/UnblendedCost", "lineItem/UsageStartDate"]
FOCUS = list(focus.REQUIRED)
ACCENTED = "\N{LATIN SMALL LETTER E WITH ACUTE}quipe"

# --- Names.


@every_case(
    ("columns", "twice", "tag"),
    [
        ([*CUR, "reservation_reservation_arn", "reservation_reservation_a_r_n"],
         "reservation_reservation_arn and reservation_reservation_a_r_n", None),
        ([*CUR, "lineItem/UsageType"], "line_item_usage_type and lineItem/UsageType", None),
        ([*FOCUS, "Billed Cost"], "BilledCost and Billed Cost", None),
        ([*FOCUS, "Tags", "tags_"], "Tags and tags_", None),
        # Tags and categories only where they are asked for.
        ([*CUR, "costCategory/cost center", "costCategory/cost-center"],
         "costCategory/cost center and costCategory/cost-center", "cost center"),
        ([*CUR, "resourcetags_user_team", "resourcetags.user.team"],
         "resourcetags_user_team and resourcetags.user.team", "team"),
    ],
)  # fmt: skip
def test_a_column_under_two_names_is_refused_by_both(
    columns: Sequence[str], twice: str, tag: str | None
) -> None:
    source = Source(label="x", pieces=[Piece("/bill.parquet", None, list(columns))])
    kafka = parse_tags(tag, None) or KafkaTags()
    with pytest.raises(InvalidInput) as raised:
        bill._delivery(None, source, "The bill x", kafka)
    said = f"The bill x has one column under 2 names, {twice}; export it once."
    assert str(raised.value) == said


@every_case(
    ("columns", "reader"),
    [
        (CUR, cur.opened),
        (LEGACY, cur.opened),
        ([name.upper() for name in CUR], cur.opened),
        (FOCUS, focus.opened),
        (["Billed Cost", "Effective Cost", "Service Name"], focus.opened),
        (["line_item_id", "line_item_description", "line_item_amount"], None),
        (["lineItem/Id", "lineItem/Amount"], None),
        (["invoice", "effective_cost", "amount"], None),
        (["id", "Billed Cost", "vendor"], None),
        (["line_item_usage_type"], None),
    ],
)
def test_a_format_is_known_by_several_of_its_columns(columns: Sequence[str], reader: Any) -> None:
    assert bill.reader_of(columns) is reader


@every_case(
    ("name", "written", "expected"),
    [
        # A column of a legacy report, by the name that CUR 2.0 has for it.
        (modern_name, "lineItem/UnblendedCost", "line_item_unblended_cost"),
        (modern_name, "bill/BillingPeriodStartDate", "bill_billing_period_start_date"),
        (modern_name, "reservation/ReservationARN", "reservation_reservation_a_r_n"),
        (modern_name, "savingsPlan/SavingsPlanEffectiveCost",
         "savings_plan_savings_plan_effective_cost"),
        (modern_name, "pricing/unit", "pricing_unit"),
        # A tag's key, in lower snake as CUR 2.0 spells it.
        (export_key, "stillwater:pool", "user_stillwater_pool"),
        (export_key, "kubernetes.io/created-for/pvc/name",
         "user_kubernetes_io_created_for_pvc_name"),
        (export_key, "Name", "user_name"),
        (export_key, "aws:autoscaling:groupName", "aws_autoscaling_group_name"),
        (export_key, "aws:eks:cluster-name", "aws_eks_cluster_name"),
        # A cost category, by any of its names.
        (category_name, "costCategory/team", "team"),
        (category_name, "cost_category_team", "team"),
        (category_name, "Cost Category:team", "team"),
        (category_name, "x_CostCategories.team", "team"),
        *((category_name, each, each) for each in ("team", "cost_centre", "costCategory")),
    ],
)  # fmt: skip
def test_a_name_is_known_however_it_is_written(
    name: Callable[[str], str], written: str, expected: str
) -> None:
    odd = "".join(c.upper() if n % 2 else c.lower() for n, c in enumerate(written))
    others = (written.lower(), written.upper(), odd) if name is modern_name else ()
    assert {name(each) for each in (written, *others)} == {expected}


@every_case(
    ("written", "key"),
    [("resourceTags/user:stillwater:cluster", CLUSTER_TAG), ("costCategory/team", "team")],
)
def test_a_tags_or_categorys_column_is_found_by_its_key(written: str, key: str) -> None:
    for each in (written, written.upper()):
        assert modern_name(each).lower() in column_spellings(key)


def test_a_key_is_looked_for_under_every_spelling_of_every_export() -> None:
    assert spellings("team") == (
        *("user_team", "user:team", "team", "resourceTags/user:team", "resourceTags/team"),
        *("costCategory/team", "accountTag/team"),
    )
    for asked in ("costCategory/team", "cost_category_team", "x_CostCategories.team"):
        assert {"costCategory/team", "team"} <= set(spellings(asked))
    # Nobody gives these to a category: every line is asked for each spelling of them.
    assert not any("/" in each.removeprefix("resourceTags/") for each in spellings(POOL_TAG))
    assert f"user_{ACCENTED}" in spellings(ACCENTED)


@every_case(
    ("key", "found"),
    [
        ("team", ["user_team", "team"]),
        (CLUSTER_TAG, ["stillwater_cluster"]),
        # A report has columns of its own that are called so.
        ("product", ["resource_tags_user_product"]),
        ("line-item:operation", []),
    ],
)
def test_a_column_may_be_called_by_the_words_of_a_tags_key_alone(
    key: str, found: list[str]
) -> None:
    known = {"user_team", "team", "stillwater_cluster", "product", "resource_tags_user_product"}
    assert tag_columns(key, {*known, "line_item_operation"}) == found


# --- Values.

NOTE = {"note": "a, b", "team": "web"}
LISTED = [{"key": key, "value": value} for key, value in NOTE.items()]


@every_case(
    ("written", "tags"),
    [
        (json.dumps(NOTE), NOTE),
        (json.dumps({"n": 1, "q": 'a "b"', "z": None}), {"n": "1", "q": 'a "b"', "z": None}),
        (json.dumps({"Key": "v", "of": {"x": "y"}}), {"Key": "v", "of": '{"x": "y"}'}),
        (json.dumps(LISTED), NOTE),
        (json.dumps([{"Key": "a", "Value": "b"}, ["c", "d"]]), {"a": "b", "c": "d"}),
        (str({**NOTE, "nothing": None}), {**NOTE, "nothing": None}),
        (str([*NOTE.items()]), NOTE),
        (str(LISTED), NOTE),
        ("{'a': nan}", {"a": None}),
        ("{note=a, b, team=web}", NOTE),
        *((each, None) for each in ("", " ", "NULL", None)),
        *(
            (each, {UNREAD_TAGS: each})
            for each in ("harbour", "a:b:harbour", "a=b;team", '{"team": "we', "[1, 2]", "{1}")
        ),
    ],
)
def test_tags_are_read_as_aws_athena_and_python_write_them_or_not_at_all(
    written: str | None, tags: Mapping[str, str | None] | None
) -> None:
    found = tags_in(written)
    assert (None if found is None else dict(found)) == tags


NOVEMBER, DAY = date(2026, 11, 1), date(2026, 11, 20)


@every_case(
    ("written", "day", "month"),
    [
        *(
            (each, DAY, NOVEMBER)
            for each in (
                *("2026-11-20T12:00:00Z", "2026-11-20 12:00:00", "2026-11-20"),
                *("2026-11-20T12:00:00.123Z", "2026-11-20T12:00Z", "2026-11-20T12:00+00:00"),
                *(" 2026-11-20 12:00:00.000 UTC", "2026-11-21T02:00:00+05:30"),
                *("2026-11-20T05:30:00+05:30", "2026-11-19T19:00:00-05:00"),
                *(datetime(2026, 11, 20, 12), DAY),  # noqa: DTZ001 - CUR writes no zone
            )
        ),
        # A month begins up to half a day before it does in UTC.
        ("2026-11-01T00:00:00+05:30", date(2026, 10, 31), NOVEMBER),
        ("2026-10-31T19:00:00-05:00", NOVEMBER, NOVEMBER),
        ("2026-11", NOVEMBER, NOVEMBER),
        *(
            (each, None, None)
            for each in (
                *("", "NULL", "yesterday", "11/1/2026 0:00", "00:00.0", "2026-11-31"),
                *("0099-01-01", "46327", "2026-11-20T25:00:00Z", 46327, 1_795_176_000, True, None),
                datetime(9999, 1, 1),  # noqa: DTZ001 - the same
            )
        ),
    ],
)
def test_a_time_is_a_day_and_a_month_in_utc_or_none(
    written: Any, day: date | None, month: date | None
) -> None:
    assert (day_of(written), month_of(written)) == (day, month)


FEE, REFUND = "SavingsPlanRecurringFee", "Refund for {} fee for Savings Plan ID : 1"
EC2, PLANS = "AmazonEC2", "ComputeSavingsPlans"
COMMITTED = {"savings_plan_total_commitment_to_date": 9.0, "savings_plan_used_commitment": 6.5}
UNUSED = {
    "reservation_unused_amortized_upfront_fee_for_billing_period": 1.25,
    "reservation_unused_recurring_fee": 0.25,
}


@every_case(
    ("kind", "amounts", "description", "product", "amortised"),
    [
        ("Usage", {}, "", EC2, "1"),
        ("Tax", {}, "", EC2, "1"),
        ("SavingsPlanCoveredUsage", {"savings_plan_savings_plan_effective_cost": 0.66}, "", EC2,
         "0.66"),
        ("SavingsPlanNegation", {"line_item_unblended_cost": -1.0}, "", EC2, "0"),
        (FEE, COMMITTED, "", PLANS, "2.5"),
        ("SavingsPlanUpfrontFee", {}, "", PLANS, "0"),
        ("DiscountedUsage", {"reservation_effective_cost": 0.6}, "", EC2, "0.6"),
        ("RIFee", UNUSED, "", EC2, "1.5"),
        ("Fee", {"reservation_reservation_a_r_n": "arn:ri"}, "", EC2, "0"),
        ("Fee", {}, "", EC2, "1"),
        ("Refund", {}, REFUND.format("one-time"), "MachineLearningSavingsPlans", "0"),
        ("Refund", {}, REFUND.format("one-time"), EC2, "1"),
        ("Refund", {}, REFUND.format("recurring"), PLANS, "1"),
    ],
)  # fmt: skip
def test_commitments_are_spread_over_the_hours_they_cover(
    tmp_path: Path, kind: str, amounts: Line, description: str, product: str, amortised: str
) -> None:
    prefix = "line_item_line_item_"
    named = {f"{prefix}type": kind, f"{prefix}description": description}
    line = {**named, "line_item_product_code": product, **amounts}
    (row,) = bills.usage(bills.cur_file(tmp_path / f"{kind}.parquet", [line]))
    assert row.amortised_cost == row.net_cost == Decimal(amortised)


# --- What a report says of what a bill lacks.

TODAY = date(2026, 12, 20)
COVERED = {KIND: "SavingsPlanCoveredUsage"}


def reported(path: Path) -> every.Known:
    store = ParquetStore(str(path.parent / "tables"))
    return every.run(store, every.Inputs(bill=path, today=TODAY))


def section_of(made: every.Known, key: str) -> Section:
    section = made.document.section(key)
    assert section is not None
    return section


def test_what_a_bill_cannot_tell_for_want_of_a_column_is_said_and_kept(tmp_path: Path) -> None:
    lacking = ["Tags", "ResourceId", "AvailabilityZone", "ProviderName"]
    made = reported(bills.focus(tmp_path, {}, without=lacking))
    told = " ".join(made.evidence.notes)
    for name in (*lacking, "CommitmentDiscountStatus"):
        assert f"The bill has no column {name}: " in told
    assert "include them in the export" in " ".join(section_of(made, "tags").sentences)
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
    # A bill with the category that is asked for does not lack them.
    maps = (*focus.TAGS, focus.CATEGORIES)
    assert not any("Tags" in each for each in focus._lacking({"xcostcategories"}, maps))
    assert any("Tags" in each for each in focus._lacking(set(), maps))


def test_a_data_export_is_one_whatever_its_query_calls_its_columns(tmp_path: Path) -> None:
    folder = bills.cur_export(tmp_path, [{}, {}], without=["resource_tags"])
    # AWS's own way from legacy reports to a query selects product_region; a tag has any name.
    tags = {"stillwater_cluster": "harbour", "user_stillwater_pool": "broker"}
    bills.append_columns(folder, product_region="us-east-1", **tags)
    came, found, store = ingested(folder)
    assert cur.NO_TAGS not in came.notes
    assert billed_by(found, "cluster owner") == {("harbour", "broker-a"): 2}
    assert [row.format for row in store.rows(tables.DELIVERIES)] == [Format.CUR2]
    without = ["resource_tags", "line_item_resource_id"]
    lacking = bills.cur_export(tmp_path / "lacking", [{}], without=without)
    bills.append_columns(lacking, product_region="us-east-1", user_team="web")
    assert "INCLUDE_RESOURCES" in bills.refused(lacking)


def test_a_month_whose_manifest_names_no_files_leaves_the_others_read(tmp_path: Path) -> None:
    export = bills.cur_export(tmp_path / "bill", [{}])
    (manifest,) = export.rglob("*-Manifest.json")
    empty = Path(str(manifest).replace("2026-11", "2026-12"))
    empty.parent.mkdir(parents=True)
    empty.write_text('{"dataFiles": []}')
    came, rows, _ = ingested(export)
    assert came.billed == sum(row.billed_cost for row in rows) == 1
    assert "The manifest of 2026-12 names no files: nothing of it was delivered." in came.notes
    manifest.unlink()
    assert "names no files" in bills.refused(export)


def test_a_month_that_does_not_name_the_cluster_is_told_of(tmp_path: Path) -> None:
    was = {"BillingPeriodStart": "2026-10-01 00:00:00", "ChargePeriodStart": "2026-10-07 00:00:00"}
    path = bills.focus(tmp_path, {}, {**was, "Tags": FOCUS_TAGS})
    _, _, store = ingested(path, cluster="harbour")
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
    assert section_of(made, "unreadable").title == "Unreadable rows: 2"
    # Mended and delivered once more: nothing is left of them.
    again = reported(written(tmp_path, legacy([{}, {}, {}])))
    assert story.sentences(again.evidence.report)[0] == "The bill of 2026-11 is 3.75 USD."
    store = ParquetStore(str(tmp_path / "tables"))
    assert UNKNOWN_PERIOD not in {row.billing_period for row in store.rows(tables.USAGE)}


def test_tags_that_cannot_be_read_are_not_called_absent(tmp_path: Path) -> None:
    tags = ["stillwater:cluster=harbour;team", '{"team": "we', "{}"]
    made = reported(bills.focus(tmp_path, *({"Tags": each} for each in tags)))
    told = " ".join(section_of(made, "tags").sentences)
    assert "The tags of 2 rows are unreadable, such as " in told
    assert "No line of the bill has a tag" not in told


def test_without_any_kafka_the_tags_are_told_and_long_ones_cut_short(tmp_path: Path) -> None:
    key, long = "resourceTags/user:team", {"resourceTags/user:note": "x" * 9000}
    path = text({key: "streaming"}, {key: "web", **long}, {key: "web"}, {key: "n/a "})(tmp_path)
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
    assert (len(found), found[0].key) == (30, "team")


def test_easy_savings_are_what_their_meters_cost(tmp_path: Path) -> None:
    def meter(usage_type: str, cost: float, **more: Any) -> Line:
        known = {"line_item_usage_type": usage_type, "line_item_unblended_cost": cost}
        return {**known, "line_item_product_code": "Any", **more}

    lines = [
        meter("USE1-AmazonEKS-Hours:extendedSupport", 336.0),
        meter("USE1-AmazonEKS-Hours:perCluster", 67.2),
        meter("EU-UnusedBox:m5.xlarge", 88.4, resource_tags=OWN_TAGS),
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
    start = "ChargePeriodStart"
    lines = [{start: f"2026-11-{n:02d} 00:00:00"} for n in range(1, 9)]
    correction = {"BilledCost": "-40", "ChargeClass": "Correction"}
    lines += [{**correction, start: f"{day} 00:00:00"} for day in ("2026-10-05", "2027-03-01")]
    made = reported(bills.focus(tmp_path, *({**line, "Tags": FOCUS_TAGS} for line in lines)))
    assert made.evidence.report.billed == Decimal(-72)
    assert {each.day.month for each in made.evidence.all_days} == {11}
    assert month_comparison(made.evidence) is None


OURS = {**MARKED, "lineItem/UsageAmount": "10", "lineItem/UnblendedCost": "2.0"}
DISCOUNT = {KIND: "EdpDiscount", "lineItem/UnblendedCost": "-0.5"}


@every_case(
    "own",
    [[OURS, {**OURS, **DISCOUNT}], [{**OURS, "lineItem/NetUnblendedCost": "1.5"}]],
    ids=["lines", "net columns"],
)
def test_a_clusters_own_rates_hold_its_discounts_however_they_are_written(
    tmp_path: Path, own: list[Line]
) -> None:
    strangers = {**DISCOUNT, CLUSTER: "", "lineItem/UnblendedCost": "-1.0"}
    _, _, store = ingested(text(*own, strangers)(tmp_path))
    usage = store.rows(tables.USAGE, cluster="harbour")
    known = economics.cluster_book(usage, PriceBook("eu-west-1", "none"), date(2026, 11, 30))
    assert known.usd(f"{INSTANCE_HOUR}:m7i.large") == Decimal("0.15")
