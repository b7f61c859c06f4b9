"""Reads an offer file of AWS's price list, JSON or CSV, into quoted prices in bounded memory.

EC2's file of one region is hundreds of MB: a JSON file is decoded one product and one term at a
time, and what is remembered is the products that somebody wants; a CSV file has both on one line.
Source: AWS Billing user guide, "Reading the service price list file for an AWS service".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import IO, Any

from core.cost.price_list import Product, Quoted
from core.errors import InvalidInput

CHUNK = 1 << 16
# Lines of facts about the file before a CSV's header.
CSV_FACTS = 5
Wants = Callable[[Product], bool]


def read_quotes(text: IO[str], name: str, wants: Wants) -> Iterator[Quoted]:
    """Yield the on-demand prices of the products somebody wants.

    `text` is open at its beginning. Raises InvalidInput for a file that is no offer file.
    """
    first = text.read(1).lstrip("\ufeff")
    while first.isspace():
        first = text.read(1)
    if first == "{":
        try:
            yield from _of_json(_Characters(text, first), name, wants)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput([_no_offer(name)]) from None
        return
    yield from _of_csv(text, first, name, wants)


def of_product(entry: dict[str, Any], today: date) -> Iterator[Quoted]:
    """Yield the prices of one entry of GetProducts' PriceList."""
    product = _product(entry["product"], str(entry.get("serviceCode", "")))
    published = _day(entry.get("publicationDate")) or today
    for term in (entry.get("terms") or {}).get("OnDemand", {}).values():
        yield from _of_term(product, term, published)


def _no_offer(name: str) -> str:
    return (
        f"{name} is no offer file of AWS's price list, or ends early; download index.json or "
        f"index.csv of the service and region again."
    )


def _of_json(characters: _Characters, name: str, wants: Wants) -> Iterator[Quoted]:
    facts: dict[str, Any] = {}
    products: dict[str, Product] = {}
    for key in characters.members():
        if key == "products":
            products = dict(_wanted_products(characters, str(facts.get("offerCode", "")), wants))
        elif key == "terms":
            yield from _of_terms(characters, products, _day(facts.get("publicationDate")))
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


def _of_terms(
    characters: _Characters, products: Mapping[str, Product], published: date | None
) -> Iterator[Quoted]:
    if published is None:
        raise ValueError("no day of publication stands before the terms")
    for kind in characters.members():
        for sku in characters.members():
            terms = characters.value()
            if kind == "OnDemand" and sku in products:
                for term in terms.values():
                    yield from _of_term(products[sku], term, published)


def _product(found: dict[str, Any], code: str) -> Product:
    attributes = found["attributes"]
    return Product(
        service=str(attributes.get("servicecode") or code),
        region=str(attributes.get("regionCode", "")),
        usage_type=str(attributes.get("usagetype", "")),
        operation=str(attributes.get("operation", "")),
    )


def _of_term(product: Product, term: dict[str, Any], published: date) -> Iterator[Quoted]:
    for dimension in term["priceDimensions"].values():
        for currency, price in dimension["pricePerUnit"].items():
            yield Quoted(
                product=product,
                currency=str(currency),
                price=str(price),
                begins_at=str(dimension.get("beginRange", "0")),
                published=published,
            )


def _of_csv(text: IO[str], first: str, name: str, wants: Wants) -> Iterator[Quoted]:
    rows = csv.reader(_from(first, text))
    facts: dict[str, str] = {}
    try:
        for _ in range(CSV_FACTS):
            row = next(rows)
            facts[row[0]] = row[1]
        header = next(rows)
    except (StopIteration, IndexError, csv.Error):
        raise InvalidInput([_no_offer(name)]) from None
    published = _day(facts.get("Publication Date"))
    needed = {"TermType", "PricePerUnit", "Currency", "usageType", "operation"}
    if published is None or not needed <= set(header):
        raise InvalidInput([_no_offer(name)])
    try:
        for row in rows:
            found = dict(zip(header, row, strict=False))
            if found.get("TermType") != "OnDemand":
                continue
            product = Product(
                service=found.get("serviceCode") or facts.get("OfferCode", ""),
                region=found.get("Region Code", ""),
                usage_type=found.get("usageType", ""),
                operation=found.get("operation", ""),
            )
            if wants(product):
                yield Quoted(
                    product=product,
                    currency=found.get("Currency", ""),
                    price=found.get("PricePerUnit", ""),
                    begins_at=found.get("StartingRange") or "0",
                    published=published,
                )
    except csv.Error:
        raise InvalidInput([_no_offer(name)]) from None


def _from(first: str, text: IO[str]) -> Iterator[str]:
    yield first + text.readline()
    yield from text


def _day(written: object) -> date | None:
    try:
        return date.fromisoformat(str(written)[:10])
    except ValueError:
        return None


class _Characters:
    """A JSON document read from its beginning: an object's keys, or one whole value, at a time."""

    def __init__(self, text: IO[str], read: str) -> None:
        self._text, self._read, self._at = text, read, 0
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
