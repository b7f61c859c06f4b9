"""Reads a Cost and Usage Report: CUR 2.0, or the legacy report in either spelling of its columns.

Legacy CUR names a column lineItem/UsageType in csv and line_item_usage_type in Parquet; both are
read under CUR 2.0's name. Only the columns that later rooms need are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.errors import InvalidInput
from spark.expressions import made_once
from spark.ingest import splits
from spark.ingest.control import control_of, known_period
from spark.ingest.delivery import (
    Delivery,
    Format,
    Shape,
    amount,
    charges,
    day,
    filled,
    kind_of,
    month_from,
    named,
    reason,
    shown,
    text,
)
from spark.ingest.grain import Grain
from spark.ingest.lines import APART
from spark.ingest.source import DELIVERED_PERIOD, Source
from spark.ingest.tags import as_map, every_tag, tags
from spark.money import Formula, made_of
from spark.schemas import CHARGES, HAS_NET, require_lines
from spark.tag_keys import OURS, TAG_COLUMNS, KafkaTags, column_spellings
from spark.transforms import amortise
from spark.transforms.classify import AWS

COST = amortise.UNBLENDED
_LISTED = "list it in the export's SELECT from COST_AND_USAGE_REPORT"
_RESOURCES = f"set INCLUDE_RESOURCES = TRUE for the table and {_LISTED}"
REQUIRED = {
    **dict.fromkeys(
        [
            COST,
            "bill_billing_period_start_date",
            "line_item_usage_start_date",
            "line_item_usage_account_id",
            "line_item_currency_code",
            "line_item_line_item_type",
            "line_item_product_code",
            "line_item_usage_type",
            "line_item_operation",
            "line_item_line_item_description",
            "line_item_usage_amount",
            "line_item_availability_zone",
            "pricing_unit",
        ],
        _LISTED,
    ),
    "line_item_resource_id": _RESOURCES,
}
# A legacy report has these only with "Include resource IDs".
GROUPS = {
    "line_item": "lineItem",
    "savings_plan": "savingsPlan",
    "split_line_item": "splitLineItem",
    **{name: name for name in ("identity", "bill", "product", "pricing", "reservation")},
}
WITH_RESOURCES = ("line_item_resource_id", "line_item_availability_zone", "line_item_operation")
LEGACY_REMEDY = (
    "choose it in the report's content (Billing, Cost and Usage Reports), and wait for the next "
    "delivery"
)
NO_RESOURCES = (
    "The report has no resource ids, so the money is read by component and no volume or instance "
    'is told from another: choose "Include resource IDs" in the report\'s content.'
)
TAG_MAPS = ("resource_tags", "tags")
# Beside tags of their own people sort a bill by cost categories.
CATEGORIES = "cost_category"
TAG_PLACES = ("resourceTags/user:", "resourceTags/")
_NO_TAGS = f"{_LISTED} and activate the tags as cost allocation tags"
# "AWS" or "AWS Marketplace" (data dictionary, bill_billing_entity), and local sellers of either; a
# marketplace's seller is no part of AWS's own meters.
ENTITY = "bill_billing_entity"
AWS_NAME, MARKETPLACE = "AWS", r"(?i)marketplace"
OPTIONAL = (*amortise.COLUMNS, *amortise.NET_COLUMNS, ENTITY)
AMOUNTS = (*amortise.AMOUNTS, "line_item_usage_amount")
SHOWN = (
    COST,
    "bill_billing_period_start_date",
    "line_item_usage_start_date",
    "line_item_usage_type",
    "line_item_resource_id",
    "line_item_line_item_description",
)
ELSEWHERE = "the line is of another month than the delivery it came in"
# Only legacy CUR has these; CUR 2.0 keeps them in its product map.
LEGACY_COLUMNS = ("lineitem/usagetype", "product_region", "product_product_name")
# Line types whose usage type says all there is to say; the others keep their description.
PLAIN_KINDS = (
    "Usage",
    "SavingsPlanCoveredUsage",
    "SavingsPlanNegation",
    "DiscountedUsage",
    "FlatRateSubscription",
)
USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage", "FlatRateSubscription")


def is_legacy(columns: list[str]) -> bool:
    return any(
        name.lower() in LEGACY_COLUMNS or name.lower().startswith("resource_tags_")
        for name in columns
    )


def modern_name(legacy: str) -> str:
    """Return CUR 2.0's name of a legacy column: lineItem/UsageType -> line_item_usage_type."""
    if "/" not in legacy or legacy.startswith("resourceTags/"):
        return legacy
    group, name = legacy.split("/", 1)
    words = re.sub(r"([A-Z])", r"_\1", f"{group}/{name}").replace("/_", "/").lower()
    return re.sub(r"[^0-9a-z]+", "_", words).strip("_")


def delivery(source: Source, what: str, kafka: KafkaTags = OURS) -> Delivery:
    """Turn an opened report into lines; a report that lacks a column raises InvalidInput."""
    legacy = is_legacy(source.columns)
    own = legacy_name if any("/" in name for name in source.columns) else str
    required = REQUIRED
    if legacy:
        required = {name: LEGACY_REMEDY for name in REQUIRED if name not in WITH_RESOURCES}
    known = {modern_name(name).lower() for name in source.columns}
    sorted_by = (*TAG_MAPS, CATEGORIES) if kafka.is_own else TAG_MAPS
    maps = [name for name in sorted_by if name in known]
    spread = [s for key in kafka.keys for s in column_spellings(key) if s in known]
    if not maps and not spread and not legacy:
        raise InvalidInput([f"{what} has no column resource_tags; {_NO_TAGS}."])

    tags_in = (maps, spread)

    def months() -> list[DataFrame]:
        return [
            _named(_modern(frame, kafka), required, tags_in, what, own) for frame in source.frames
        ]

    _require_amortisation(source, known, what, own, LEGACY_REMEDY if legacy else _LISTED)
    grain = Grain(kafka, "line_item_resource_id", "line_item_availability_zone", tuple(spread))
    quick = source.quick and source.quick.added_up(
        required, [*WITH_RESOURCES, *OPTIONAL, *maps, *spread], AMOUNTS, COST, grain
    )
    if quick:
        parts = [_named(quick.lines, required, tags_in, what, own)]
        control = quick.control
    else:
        parts = months()
        control = partial(control_of, *map(_costs, parts))
    return Delivery(
        label=source.label,
        format=Format.CUR if legacy else Format.CUR2,
        parts=[
            require_lines(part, "The CUR reader's output") for part in _lines(parts, maps, kafka)
        ],
        control=control,
        every_line=lambda: _lines(months(), maps, kafka),
        refreshes=source.refreshes,
        simulated=source.simulated,
        kafka=kafka,
        notes=[NO_RESOURCES] if legacy and "line_item_resource_id" not in known else [],
        tagged=lambda: reduce(
            DataFrame.unionByName, (_tagged(_modern(frame), maps) for frame in source.frames)
        ),
        splits=lambda: splits.read([_modern(frame) for frame in source.frames], maps, known),
    )


def _tagged(frame: DataFrame, maps: Sequence[str]) -> DataFrame:
    """Return the tags of a month's lines, also of those columns that nobody looks up."""
    spread = [name for name in frame.columns if name.lower().startswith(TAG_COLUMNS)]
    required = {COST: "", "bill_billing_period_start_date": ""}
    raw = named(frame, required, [*maps, *spread, DELIVERED_PERIOD], "The bill")
    for name in maps:
        raw = as_map(raw, name)
    return raw.select(
        known_period(_period(raw)),
        F.col(COST).alias("billed_cost"),
        *every_tag(maps, spread),
    )


def _costs(raw: DataFrame) -> DataFrame:
    cost = amount(COST, kind_of(raw, COST))
    return raw.select(_period(raw).alias("billing_period"), cost.alias("cost"))


def _modern(frame: DataFrame, kafka: KafkaTags = OURS) -> DataFrame:
    """Return a month's columns under CUR 2.0's names.

    Of tags that differ by case alone (spark.ingest.lines) one written as it is asked for is meant.
    """
    spelled = {name: modern_name(name) for name in frame.columns}
    for asked in (f"{place}{key}" for key in kafka.keys for place in TAG_PLACES):
        exact = next((name for name in spelled if APART.sub("", name) == asked), asked)
        first = next((name for name in spelled if name.lower() == asked.lower()), exact)
        if exact in spelled:
            spelled[exact], spelled[first] = spelled[first], spelled[exact]
    return frame.select(*(F.col(f"`{old}`").alias(new) for old, new in spelled.items()))


def legacy_name(modern: str) -> str:
    """Return legacy CUR's name of a column in csv: line_item_usage_type -> lineItem/UsageType."""
    for group, written in GROUPS.items():
        if modern.startswith(f"{group}_"):
            words = modern.removeprefix(f"{group}_").split("_")
            return f"{written}/{''.join(word.capitalize() for word in words)}"
    return modern


def _named(
    frame: DataFrame,
    required: Mapping[str, str],
    tags_in: tuple[Sequence[str], Sequence[str]],
    what: str,
    own: Callable[[str], str],
) -> DataFrame:
    """Return the columns that are needed, its tags' maps as maps."""
    maps, spread = tags_in
    optional = [*WITH_RESOURCES, *OPTIONAL, *maps, *spread, DELIVERED_PERIOD, CHARGES]
    raw = named(frame, required, [name for name in optional if name not in required], what, own)
    for name in maps:
        raw = as_map(raw, name)
    return raw


def _lines(months: Sequence[DataFrame], maps: list[str], kafka: KafkaTags) -> list[DataFrame]:
    """Return the months' lines; those of one shape share their expressions, slow to make."""
    return [raw.select(*_columns(Shape(raw.schema), tuple(maps), kafka)) for raw in months]


@made_once
def _columns(raw: Shape, maps: Sequence[str], kafka: KafkaTags) -> list[Column]:
    carried = kind_of(raw, COST)

    def money(formula: Formula) -> Column:
        return made_of(formula, lambda name: amount(name, carried), carried)

    kind = F.col("line_item_line_item_type")
    is_plain = kind.isin(*PLAIN_KINDS)
    return [
        _period(raw).alias("billing_period"),
        day(raw, "line_item_usage_start_date").alias("day"),
        _provider().alias("provider"),
        text("line_item_usage_account_id").alias("account"),
        text("line_item_currency_code").alias("currency"),
        text("line_item_line_item_type").alias("category"),
        text("line_item_product_code").alias("service"),
        text("line_item_usage_type").alias("usage_type"),
        text("line_item_operation").alias("operation"),
        F.when(~is_plain, text("line_item_line_item_description")).alias("description"),
        text("pricing_unit").alias("unit"),
        text("line_item_resource_id").alias("resource_id"),
        text("line_item_availability_zone").alias("zone"),
        *tags(raw, maps, kafka.keys),
        _reason(raw).alias("reason"),
        amount(amortise.NET_UNBLENDED, carried).isNotNull().cast("int").alias(HAS_NET),
        F.when(kind.isin(*USED), amount("line_item_usage_amount", carried)).alias("quantity"),
        amount(COST, carried).alias("billed_cost"),
        money(amortise.amortised_cost).alias("amortised_cost"),
        money(amortise.net_cost).alias("net_cost"),
        charges(),
        shown(SHOWN).alias("line"),
    ]


def _provider() -> Column:
    """Return who sells: AWS by whatever local name, or a seller of its marketplace."""
    entity = filled(ENTITY)
    by_another_name = F.concat(F.lit(f"{AWS_NAME} ("), entity, F.lit(")"))
    is_known = entity.rlike(AWS) | entity.rlike(MARKETPLACE)
    return F.coalesce(
        F.when((entity == AWS_NAME) | is_known, entity).otherwise(by_another_name), F.lit(AWS_NAME)
    )


def _period(raw: DataFrame | Shape) -> Column:
    """Return the month a line was delivered for; without a manifest, the one it names."""
    named_by_line = F.date_format(month_from(raw, "bill_billing_period_start_date"), "yyyy-MM")
    return F.coalesce(F.col(DELIVERED_PERIOD), named_by_line)


def _reason(raw: Shape) -> Column:
    unreadable = reason(
        raw,
        numbers={COST: kind_of(raw, COST)},
        days=("bill_billing_period_start_date", "line_item_usage_start_date"),
        present=("line_item_currency_code", "line_item_line_item_type"),
    )
    # The month by its first day alone: no text is made of a time in every line.
    first = F.to_date(F.concat(F.col(DELIVERED_PERIOD), F.lit("-01")))
    elsewhere = first != month_from(raw, "bill_billing_period_start_date")
    return F.coalesce(unreadable, F.when(elsewhere, F.lit(ELSEWHERE)))


def _require_amortisation(
    source: Source,
    delivered: set[str],
    what: str,
    own: Callable[[str], str],
    remedy: str,
) -> None:
    """Refuse a bill whose line types need a column that the export leaves out."""
    lacking = {
        kind: missing
        for kind, names in amortise.NEEDED_FOR.items()
        if (missing := [name for name in names if name not in delivered])
    }
    if not lacking:
        return
    kind = F.col("line_item_line_item_type")
    months = (_modern(frame).select(kind) for frame in source.frames)
    rows = reduce(DataFrame.unionByName, months)
    present = rows.where(kind.isin(*lacking)).distinct().collect()
    problems = [
        f"{what} has {row[0]} lines but no column {own(name)}, without which their amortised cost "
        f"is unknown; {remedy}."
        for row in sorted(present)
        for name in lacking[row[0]]
    ]
    if problems:
        raise InvalidInput(problems)
