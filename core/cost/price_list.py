"""Decides which lines of AWS's price list are rows of the price book, and makes the book of them.

A line is a product's usage type and operation with one on-demand price dimension; where it was read
(an offer file, or GetProducts) is the reader's business. Source of the meters: the usage types of
AWS's bills and price list, as the FOCUS and CUR samples have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from core.cost.pricing import INSTANCE_HOUR, ITEMS

# Each usage type begins with its region's code, but for the oldest region's.
_REGION = r"(?:[A-Z]{2,4}\d?-|[a-z]{2}(?:-[a-z]+)+-\d-)?"
# Plain Linux: every other system and licence has an operation of its own.
_LINUX = "RunInstances"
_OF_NLB = "LoadBalancing:Network"


@dataclass(frozen=True, slots=True)
class PriceMeter:
    """A row of the price book, and the products of the price list that it is."""

    item: str
    service: str
    usage_type: str
    operation: str | None = None


METERS = (
    PriceMeter(INSTANCE_HOUR, "AmazonEC2", r"BoxUsage:(?P<type>[\w.-]+)", _LINUX),
    PriceMeter("gp3_gib_month", "AmazonEC2", r"EBS:VolumeUsage\.gp3"),
    PriceMeter("gp3_iops_month", "AmazonEC2", r"EBS:VolumeP-IOPS\.gp3"),
    PriceMeter("gp3_gibps_month", "AmazonEC2", r"EBS:VolumeP-Throughput\.gp3"),
    PriceMeter("gp2_gib_month", "AmazonEC2", r"EBS:VolumeUsage\.gp2"),
    PriceMeter("snapshot_gib_month", "AmazonEC2", r"EBS:SnapshotUsage"),
    PriceMeter("nat_hour", "AmazonEC2", r"NatGateway-Hours"),
    PriceMeter("inter_zone_gib", "AWSDataTransfer", r"DataTransfer-Regional-Bytes"),
    PriceMeter("eks_cluster_hour", "AmazonEKS", r"AmazonEKS-Hours:perCluster"),
    PriceMeter("eks_extended_support_hour", "AmazonEKS", r"AmazonEKS-Hours:extendedSupport"),
    PriceMeter("nlb_hour", "AWSELB", r"LoadBalancerUsage", _OF_NLB),
    PriceMeter("nlb_lcu_hour", "AWSELB", r"LCUUsage", _OF_NLB),
    PriceMeter("public_ipv4_hour", "AmazonVPC", r"PublicIPv4:InUseAddress"),
    PriceMeter("interface_endpoint_hour", "AmazonVPC", r"VpcEndpoint-Hours"),
    PriceMeter("kms_key_month", "awskms", r"KMS-Keys"),
    PriceMeter("log_gib_ingested", "AmazonCloudWatch", r"DataProcessing-Bytes"),
    PriceMeter("log_gib_month", "AmazonCloudWatch", r"TimedStorage-ByteHrs"),
)
SERVICES = tuple(dict.fromkeys(meter.service for meter in METERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a product is metered by."""

    service: str
    region: str
    usage_type: str
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """One on-demand price of a product, as text, and when the list that has it was published."""

    product: Product
    currency: str
    price: str
    # Of tiered prices the first is what a cluster begins with.
    begins_at: str
    published: date


def item_of(product: Product) -> str | None:
    """Return the row of the price book that a product is; None for what the book does not hold."""
    for meter in METERS:
        if meter.operation not in (None, product.operation):
            continue
        # EC2's own list repeats the transfer products.
        if meter.service != product.service and meter.item != "inter_zone_gib":
            continue
        found = re.fullmatch(_REGION + meter.usage_type, product.usage_type)
        if found:
            return f"{meter.item}:{found['type']}" if meter.item == INSTANCE_HOUR else meter.item
    return None


@dataclass(slots=True)
class Gathered:
    """The prices of one region as they are found; `contradicted` are those quoted twice."""

    region: str
    types: Callable[[str], bool]
    prices: dict[str, tuple[Decimal, date]] = field(default_factory=dict)
    contradicted: dict[str, set[Decimal]] = field(default_factory=dict)
    currencies: set[str] = field(default_factory=set)
    regions: set[str] = field(default_factory=set)

    def wants(self, product: Product) -> bool:
        """Say whether a product is a row of this region's book."""
        self.regions.add(product.region)
        item = item_of(product) if product.region == self.region else None
        if item is None:
            return False
        kind, _, instance_type = item.partition(":")
        return kind != INSTANCE_HOUR or self.types(instance_type)

    def add(self, quoted: Quoted) -> None:
        """Keep a price; of two that disagree neither is believed."""
        item = item_of(quoted.product)
        self.currencies.add(quoted.currency)
        if item is None or quoted.currency != "USD" or _amount(quoted.begins_at or "0"):
            return
        usd = _amount(quoted.price)
        if usd is None:
            return
        known = self.prices.get(item)
        if known is not None and known[0] != usd:
            self.contradicted.setdefault(item, {known[0]}).add(usd)
        self.prices[item] = usd, quoted.published

    @property
    def believed(self) -> Mapping[str, tuple[Decimal, date]]:
        return {item: found for item, found in self.prices.items() if item not in self.contradicted}

    @property
    def missing(self) -> list[str]:
        """Return the items of which nothing, or not one price, was found."""
        kinds = {item.partition(":")[0] for item in self.believed}
        return [item for item in ITEMS if item not in kinds]

    def problems(self) -> list[str]:
        """Say why nothing of what was read can be used, if so."""
        if self.believed:
            return []
        if self.currencies - {"USD"}:
            said = (
                f"The prices of {self.region} are in {', '.join(sorted(self.currencies))}; the "
                f"price book reckons in USD, so the China partition has none."
            )
            return [said]
        named = ", ".join(sorted(self.regions - {""})[:6]) or "no region at all"
        said = (
            f"No price of {self.region} was found: what was read is of {named}; name the offer "
            f"file of {self.region}."
        )
        return [said]


def document(gathered: Gathered, into: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return a price file with a region's prices in it: those fetched in place of older ones.

    `into` is the file as it was, empty for none; sources that no row names any more go.
    """
    newest = max(day for _, day in gathered.believed.values())
    name = f"aws-price-list-{gathered.region}"
    rows: dict[str, Any] = {}
    types: dict[str, str] = {}
    for item, (usd, _) in sorted(gathered.believed.items()):
        kind, _, instance_type = item.partition(":")
        if kind == INSTANCE_HOUR:
            types[instance_type] = _plain_number(usd)
        else:
            rows[item] = {"source": name, "usd": _plain_number(usd)}
    if types:
        rows[INSTANCE_HOUR] = {"source": name, "usd": types}
    regions = dict(into.get("regions", {}))
    regions[gathered.region] = {**regions.get(gathered.region, {}), **rows}
    sources = {**into.get("sources", {}), name: {"title": title, "as_of": str(newest)}}
    named = {row["source"] for items in regions.values() for row in items.values()}
    return {
        "currency": "USD",
        "sources": {key: each for key, each in sources.items() if key in named},
        "regions": dict(sorted(regions.items())),
    }


def _plain_number(usd: Decimal) -> str:
    text = f"{usd:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _amount(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None
