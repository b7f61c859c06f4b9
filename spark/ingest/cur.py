"""Reads a Cost and Usage Report: CUR 2.0, or the legacy report in either spelling of its columns.

Legacy CUR names a column lineItem/UsageType in csv and line_item_usage_type in Parquet; both are
read under CUR 2.0's name. Only the columns that later rooms need are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from core.ground.errors import InvalidInput
from spark.expressions import made_once
from spark.ingest import splits
from spark.ingest.control import control_of, known_period
from spark.ingest.cur_names import (
    ENTITY,
    KNOWN,
    NEEDED,
    OPTIONAL,
    TAG_MAPS,
    is_legacy,
    legacy_name,
    modern,
    modern_name,
)
from spark.ingest.delivery import (
    Delivery,
    Format,
    Shape,
    amount,
    charges,
    day,
    kind_of,
    left_out,
    line_excerpt,
    month_from,
    named_columns,
    reason,
    require_each_once,
    text,
    text_or_null,
)
from spark.ingest.grain import Grain
from spark.ingest.source import DELIVERED_PERIOD, Source
from spark.ingest.tags import as_map, every_tag, tags
from spark.money import Formula, made_of
from spark.schemas import CHARGES, HAS_NET, require_lines
from spark.tag_keys import OURS, TAG_COLUMNS, KafkaTags, tag_columns
from spark.transforms import amortise
from spark.transforms.classify import AWS

COST = amortise.UNBLENDED
_LISTED = "list it in the export's SELECT from COST_AND_USAGE_REPORT"
_RESOURCES = f"set INCLUDE_RESOURCES = TRUE for the table and {_LISTED}"
REQUIRED = {**dict.fromkeys(NEEDED, _LISTED), "line_item_resource_id": _RESOURCES}
# A legacy report has these only with "Include resource IDs".
WITH_RESOURCES = ("line_item_resource_id", "line_item_availability_zone", "line_item_operation")
LEGACY_REMEDY = (
    "choose it in the report's content (Billing, Cost and Usage Reports), and wait for the next "
    "delivery"
)
NO_RESOURCES = (
    "The report has no resource ids, so the money is read by component and no volume or instance "
    'is told from another: choose "Include resource IDs" in the report\'s content.'
)
ACCOUNT_DIGITS = 12
# Beside tags of their own people sort a bill by cost categories.
CATEGORIES = "cost_category"
_NO_TAGS = f"{_LISTED} and activate the tags as cost allocation tags"
# "AWS" or "AWS Marketplace" (data dictionary, bill_billing_entity), and local sellers of either; a
# marketplace's seller is no part of AWS's own meters.
AWS_NAME, MARKETPLACE = "AWS", r"(?i)marketplace"
# What is not known where an export leaves a column out that no line needs.
LACKING = {
    ENTITY: "what a marketplace sold is not told from what AWS did",
    "line_item_availability_zone": "a pool's instances are not told apart by their zone",
    "line_item_operation": "pods' shares and load balancers' bytes are not told apart",
}
NO_TAGS = (
    "The bill has no column of tags: no tag can say whose a charge is. Activate the tags as cost "
    "allocation tags, and have the export include them."
)
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
# A query that takes a tag out of its map calls it user_team, where it gives it no other name.
_TAG_COLUMNS = (*TAG_COLUMNS, "user_")
# Line types whose usage type says all there is to say; the others keep their description.
PLAIN_KINDS = (
    "Usage",
    "SavingsPlanCoveredUsage",
    "SavingsPlanNegation",
    "DiscountedUsage",
    "FlatRateSubscription",
)
USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage", "FlatRateSubscription")


def delivery(source: Source, what: str, kafka: KafkaTags = OURS) -> Delivery:
    """Turn an opened report into lines; a report that lacks a column raises InvalidInput."""
    legacy = is_legacy(source.columns) and not source.is_data_export
    own = legacy_name if any("/" in name for name in source.columns) else str
    required = REQUIRED
    if legacy:
        required = {name: LEGACY_REMEDY for name in REQUIRED if name not in WITH_RESOURCES}
    known = {modern_name(name).lower() for name in source.columns}
    sorted_by = (*TAG_MAPS, CATEGORIES) if kafka.is_own else TAG_MAPS
    maps = [name for name in sorted_by if name in known]
    spread = [name for key in kafka.keys for name in tag_columns(key, known)]
    wanted = {*KNOWN.values(), *maps, *spread}
    require_each_once(source.columns, lambda name: modern_name(name).lower(), wanted, what)
    has_tags = bool(maps or spread) or _has_tags(known)
    if not has_tags and not legacy:
        raise InvalidInput([f"{what} has no column resource_tags; {_NO_TAGS}."])

    tags_in = (maps, spread)

    def months() -> list[DataFrame]:
        return [
            _needed_columns(modern(frame, kafka), required, tags_in, what, own)
            for frame in source.frames
        ]

    remedy = LEGACY_REMEDY if legacy else _LISTED
    _require_amortisation(source, known, what, own, remedy)
    grain = Grain(kafka, "line_item_resource_id", "line_item_availability_zone", tuple(spread))
    quick = source.quick and source.quick.added_up(
        required, [*WITH_RESOURCES, *OPTIONAL, *maps, *spread], AMOUNTS, COST, grain
    )
    if quick:
        parts = [_needed_columns(quick.lines, required, tags_in, what, own)]
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
        notes=[*_lacking(known, own, has_tags=has_tags), *_gross(source, known, own)],
        tagged=lambda: reduce(
            DataFrame.unionByName, (_month_tags(modern(frame), maps) for frame in source.frames)
        ),
        splits=lambda: splits.read([modern(frame) for frame in source.frames], maps, known),
    )


def _lacking(known: set[str], own: Callable[[str], str], *, has_tags: bool) -> list[str]:
    """Say what cannot be told for want of a column that the export leaves out."""
    has_resources = "line_item_resource_id" in known
    said = [] if has_resources else [NO_RESOURCES]
    # A legacy report has the others of these with resource ids alone.
    said += left_out({n: LACKING[n] for n in LACKING if has_resources or n == ENTITY}, known, own)
    if not has_tags:
        said.append(NO_TAGS)
    return said


def _has_tags(known: Collection[str]) -> bool:
    return any(name in TAG_MAPS or name.startswith(_TAG_COLUMNS) for name in known)


def _gross(source: Source, known: set[str], own: Callable[[str], str]) -> list[str]:
    """Name the net columns that are left out beside others, where lines need them."""
    if not known & set(amortise.NET_COLUMNS):
        return []
    lacking = {
        kind: missing
        for kind, names in {"Usage": (COST,), **amortise.NEEDED_FOR}.items()
        if (missing := [n for n in map(amortise.NET_OF.get, names) if n and n not in known])
    }
    return [
        f"The bill has net columns but no column {own(name)}, so that net cost is without the "
        f"discounts of its {kind} lines."
        for kind in sorted(_present(source, lacking))
        for name in lacking[kind]
    ]


def _month_tags(frame: DataFrame, maps: Sequence[str]) -> DataFrame:
    """Return the tags of a month's lines, also of those columns that nobody looks up."""
    spread = [name for name in frame.columns if name.lower().startswith(_TAG_COLUMNS)]
    required = {COST: "", "bill_billing_period_start_date": ""}
    raw = named_columns(frame, required, [*maps, *spread, DELIVERED_PERIOD], "The bill")
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


def _needed_columns(
    frame: DataFrame,
    required: Mapping[str, str],
    tags_in: tuple[Sequence[str], Sequence[str]],
    what: str,
    own: Callable[[str], str],
) -> DataFrame:
    """Return the columns that are needed, its tags' maps as maps."""
    maps, spread = tags_in
    optional = [*WITH_RESOURCES, *OPTIONAL, *maps, *spread, DELIVERED_PERIOD, CHARGES]
    raw = named_columns(
        frame, required, [name for name in optional if name not in required], what, own
    )
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
        _account(raw).alias("account"),
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
        line_excerpt(SHOWN).alias("line"),
    ]


def _account(raw: Shape) -> Column:
    """Return the account, of numbers with the zeros that they lost."""
    name = "line_item_usage_account_id"
    if not isinstance(raw.schema[name].dataType, NumericType):
        return text(name)
    return F.lpad(text(name).try_cast("decimal(12,0)").cast("string"), ACCOUNT_DIGITS, "0")


def _provider() -> Column:
    """Return who sells: AWS by whatever local name, or a seller of its marketplace."""
    entity = text_or_null(ENTITY)
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
    problems = [
        f"{what} has {kind} lines but no column {own(name)}, without which their amortised cost "
        f"is unknown; {remedy}."
        for kind in sorted(_present(source, lacking))
        for name in lacking[kind]
    ]
    if problems:
        raise InvalidInput(problems)


def _present(source: Source, kinds: Collection[str]) -> list[str]:
    """Return which of these line types a bill has; of none it is not read."""
    if not kinds:
        return []
    if source.quick is not None:
        spelled = {modern_name(name).lower(): name for name in source.quick.schema.names}
        return sorted(source.quick.values(spelled["line_item_line_item_type"]) & set(kinds))
    kind = F.col("line_item_line_item_type")
    rows = reduce(DataFrame.unionByName, (modern(each).select(kind) for each in source.frames))
    return [row[0] for row in rows.where(kind.isin(*kinds)).distinct().collect()]
