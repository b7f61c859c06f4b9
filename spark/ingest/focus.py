"""Reads a FOCUS bill, 1.0 to 1.3: columns by name, "NULL" literals, tags as a map or as JSON.

FOCUS carries no usage type, so later rooms classify by service, unit and description. AWS's own
1.0 export adds x_UsageType and x_Operation, its 1.2 x_Operation alone and a SkuMeter; they are used
where present.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.expressions import made_once, surely
from spark.ingest.control import control_of, known_period
from spark.ingest.delivery import (
    Delivery,
    Format,
    Shape,
    amount,
    charges,
    day,
    kind_of,
    left_out,
    letters,
    line_excerpt,
    month_from,
    named_columns,
    reason,
    require_each_once,
    spellings,
    text,
    text_or_null,
)
from spark.ingest.grain import Grain
from spark.ingest.source import DELIVERED_PERIOD, Source
from spark.ingest.tags import as_map, every_tag, named_tags
from spark.money import Amount, made_of
from spark.schemas import CHARGES, HAS_NET, require_lines
from spark.tag_keys import OURS, KafkaTags, category_name, column_spellings
from spark.transforms.classify import AWS, UNUSED

COST = "BilledCost"
# AWS's meter of reserved capacity that stands idle.
IDLE = "UnusedBox"
_LISTED = "list it in the export's column selection (table FOCUS with AWS columns)"
REQUIRED = dict.fromkeys(
    [
        COST,
        "EffectiveCost",
        "BillingCurrency",
        "BillingPeriodStart",
        "ChargePeriodStart",
        "ChargeCategory",
        "ChargeDescription",
        "PricingUnit",
        "PricingQuantity",
        "ServiceName",
    ],
    _LISTED,
)
# FOCUS asks for these of providers that have the thing; 1.3 has another name for the provider.
OPTIONAL = (
    *("AvailabilityZone", "x_UsageType", "SkuMeter", "x_Operation"),
    *("ProviderName", "ServiceProviderName", "HostProviderName", "InvoiceIssuerName"),
    *("PublisherName", "ResourceId", "SubAccountId"),
    *("CommitmentDiscountStatus", "CommitmentDiscountId", "CapacityReservationStatus"),
)
# What says who sells, the surest first.
SELLERS = (
    *("ProviderName", "ServiceProviderName", "HostProviderName"),
    *("PublisherName", "InvoiceIssuerName", "x_UsageType"),
)
# Beside tags of their own people sort a bill by cost categories.
TAGS, CATEGORIES = ("Tags",), "x_CostCategories"
CATEGORY_WORDS = ("x_CostCategories", "x_CostCategory")
# The specification's display names, where those are other words than the column's own.
DISPLAYED = {
    "provider": "ProviderName",
    "publisher": "PublisherName",
    "invoiceissuer": "InvoiceIssuerName",
}
AWS_NAME, MARKETPLACE = "AWS", "AWS Marketplace"
# Who publishes what AWS sells itself: its companies, and in China those that run its regions.
PUBLISHERS = r"(?i)\b(AWS|AISPL|Amazon|NWCD)\b|Sinnet|Western Cloud Data"
# What is not known where an export leaves a column out that no line needs.
LACKING = {
    "Tags": "no tag can say whose a charge is, until the export lists them",
    "ResourceId": "no volume or instance is told from another",
    "AvailabilityZone": "a pool's instances are not told apart by their zone",
    "CommitmentDiscountStatus": "what nothing used of a commitment is not told from the rest",
}
NO_SELLER = (
    "The bill has no column ProviderName: no charge is known to be AWS's own, so that what it "
    "bought has no name here."
)
AMOUNTS = (COST, "EffectiveCost", "PricingQuantity")
SHOWN = (COST, "BillingPeriodStart", "ChargePeriodStart", "ResourceId", "ChargeDescription")


def delivery(source: Source, what: str, kafka: KafkaTags = OURS) -> Delivery:
    """Turn an opened bill into lines; a bill that lacks a column raises InvalidInput."""

    maps = (*TAGS, CATEGORIES) if kafka.is_own else TAGS
    own = _tag_columns(source.columns, kafka)
    wanted = {letters(name) for name in (*REQUIRED, *OPTIONAL, *maps, *own.values())}
    require_each_once(source.columns, letters, wanted, what)

    def months() -> list[DataFrame]:
        return [_needed_columns(frame, what, maps, own) for frame in source.frames]

    grain = Grain(kafka, "ResourceId", "AvailabilityZone")
    quick = None
    if source.quick and not own:
        quick = source.quick.added_up(REQUIRED, [*OPTIONAL, *maps], AMOUNTS, COST, grain)
    if quick:
        parts = [_needed_columns(quick.lines, what, maps, own)]
        control = quick.control
    else:
        parts = months()
        control = partial(control_of, *map(_costs, parts))
    return Delivery(
        label=source.label,
        format=Format.FOCUS,
        parts=[require_lines(_lines(raw, maps, own), "The FOCUS reader's output") for raw in parts],
        control=control,
        every_line=lambda: [_lines(raw, maps, own) for raw in months()],
        refreshes=source.refreshes,
        simulated=source.simulated,
        kafka=kafka,
        notes=_lacking(spellings(_named_by_id(source.columns).values()), own, maps),
        tagged=lambda: reduce(DataFrame.unionByName, map(_month_tags, months())),
    )


def _lacking(known: Collection[str], own: Mapping[str, str], maps: Sequence[str]) -> list[str]:
    """Say what cannot be told for want of a column that the export leaves out."""
    is_sold = any(name.lower() in known or letters(name) in known for name in SELLERS)
    has_tags = bool(own) or any(name.lower() in known or letters(name) in known for name in maps)
    effects = {name: LACKING[name] for name in LACKING if not has_tags or name not in TAGS}
    return [*left_out(effects, known), *([] if is_sold else [NO_SELLER])]


def _tag_columns(columns: Sequence[str], kafka: KafkaTags) -> dict[str, str]:
    """Return the columns that a tool gave to single tags (Tags.team, tag_team), by their names.

    Those are what a tag is looked up by.
    """
    known = {letters(name): name for name in columns}
    return {
        column_spellings(key)[0]: known[place]
        for key in kafka.keys
        for place in (
            *(letters(f"{word}{key}") for word in ("tag", "taguser", "tagsuser", "tags")),
            *(letters(f"{word}{category_name(key)}") for word in CATEGORY_WORDS),
        )
        if place in known
    }


def _needed_columns(
    frame: DataFrame, what: str, maps: Sequence[str], own: Mapping[str, str]
) -> DataFrame:
    by_id = frame.toDF(*_named_by_id(frame.columns).values())
    optional = [*OPTIONAL, *maps, *own.values(), DELIVERED_PERIOD, CHARGES]
    raw = named_columns(by_id, REQUIRED, optional, what)
    return reduce(as_map, maps, raw)


def _named_by_id(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns by their own names, of those that are written as they are displayed."""
    known = {letters(name) for name in columns}
    own = {name: DISPLAYED.get(letters(name), name) for name in columns}
    return {n: n if letters(own[n]) in known else own[n] for n in columns}


def _month_tags(raw: DataFrame) -> DataFrame:
    return raw.select(
        known_period(_period(raw)),
        F.col(COST).alias("billed_cost"),
        *every_tag(TAGS, ()),
    )


def _costs(raw: DataFrame) -> DataFrame:
    cost = amount(COST, kind_of(raw, COST))
    return raw.select(_period(raw).alias("billing_period"), cost.alias("cost"))


def _lines(raw: DataFrame, maps: Sequence[str], own: Mapping[str, str]) -> DataFrame:
    return raw.select(*_columns(Shape(raw.schema), tuple(maps), tuple(own.items())))


@made_once
def _columns(raw: Shape, maps: Sequence[str], own: Sequence[tuple[str, str]]) -> list[Column]:
    kind = kind_of(raw, COST)
    # Its covered usage has the cost of a commitment: the specification has none for its purchase,
    # and some exports write the price there once more.
    is_commitment = surely(
        (text("ChargeCategory") == "Purchase") & text_or_null("CommitmentDiscountId").isNotNull()
    )

    def spread(given: Amount) -> Column:
        cost = given("EffectiveCost")
        return F.when(is_commitment, cost * 0).otherwise(cost)

    effective = made_of(spread, lambda name: amount(name, kind), kind)
    return [
        _period(raw).alias("billing_period"),
        day(raw, "ChargePeriodStart").alias("day"),
        _provider().alias("provider"),
        text("SubAccountId").alias("account"),
        text("BillingCurrency").alias("currency"),
        F.when(_is_unused(), F.lit(UNUSED)).otherwise(text("ChargeCategory")).alias("category"),
        text("ServiceName").alias("service"),
        F.when(_is_idle(), F.lit(IDLE)).otherwise(_meter()).alias("usage_type"),
        text("x_Operation").alias("operation"),
        text("ChargeDescription").alias("description"),
        text("PricingUnit").alias("unit"),
        text("ResourceId").alias("resource_id"),
        text("AvailabilityZone").alias("zone"),
        *named_tags(maps, dict(own)),
        _reason(raw).alias("reason"),
        # EffectiveCost is amortised and after every discount: nothing is left to take out.
        F.lit(0).alias(HAS_NET),
        amount("PricingQuantity", kind).alias("quantity"),
        amount(COST, kind).alias("billed_cost"),
        effective.alias("amortised_cost"),
        effective.alias("net_cost"),
        charges(),
        line_excerpt(SHOWN).alias("line"),
    ]


def _provider() -> Column:
    """Return who sells: AWS by any of its names, or its marketplace where another published."""
    # Without any, a column that AWS alone adds says whose the charge is.
    by_column = F.when(text_or_null("x_UsageType").isNotNull(), F.lit(AWS_NAME))
    seller = F.coalesce(
        *map(text_or_null, SELLERS[:3]), by_column, *map(text_or_null, SELLERS[3:5])
    )
    by_another = ~F.coalesce(text_or_null("PublisherName"), F.lit(AWS_NAME)).rlike(PUBLISHERS)
    return F.when(seller.rlike(AWS) & by_another, F.lit(MARKETPLACE)).otherwise(seller)


def _is_unused() -> Column:
    """Say whether a charge is for the part of a commitment that nothing used."""
    return surely(text_or_null("CommitmentDiscountStatus") == "Unused")


def _meter() -> Column:
    return F.coalesce(text_or_null("x_UsageType"), text_or_null("SkuMeter"))


def _is_idle() -> Column:
    """Say whether a charge is for reserved capacity that nothing ran in (FOCUS 1.2).

    Its meter may be the instance's own.
    """
    is_unused = text_or_null("CapacityReservationStatus") == "Unused"
    return surely(is_unused) & ~surely(_meter().contains(IDLE))


def _period(raw: DataFrame | Shape) -> Column:
    named_by_line = F.date_format(month_from(raw, "BillingPeriodStart"), "yyyy-MM")
    return F.coalesce(F.col(DELIVERED_PERIOD), named_by_line)


def _reason(raw: Shape) -> Column:
    kind = kind_of(raw, COST)
    return reason(
        raw,
        numbers={COST: kind, "EffectiveCost": kind},
        days=("BillingPeriodStart", "ChargePeriodStart"),
        present=("BillingCurrency",),
    )
