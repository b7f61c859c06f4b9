"""Runs `stillwater prices`: how old the book is, what a bill contradicts, and AWS's list prices.

`fetch` asks GetProducts, which needs `pricing:GetProducts` and no other right, at the one endpoint
that serves every commercial region; or reads offer files.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from cli import aws
from cli.stack_settings import find
from cli.terminal import say
from core.cost import price_list, pricing
from core.cost.price_list import METERS, Disagreement, Gathered, Quoted
from core.cost.pricing import INSTANCE_HOUR, Price, PriceBook
from core.ground import instances
from core.ground.errors import InvalidInput, StillwaterError, one_line
from handlers.adapters.calls import NO_ANSWER

# The Price List Query API is served from few regions and answers for all.
ENDPOINT_REGION = "us-east-1"
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class CheckedPrices:
    """A book, its rows that were read long ago, and those that a bill contradicts."""

    book: PriceBook
    today: date
    old_days: int
    aged: Sequence[Price]
    disagreements: Sequence[Disagreement] | None  # None: no bill was named

    @property
    def doubtful(self) -> bool:
        return bool(self.aged or self.disagreements or not self.book.prices)


def check(book: PriceBook, tables: Path | None, today: date, old_days: int) -> CheckedPrices:
    """Hold a book against the calendar, and against the bill that a report left."""
    disagreeing = None
    if tables is not None:
        disagreeing = price_list.disagreements(book, _billed_rates(tables))
    return CheckedPrices(
        book, today, old_days, price_list.outdated_prices(book, today, old_days), disagreeing
    )


def show_checked(checked: CheckedPrices, console: Console) -> None:
    """Print what is wrong with a book."""
    book, by_day = checked.book, Counter(price.as_of for price in checked.aged)
    say(console, f"{book.name}, {book.region}: {len(book.prices)} prices.")
    for day, number in sorted(by_day.items()):
        sources = sorted({price.source for price in checked.aged if price.as_of == day})
        say(
            console,
            f"{number} read on {day}, {(checked.today - day).days} days ago: {'; '.join(sources)}.",
            style="yellow",
        )
    if not book.prices:
        say(console, f"`{pricing.fetch_command(book.region)}` fetches them.", style="yellow")
    elif not checked.aged:
        say(console, f"None was read more than {checked.old_days} days ago.")
    for each in checked.disagreements or ():
        say(console, each.sentence, style="yellow")
    if checked.disagreements is not None and not checked.disagreements:
        say(console, "No price that the bill shows disagrees with it.")


def checked_as_json(checked: CheckedPrices) -> Mapping[str, object]:
    """Return the same as one object; amounts are strings, so that no digit is lost."""
    disagreements = checked.disagreements
    return {
        "book": checked.book.name,
        "region": checked.book.region,
        "prices": len(checked.book.prices),
        "old_after_days": checked.old_days,
        "old": [
            {
                "item": price.item,
                "usd": f"{price.usd:f}",
                "as_of": str(price.as_of),
                "days": (checked.today - price.as_of).days,
                "source": price.source,
            }
            for price in checked.aged
        ],
        "disagreements": None
        if disagreements is None
        else [
            {
                "item": each.item,
                "usd": None if each.price is None else f"{each.price.usd:f}",
                "as_of": None if each.price is None else str(each.price.as_of),
                "billed_usd": f"{each.billed.usd:f}",
                "billed_quantity": f"{each.billed.quantity:f}",
                "usage_type": each.billed.usage_type,
            }
            for each in disagreements
        ],
    }


def _billed_rates(root: Path) -> list[price_list.BilledRate]:
    """Return the rates of the usage table that a report left."""
    from spark import tables  # noqa: PLC0415 - `prices check` alone needs its imports
    from spark.transforms.economics import billed_rates  # noqa: PLC0415

    if not (root / tables.USAGE.name).is_dir():
        problem = (
            f"{root} holds no table {tables.USAGE.name}; name the folder of a report's tables."
        )
        raise InvalidInput([problem])
    return billed_rates(tables.ParquetStore(str(root.resolve())).rows(tables.USAGE))


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was found of a region, and where it was written."""

    gathered: Gathered
    output: Path


def own_price_file() -> Path:
    """Return the price file of the project one stands in; raise InvalidInput where there is none.

    What an installed package ships is replaced by its next release, and belongs to nobody.
    """
    try:
        return find().prices
    except InvalidInput as error:
        said = str(error).rstrip(".")
        raise InvalidInput([f"{said}; or name the file to write with --output."]) from None


def fetch(
    region: str, files: Sequence[Path], output: Path, console: Console, client: Any = None
) -> Fetched:
    """Fetch a region's prices into a price file; return what was found and what was not."""
    known = instances.table().types
    gathered = Gathered(region, lambda name: name in known)
    today = datetime.now(UTC).date()
    if files:
        for path in files:
            _gather(gathered, _file_quotes(path, gathered))
        title = f"AWS Price List, offer files of {region}: {', '.join(p.name for p in files)}"
    else:
        with console.status(f"Asking AWS's price list for {region}") as status:
            _gather(gathered, _aws_quotes(client, gathered, today, status.update))
        title = f"AWS Price List of {region}, GetProducts"
    if problems := gathered.problems():
        raise InvalidInput(problems)
    before = _stored_prices(output)
    made = price_list.document(gathered, before, title)
    text = json.dumps(made, indent=2) + "\n"
    # Whatever was written by hand beside it is held to the same rules as when it is read.
    pricing.parse(text, name=f"The price file {output}")
    output.write_text(text, encoding="utf-8")
    return Fetched(gathered, output)


def fetched_as_json(done: Fetched) -> Mapping[str, object]:
    """Return the same as one object."""
    gathered = done.gathered
    return {
        "region": gathered.region,
        "file": str(done.output),
        "prices": {
            item: {"usd": f"{usd:f}", "as_of": str(day)}
            for item, (usd, day) in sorted(gathered.believed.items())
        },
        "contradicted": {
            item: sorted(f"{usd:f}" for usd in prices)
            for item, prices in sorted(gathered.contradicted.items())
        },
        "missing": list(gathered.missing),
    }


def fetched_sentences(done: Fetched) -> list[str]:
    """Return what was found, what contradicts itself, and what is missing."""
    gathered, output = done.gathered, done.output
    types = sum(item.startswith(f"{INSTANCE_HOUR}:") for item in gathered.believed)
    counted = f"{len(gathered.believed)} prices of {gathered.region}"
    said = [f"{counted}, {types} of them instance types, are in {output}."]
    said += [
        f"{item} was quoted as {' and '.join(sorted(map(str, prices)))} USD: neither is taken."
        for item, prices in sorted(gathered.contradicted.items())
    ]
    if gathered.missing:
        said.append(
            f"Not found: {', '.join(gathered.missing)}; their dollars stay unknown, or as they "
            f"were."
        )
    return said


def _gather(gathered: Gathered, found: Iterable[Quoted]) -> None:
    for quoted in found:
        gathered.add(quoted)


def _file_quotes(path: Path, gathered: Gathered) -> Iterator[Quoted]:
    try:
        with path.open("rb") as raw:
            zipped = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            # mypy knows no common type of the two.
            binary: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
            with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
                yield from price_list.read_quotes(text, f"The file {path}", gathered.wants)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text, or ends early"
        raise InvalidInput([f"The offer file {path} cannot be read: {reason}."]) from None


def _aws_quotes(client: Any, gathered: Gathered, today: date, show: Any) -> Iterator[Quoted]:
    try:
        pricing_api = client or aws.session(region=ENDPOINT_REGION).client("pricing")
        for service in price_list.SERVICES:
            show(f"Asking AWS's price list for {service} in {gathered.region}")
            for filters in _filters(service, gathered.region):
                pages = pricing_api.get_paginator("get_products").paginate(
                    ServiceCode=service, FormatVersion="aws_v1", Filters=filters
                )
                for page in pages:
                    for entry in page["PriceList"]:
                        for quoted in price_list.product_quotes(json.loads(entry), today):
                            if gathered.wants(quoted.product):
                                yield quoted
    except NO_ANSWER as error:
        raise StillwaterError(
            f"AWS's price list does not answer ({one_line(error)}); the call needs "
            f"pricing:GetProducts. Without an account: download index.json of a service and "
            f"region, and name it with --from."
        ) from None


def _filters(service: str, region: str) -> list[list[dict[str, str]]]:
    """Return one set of filters per question: EC2's products are too many to be read whole."""
    here = _is("regionCode", region)
    if service != "AmazonEC2":
        return [[here]]
    operations = {meter.operation for meter in METERS if meter.item == INSTANCE_HOUR}
    return [
        [
            here,
            _is("tenancy", "Shared"),
            _is("capacitystatus", "Used"),
            *(_is("operation", operation) for operation in operations if operation),
        ],
        *(
            [here, _is("productFamily", family)]
            for family in (
                "Storage",
                "System Operation",
                "Provisioned Throughput",
                "Storage Snapshot",
                "NAT Gateway",
            )
        ),
    ]


def _is(field: str, value: str) -> dict[str, str]:
    return {"Type": "TERM_MATCH", "Field": field, "Value": value}


def _stored_prices(output: Path) -> dict[str, Any]:
    if not output.is_file():
        return {}
    pricing.load(output)
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found
