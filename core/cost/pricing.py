"""The dated, region-keyed price book, and the formulas from usage to AWS's billed quantities.

Prices are data (core/prices.json, or a file of the same shape that the user refreshes), never
constants in code: each row names its source and the day it was read. Money is Decimal throughout.
Beside it what EC2 says of the network and the disks of the types that have a price: what limits a
catch-up, and what a broker without a volume would have (core.ground.instances has what limits a
volume).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from functools import reduce
from importlib import resources
from pathlib import Path

from core.ground.errors import InvalidInput, passed_on

# Read as a resource: on EMR this package is a wheel, not a folder.
NAME = "instance_rates.json"
BYTES_PER_GB = 1000**3
BITS_PER_BYTE = 8
# c7g, i8ge, im4gn: the g after the generation is Graviton.
_GRAVITON = re.compile(r"^[a-z]+\d+g")


@dataclass(frozen=True, slots=True)
class Rates:
    """One instance type; the network's baseline is what it sustains for ever."""

    name: str
    nvme_gb: int  # decimal, as EC2 counts them; 0 for a type without disks
    network_gbps: float

    @property
    def nvme_bytes(self) -> int:
        return self.nvme_gb * BYTES_PER_GB

    @property
    def network_bytes_per_s(self) -> float:
        return self.network_gbps * BYTES_PER_GB / BITS_PER_BYTE

    @property
    def is_graviton(self) -> bool:
        return _GRAVITON.match(self.name) is not None


@functools.cache
def table() -> Mapping[str, Rates]:
    """Return the types this release knows, by name."""
    stored = json.loads((resources.files("core") / NAME).read_text(encoding="utf-8"))
    columns = stored["columns"]
    rows = {name: dict(zip(columns, row, strict=True)) for name, row in stored["types"].items()}
    return {
        name: Rates(name, int(row["nvme_gb"]), row["network_gbps"]) for name, row in rows.items()
    }


SHIPPED = Path(__file__).parents[1] / "prices.json"
# A directory's own price file, beside its Pulumi.yaml; and what it is called in what runs
# elsewhere, the functions' zip and the wheel of the report's job, which bring it along.
OWN = "prices.json"
BROUGHT = SHIPPED.with_name("own_prices.json")
# What every price file is in.
CURRENCY = "USD"

# What every gp3 volume includes; only what is above is billed (EBS pricing).
GP3_INCLUDED_IOPS = 3000
GP3_INCLUDED_MIB_PER_S = 125
SECONDS_PER_HOUR = 3600
# Of a month, as AWS's own calculator and price pages count it.
HOURS_PER_MONTH = 730
BYTES_PER_GIB = 1024**3
# More than Spark's widest decimal (38) summed over any bill can need; Python's own default is 28.
_EXACT = Context(prec=77)

INSTANCE_HOUR = "instance_hour"
# Of a standard reservation without an upfront payment, by its years; no price is shipped.
COMMITTED_HOURS = {1: "instance_hour_1y", 3: "instance_hour_3y"}
# Items that have a price for each instance type.
PER_TYPE = (INSTANCE_HOUR, *COMMITTED_HOURS.values())
ITEMS = (
    *PER_TYPE,
    "gp3_gib_month",
    "gp3_iops_month",
    "gp3_gibps_month",
    "gp2_gib_month",
    "inter_zone_gib",
    "eks_cluster_hour",
    "eks_extended_support_hour",
    "nlb_hour",
    "nlb_lcu_hour",
    "nat_hour",
    "public_ipv4_hour",
    "interface_endpoint_hour",
    "snapshot_gib_month",
    "kms_key_month",
    "log_gib_ingested",
    "log_gib_month",
    # What Stillwater itself uses: core.cluster.own.
    "lambda_arm_gib_second",
    "lambda_request",
    "sqs_request",
    "dynamodb_read_unit",
    "dynamodb_write_unit",
    "alarm_metric_month",
    "metric_month",
    "metric_asked",
    "dashboard_month",
    "secret_month",
    "nat_gib",
)


@dataclass(frozen=True, slots=True)
class Price:
    """One unit price in US dollars, where it was read, and when."""

    item: str
    usd: Decimal
    source: str
    as_of: date


@dataclass(frozen=True, slots=True)
class PriceBook:
    """The prices known of one region, possibly none: a price is an addition, never a condition.

    Items are named `gp3_gib_month`, or `instance_hour:m7i.large`.
    """

    region: str
    name: str
    prices: Mapping[str, Price] = field(default_factory=dict)

    def find(self, item: str) -> Price | None:
        """Return the price of an item; None where nobody knows it."""
        return self.prices.get(item)

    def usd(self, item: str) -> Decimal | None:
        """Return the dollars of an item; None where nobody knows them."""
        found = self.prices.get(item)
        return None if found is None else found.usd

    def price(self, item: str) -> Price:
        """Return the price of an item; raise InvalidInput with the remedy where it is unknown."""
        found = self.prices.get(item)
        if found is None:
            raise InvalidInput([self.unknown([item])])
        return found

    def unknown(self, items: Iterable[str]) -> str:
        """Say of which items nobody knows the price, and the command that fetches it."""
        named = ", ".join(item.replace(":", " of ") for item in dict.fromkeys(items))
        return (
            f"{self.name} has no price for {named} in {self.region}; fetch it with "
            f"`{fetch_command(self.region)}`."
        )

    def beside(self, currency: str) -> PriceBook:
        """Return the prices that may stand beside a bill's: none where its currency is another."""
        return self if currency == CURRENCY else PriceBook(self.region, self.name)

    def instance_hour(self, instance_type: str) -> Price:
        return self.price(f"{INSTANCE_HOUR}:{instance_type}")

    def instance_hour_usd(self, instance_type: str | None) -> Decimal | None:
        """Return the dollars of an instance's hour; None where nobody knows them."""
        return self.usd(f"{INSTANCE_HOUR}:{instance_type}")


def fetch_command(region: str) -> str:
    """Return the command that fetches a region's prices from AWS's price list."""
    return f"stillwater prices fetch --region {region}"


def parse(
    text: str, *, name: str = "The price file", region: str | None = None
) -> dict[str, PriceBook]:
    """Read a price file; return one book per region, or that of `region` alone.

    Raises InvalidInput with one sentence per problem; `name` says whose file it is.
    """
    try:
        document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError as error:
        raise InvalidInput(
            [passed_on(f"{name} is not JSON; correct it there, or copy it again.", error)]
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("regions"), dict):
        raise InvalidInput([f'{name} has no "regions" object; copy the shape of core/prices.json.'])
    if document.get("currency") != "USD":
        raise InvalidInput(
            [f"{name} is in {document.get('currency')!r}; only prices in USD can be read."]
        )
    problems: list[str] = []
    sources = _sources(document.get("sources"), name, problems)
    books = {
        each: PriceBook(each, name, _prices(each, items, sources, name, problems))
        for each, items in document["regions"].items()
        if region in {None, each}
    }
    if problems:
        raise InvalidInput(problems)
    return books


def load(path: Path = SHIPPED, region: str | None = None) -> dict[str, PriceBook]:
    """Read a price file from disk: the shipped one, or the user's own."""
    name = _name_of(path)
    try:
        packed = path in {SHIPPED, BROUGHT}
        text = read_shipped(path.name) if packed else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput([f"{name} cannot be read: {reason}."]) from None
    return parse(text, name=name, region=region)


def _name_of(path: Path) -> str:
    return "The shipped price file" if path == SHIPPED else f"The price file {path}"


def read_shipped(name: str) -> str:
    """Return a file of this package, also out of the wheel that Spark hands to its drivers."""
    return (resources.files("core") / name).read_text(encoding="utf-8")


def book(region: str, path: Path | None = None, *, own: Path | None = None) -> PriceBook:
    """Return what is known of one region, an empty book where that is nothing.

    A file that is named is asked alone. Else these are the shipped prices, under those of a
    directory's own file.
    """
    if path is not None:
        return _book_in(path, region)
    shipped = _book_in(SHIPPED, region)
    if own is None:
        own = BROUGHT if (resources.files("core") / BROUGHT.name).is_file() else None
    over = None if own is None else _book_in(own, region)
    if over is None or not over.prices:
        return shipped
    return PriceBook(region, over.name, {**shipped.prices, **over.prices})


def _book_in(path: Path, region: str) -> PriceBook:
    return load(path, region).get(region) or PriceBook(region, _name_of(path))


def own_file(root: Path) -> Path | None:
    """Return the price file of a directory, if it has one."""
    path = root / OWN
    return path if path.is_file() else None


def _sources(raw: object, name: str, problems: list[str]) -> dict[str, tuple[str, date]]:
    if not isinstance(raw, dict):
        problems.append(f'{name} has no "sources" object; every price must name where it is from.')
        return {}
    sources = {}
    for key, entry in raw.items():
        fields = entry if isinstance(entry, dict) else {}
        try:
            sources[key] = (str(fields["title"]), date.fromisoformat(fields["as_of"]))
        except (KeyError, TypeError, ValueError):
            problems.append(
                f'{name}: source {key} needs a "title" and an "as_of" date such as 2026-07-06.'
            )
    return sources


def _prices(
    region: str,
    items: object,
    sources: Mapping[str, tuple[str, date]],
    name: str,
    problems: list[str],
) -> dict[str, Price]:
    if not isinstance(items, dict):
        problems.append(f"{name}: region {region} must hold an object of prices.")
        return {}
    prices = {}
    for item, entry in items.items():
        where = f"{name}: {region} {item}"
        if item.partition(":")[0] not in ITEMS:
            problems.append(f"{where} is not a known item; known are {', '.join(ITEMS)}.")
            continue
        fields = entry if isinstance(entry, dict) else {}
        source = sources.get(str(fields.get("source")))
        if source is None:
            problems.append(f"{where} names no known source ({fields.get('source')!r}).")
            continue
        for key, raw in _rows(item, fields.get("usd")):
            amount = read_amount(raw)
            if amount is None:
                problems.append(
                    f"{where}: {raw!r} is not a price; write dollars per unit such as 0.08."
                )
            else:
                prices[key] = Price(key, amount, *source)
    return prices


def _rows(item: str, usd: object) -> list[tuple[str, object]]:
    if item in PER_TYPE and isinstance(usd, dict):
        return [(f"{item}:{instance_type}", raw) for instance_type, raw in usd.items()]
    return [(item, usd)]


def read_amount(raw: object) -> Decimal | None:
    """Return dollars as they are written in a price file or list; None for what is none."""
    if not isinstance(raw, str | Decimal):
        return None
    try:
        amount = Decimal(raw)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def billed_iops(iops: int) -> int:
    """Return the provisioned gp3 IOPS that cost money."""
    return max(0, iops - GP3_INCLUDED_IOPS)


def billed_gib_per_s(throughput_mib_per_s: int) -> Decimal:
    """Return the gp3 throughput that costs money, in the bill's unit.

    The description on the bill quotes MiBps, its quantity and its price are per GiBps
    (40.96 = 0.04 x 1024).
    """
    return Decimal(max(0, throughput_mib_per_s - GP3_INCLUDED_MIB_PER_S)) / 1024


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts up exactly, however many digits that takes."""
    return reduce(_EXACT.add, amounts, Decimal(0))


def plain(amount: Decimal) -> Decimal:
    """Return an amount without trailing zeros or an exponent, so that equal amounts print alike."""
    written = f"{amount:f}"
    return Decimal(written.rstrip("0").rstrip(".") if "." in written else written)
