"""Reads a FOCUS bill, 1.0 to 1.3: columns by name, "NULL" literals, tags as a map or as JSON.

FOCUS carries no usage type, so later rooms classify by service, unit and description. AWS's own
1.0 export adds x_UsageType and x_Operation, its 1.2 x_Operation alone and a SkuMeter; they are used
where present.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np

from spark.ingest.columns import Amounts, Numbers
from spark.ingest.layout import (
    Cells,
    Costs,
    Format,
    Layout,
    left_out,
    letters,
    require_columns,
    require_each_once,
    spellings,
    text_or_none,
)
from spark.rules.line import AWS, UNUSED
from spark.tag_keys import KafkaTags

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
AWS_NAME, MARKETPLACE = "AWS", "AWS Marketplace"
# Who publishes what AWS sells itself: its companies, and in China those that run its regions.
PUBLISHERS = re.compile(r"(?i)\b(AWS|AISPL|Amazon|NWCD)\b|Sinnet|Western Cloud Data")
# What is not known where an export leaves a column out that no line needs.
LACKING = {
    "Tags": "no tag can say whose a charge is, until the export lists them",
    "ResourceId": "without single volumes and instances",
    "AvailabilityZone": "a pool's instances are not told apart by their zone",
    "CommitmentDiscountStatus": "what nothing used of a commitment is not told from the rest",
}
NO_SELLER = (
    "The bill has no column ProviderName: no charge is known to be AWS's own, so that what it "
    "bought has no name here."
)
AMOUNTS = (COST, "EffectiveCost", "PricingQuantity")
SHOWN = (COST, "BillingPeriodStart", "ChargePeriodStart", "ResourceId", "ChargeDescription")


class FocusLayout(Layout):
    """How the lines of a FOCUS bill are read."""

    format = Format.FOCUS
    texts = (
        *("BillingCurrency", "ChargeCategory", "ChargeDescription", "PricingUnit", "ServiceName"),
        *OPTIONAL,
    )
    amounts = AMOUNTS
    cost = COST
    numbers = (COST, "EffectiveCost")
    present = ("BillingCurrency",)
    day = "ChargePeriodStart"
    month = "BillingPeriodStart"
    resource = "ResourceId"
    zone = "AvailabilityZone"
    meters = ("x_UsageType", "SkuMeter")
    shown = SHOWN

    def line(self, cells: Cells) -> tuple[str | None, ...]:
        meter = text_or_none(cells["x_UsageType"]) or text_or_none(cells["SkuMeter"])
        # Reserved capacity that nothing ran in (1.2): its meter may be the instance's own.
        is_idle = text_or_none(cells["CapacityReservationStatus"]) == "Unused"
        is_unused = text_or_none(cells["CommitmentDiscountStatus"]) == "Unused"
        return (
            _provider(tuple(cells[name] for name in SELLERS)),
            cells["SubAccountId"],
            cells["BillingCurrency"],
            # What of a commitment nothing used.
            UNUSED if is_unused else cells["ChargeCategory"],
            cells["ServiceName"],
            IDLE if is_idle and IDLE not in (meter or "") else meter,
            cells["x_Operation"],
            cells["ChargeDescription"],
            cells["PricingUnit"],
            cells["ResourceId"],
            cells["AvailabilityZone"],
        )

    def kind(self, cells: Cells) -> int:
        # Its covered usage has the cost of a commitment: the specification has none for its
        # purchase, and some exports write the price there once more.
        is_purchase = cells["ChargeCategory"] == "Purchase"
        return int(is_purchase and text_or_none(cells["CommitmentDiscountId"]) is not None)

    def costs(self, kinds: Numbers, amounts: Mapping[str, Amounts]) -> Costs:
        effective = amounts["EffectiveCost"].where(kinds == 0)
        # It is amortised and after every discount: nothing is left to take out.
        has_net = np.zeros(len(kinds), np.bool_)
        return Costs(amounts["PricingQuantity"], amounts[COST], effective, effective, has_net)


def opened(
    columns: Sequence[str], what: str, kafka: KafkaTags, *, is_data_export: bool
) -> FocusLayout:
    """Return how a bill is read by its columns; one that lacks some is refused."""
    del is_data_export  # a FOCUS bill is the same however it was delivered
    maps = (*TAGS, CATEGORIES) if kafka.is_own else TAGS
    wanted = {letters(name) for name in (*REQUIRED, *OPTIONAL, *maps)}
    require_each_once(columns, letters, wanted, what)
    require_columns(REQUIRED, columns, what)
    return FocusLayout(kafka, maps, notes=tuple(_lacking(spellings(columns), maps)))


def _lacking(known: Collection[str], maps: Sequence[str]) -> list[str]:
    """Say what cannot be told for want of a column that the export leaves out."""
    is_sold = any(name.lower() in known or letters(name) in known for name in SELLERS)
    has_tags = any(name.lower() in known or letters(name) in known for name in maps)
    effects = {name: LACKING[name] for name in LACKING if not has_tags or name not in TAGS}
    return [*left_out(effects, known), *([] if is_sold else [NO_SELLER])]


@lru_cache(1 << 12)
def _provider(sellers: Sequence[str | None]) -> str | None:
    """Return who sells: AWS by any of its names, or its marketplace where another published.

    `sellers` are the cells of SELLERS.
    """
    named = [text_or_none(each) for each in sellers]
    # Without any, a column that AWS alone adds says whose the charge is.
    by_column = AWS_NAME if named[-1] is not None else None
    known = (each for each in (*named[:3], by_column, *named[3:5]) if each is not None)
    seller = next(known, None)
    publisher = named[SELLERS.index("PublisherName")] or AWS_NAME
    if seller is not None and AWS.search(seller) and not PUBLISHERS.search(publisher):
        return MARKETPLACE
    return seller
