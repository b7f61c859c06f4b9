"""Makes the price book of AWS's price list, and checks it against AWS.

A row of the book is a product's usage type and operation with one on-demand price dimension, out of
an offer file or of GetProducts; the meters are the usage types of AWS's bills and price list, as
the FOCUS and CUR samples have them. EC2's offer file of one region is hundreds of MB, so it is read
in bounded memory, one product and one term at a time (AWS Billing user guide, "Reading the service
price list file for an AWS service"). A bill's own rate is its money
over its quantity, of plain usage alone; where it differs, a price has moved or is a private one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import IO, Any

from core.cost.pricing import (
    COMMITTED_HOURS,
    INSTANCE_HOUR,
    ITEMS,
    PER_TYPE,
    Price,
    PriceBook,
    plain,
    read_amount,
)
from core.ground.errors import InvalidInput

# Each usage type begins with its region's code, but for the oldest region's.
_REGION = r"(?:[A-Z]{2,4}\d?-|[a-z]{2}(?:-[a-z]+)+-\d-)?"
# Plain Linux: every other system and licence has an operation of its own.
_LINUX = "RunInstances"
_NLB_OPERATION = "LoadBalancing:Network"


@dataclass(frozen=True, slots=True)
class PriceMeter:
    """A row of the price book, and the products of the price list that it is.

    `checked`: a bill's usage type alone says that a line is of it.
    """

    item: str
    service: str
    usage_type: str
    operation: str | None = None
    checked: bool = True


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
    PriceMeter("nlb_hour", "AWSELB", r"LoadBalancerUsage", _NLB_OPERATION, checked=False),
    PriceMeter("nlb_lcu_hour", "AWSELB", r"LCUUsage", _NLB_OPERATION, checked=False),
    PriceMeter("public_ipv4_hour", "AmazonVPC", r"PublicIPv4:InUseAddress"),
    PriceMeter("interface_endpoint_hour", "AmazonVPC", r"VpcEndpoint-Hours"),
    PriceMeter("kms_key_month", "awskms", r"KMS-Keys", checked=False),
    PriceMeter("log_gib_ingested", "AmazonCloudWatch", r"DataProcessing-Bytes", checked=False),
    PriceMeter("log_gib_month", "AmazonCloudWatch", r"TimedStorage-ByteHrs", checked=False),
    PriceMeter("nat_gib", "AmazonEC2", r"NatGateway-Bytes"),
    # Of these a bill leaves out what is free, or has other products under the same usage type.
    PriceMeter("lambda_arm_gib_second", "AWSLambda", r"Lambda-GB-Second-ARM", checked=False),
    PriceMeter("lambda_request", "AWSLambda", r"Request-ARM", checked=False),
    PriceMeter("sqs_request", "AWSQueueService", r"Requests-RBP", checked=False),
    PriceMeter("dynamodb_read_unit", "AmazonDynamoDB", r"ReadRequestUnits", checked=False),
    PriceMeter("dynamodb_write_unit", "AmazonDynamoDB", r"WriteRequestUnits", checked=False),
    PriceMeter("alarm_metric_month", "AmazonCloudWatch", r"CW:AlarmMonitorUsage", checked=False),
    PriceMeter("metric_month", "AmazonCloudWatch", r"CW:MetricMonitorUsage", checked=False),
    PriceMeter("metric_asked", "AmazonCloudWatch", r"CW:GMD-Metrics", checked=False),
    PriceMeter("secret_month", "AWSSecretsManager", r"AWSSecretsManager-Secrets", checked=False),
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
    """One price of a product, as text, and when the list that has it was published."""

    product: Product
    currency: str
    price: str
    # Of tiered prices the first is what a cluster begins with.
    begins_at: str
    published: date
    years: int = 0  # of a standard reservation without an upfront payment; 0: on demand

    @property
    def item(self) -> str | None:
        """Return the row of the price book that it is; None for what the book does not hold."""
        item = item_of(self.product)
        if not self.years or item is None:
            return item
        kind, _, instance_type = item.partition(":")
        return f"{COMMITTED_HOURS[self.years]}:{instance_type}" if kind == INSTANCE_HOUR else None


def item_of(product: Product) -> str | None:
    """Return the row of the price book that a product is; None for what the book does not hold."""
    for meter in METERS:
        if meter.operation not in (None, product.operation):
            continue
        # EC2's own list repeats the transfer products.
        if meter.service != product.service and meter.item != "inter_zone_gib":
            continue
        item = _metered_item(meter, _REGION + meter.usage_type, product.usage_type)
        if item is not None:
            return item
    return None


def _metered_item(meter: PriceMeter, pattern: str, usage_type: str) -> str | None:
    found = re.fullmatch(pattern, usage_type)
    if found is None:
        return None
    return f"{meter.item}:{found['type']}" if meter.item == INSTANCE_HOUR else meter.item


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
        item = quoted.item
        self.currencies.add(quoted.currency)
        if item is None or quoted.currency != "USD" or read_amount(quoted.begins_at or "0"):
            return
        usd = read_amount(quoted.price)
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
    for item, (usd, _) in sorted(gathered.believed.items()):
        kind, _, instance_type = item.partition(":")
        if kind in PER_TYPE:
            types = rows.setdefault(kind, {"source": name, "usd": {}})["usd"]
            types[instance_type] = f"{plain(usd):f}"
        else:
            rows[item] = {"source": name, "usd": f"{plain(usd):f}"}
    regions = dict(into.get("regions", {}))
    # A type that was written by itself is one of those fetched now.
    kept = {
        k: v
        for k, v in regions.get(gathered.region, {}).items()
        if k.partition(":")[2] not in rows.get(INSTANCE_HOUR, {}).get("usd", {})
    }
    regions[gathered.region] = {**kept, **rows}
    sources = {**into.get("sources", {}), name: {"title": title, "as_of": str(newest)}}
    named = {row["source"] for items in regions.values() for row in items.values()}
    return {
        "currency": "USD",
        "sources": {key: each for key, each in sources.items() if key in named},
        "regions": dict(sorted(regions.items())),
    }


# Quantities are rounded on a bill: a rate of few units is not to be taken at its last digit.
TOLERANCE = Decimal("0.005")
# From so far off a list price misleads whoever plans by it, and a report names it.
FAR_OFF = Decimal("0.1")
# AWS changes prices now and then; after so long somebody should look.
OLD_DAYS = 180


@dataclass(frozen=True, slots=True)
class BilledRate:
    """What a bill charges for one usage type, the region's prefix left out."""

    usage_type: str
    quantity: Decimal
    cost: Decimal

    @property
    def usd(self) -> Decimal:
        return self.cost / self.quantity


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row of the book and what the bill says in its place; `price` None: the book lacks it."""

    item: str
    price: Price | None
    billed: BilledRate

    @property
    def sentence(self) -> str:
        """Say what to do about it."""
        said = self.billed.usd.normalize()
        where = f"over {self.billed.quantity.normalize():f} units of {self.billed.usage_type}"
        if self.price is None:
            return f"{self.item} has no price; the bill charges {said:.6f} USD {where}."
        change = (self.billed.usd - self.price.usd) / self.price.usd if self.price.usd else 1
        return (
            f"{self.item} is {self.price.usd} USD (read on {self.price.as_of}); the bill charges "
            f"{said:.6f} {where}, {change:+.1%}."
        )


def checked_item_of(usage_type: str) -> str | None:
    """Return the book's row for a usage type, or None for what the book does not price."""
    items = (_metered_item(m, m.usage_type, usage_type) for m in METERS if m.checked)
    return next((item for item in items if item is not None), None)


def far_off(book: PriceBook, rates: Iterable[BilledRate]) -> list[str]:
    """Say which prices of a book differ from a bill's rate by more than a tenth."""
    return [
        f"A list price is far from this bill's: {each.sentence}"
        for each in disagreements(book, rates)
        if each.price is not None
        and abs(each.billed.usd - each.price.usd) > FAR_OFF * each.price.usd
    ]


def disagreements(book: PriceBook, rates: Iterable[BilledRate]) -> list[Disagreement]:
    """Return every row that a bill contradicts or the book lacks, those of most money first."""
    found = list(_disagreeing(book, rates))
    return sorted(found, key=lambda each: (-each.billed.cost, each.item))


def _disagreeing(book: PriceBook, rates: Iterable[BilledRate]) -> Iterator[Disagreement]:
    for rate in rates:
        item = checked_item_of(rate.usage_type)
        if item is None or rate.quantity <= 0 or rate.cost <= 0:
            continue
        price = book.prices.get(item)
        if price is None or abs(rate.usd - price.usd) > TOLERANCE * price.usd:
            yield Disagreement(item, price, rate)


def outdated_prices(book: PriceBook, today: date, days: int = OLD_DAYS) -> list[Price]:
    """Return the prices read longer ago than so many days, the oldest first."""
    aged = [price for price in book.prices.values() if (today - price.as_of).days > days]
    return sorted(aged, key=lambda price: (price.as_of, price.item))


CHUNK = 1 << 16
Wants = Callable[[Product], bool]


def read_quotes(text: IO[str], name: str, wants: Wants) -> Iterator[Quoted]:
    """Yield the prices of the wanted products, on demand and reserved.

    `text` is open at its beginning. Raises InvalidInput for a file that is no offer file.
    """
    try:
        yield from _json_quotes(_Characters(text), name, wants)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput([_no_offer(name)]) from None


def product_quotes(entry: dict[str, Any], today: date) -> Iterator[Quoted]:
    """Yield the prices of one entry of GetProducts' PriceList."""
    product = _product(entry["product"], str(entry.get("serviceCode", "")))
    published = _day(entry.get("publicationDate")) or today
    for kind, terms in (entry.get("terms") or {}).items():
        for term in terms.values():
            yield from _term_quotes(product, kind, term, published)


def _no_offer(name: str) -> str:
    return (
        f"{name} is not an offer file of AWS's price list, or ends early; download index.json of "
        "the service and region again."
    )


def _json_quotes(characters: _Characters, name: str, wants: Wants) -> Iterator[Quoted]:
    facts: dict[str, Any] = {}
    products: dict[str, Product] = {}
    for key in characters.members():
        if key == "products":
            products = dict(_wanted_products(characters, str(facts.get("offerCode", "")), wants))
        elif key == "terms":
            yield from _offer_quotes(characters, products, _day(facts.get("publicationDate")))
        else:
            facts[key] = characters.value()
    if _day(facts.get("publicationDate")) is None:
        raise InvalidInput([_no_offer(name)])


def _wanted_products(
    characters: _Characters, code: str, wants: Wants
) -> Iterator[tuple[str, Product]]:
    for sku in characters.members():
        product = _product(characters.value(), code)
        if wants(product):
            yield sku, product


def _offer_quotes(
    characters: _Characters, products: Mapping[str, Product], published: date | None
) -> Iterator[Quoted]:
    if published is None:
        raise ValueError("no day of publication stands before the terms")
    for kind in characters.members():
        for sku in characters.members():
            terms = characters.value()
            for term in terms.values() if sku in products else ():
                yield from _term_quotes(products[sku], kind, term, published)


def _product(found: dict[str, Any], code: str) -> Product:
    attributes = found["attributes"]
    return Product(
        service=str(attributes.get("servicecode") or code),
        region=str(attributes.get("regionCode", "")),
        usage_type=str(attributes.get("usagetype", "")),
        operation=str(attributes.get("operation", "")),
    )


# GetProducts' words for a term, and its years.
_RESERVED = {("standard", "No Upfront", f"{years}yr"): years for years in COMMITTED_HOURS}


def _term_quotes(
    product: Product, kind: str, term: dict[str, Any], published: date
) -> Iterator[Quoted]:
    words = term.get("termAttributes") or {}
    asked = ("OfferingClass", "PurchaseOption", "LeaseContractLength")
    years = 0 if kind == "OnDemand" else _RESERVED.get(tuple(map(words.get, asked)))
    if years is None:
        return
    for dimension in term["priceDimensions"].values():
        for currency, price in dimension["pricePerUnit"].items():
            yield Quoted(
                product=product,
                currency=str(currency),
                price=str(price),
                begins_at=str(dimension.get("beginRange", "0")),
                published=published,
                years=years,
            )


def _day(written: object) -> date | None:
    try:
        return date.fromisoformat(str(written)[:10])
    except ValueError:
        return None


class _Characters:
    """A JSON document read from its beginning: an object's keys, or one whole value, at a time."""

    def __init__(self, text: IO[str]) -> None:
        self._text, self._read, self._at = text, "", 0
        self._decoder = json.JSONDecoder()

    def members(self) -> Iterator[str]:
        """Yield each key of the object that comes next; whoever asks reads its value in between."""
        self._expect("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            key = self.value()
            self._expect(":")
            yield str(key)
            if self._next() == "}":
                self._at += 1
                return
            self._expect(",")

    def value(self) -> Any:
        """Return the value that comes next."""
        self._next()
        while True:
            try:
                found, end = self._decoder.raw_decode(self._read, self._at)
            except json.JSONDecodeError:
                if not self._more():
                    raise
                continue
            # A number may go on in the next chunk.
            if end < len(self._read) or not self._more():
                self._at = end
                return found

    def _next(self) -> str:
        while True:
            while self._at < len(self._read):
                if not self._read[self._at].isspace():
                    return self._read[self._at]
                self._at += 1
            if not self._more():
                raise ValueError("the document ends early")

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise ValueError(f"{character} is missing")
        self._at += 1

    def _more(self) -> bool:
        # As much again as is waiting: decoding a value anew for each chunk would be quadratic.
        found = self._text.read(max(CHUNK, len(self._read) - self._at))
        self._read, self._at = self._read[self._at :] + found, 0
        return bool(found)
