"""Holds a report's parts in the order of reading, without their looks, and builds its tables.

Sections are made from tables (spark/report/sections), the page, the text, the message and the JSON
document from this (spark/report/formats): every format says the same. What is said whatever a bill
holds stands in texts.toml. Figures are written as they are read, each with its unit: money, shares,
times, sizes, rates.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from importlib import resources
from typing import Any, TypeVar

from core.cost.pricing import plain

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
KIB = 1024
# Places of the currencies whose smallest unit is no hundredth (ISO 4217).
PLACES = {
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG"), 0),
    **dict.fromkeys(("RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
}


def smallest_places(currency: str) -> int:
    """Return how many places a currency's smallest unit takes: two, where nothing else is known."""
    return PLACES.get(currency, 2)


def decimal_places(total: Decimal, currency: str) -> int:
    """Return how many places show a bill of this size: cents, or less for a bill of cents."""
    smallest = smallest_places(currency)
    if abs(total) >= 100:
        return smallest
    return smallest + (2 if abs(total) >= 1 else 4)


def cents(amount: Decimal, currency: str) -> str:
    """Return an amount as money is read: in cents, or in two digits of what is less than one.

    What cents are is the currency's to say: there is nothing below a yen, and fils are thousandths.
    """
    size, smallest = abs(amount), smallest_places(currency)
    if not size or size >= Decimal(1).scaleb(-smallest):
        return money(amount, smallest)
    return money(amount, 1 - size.adjusted())


def money(amount: Decimal, places: int) -> str:
    """Return an amount for reading, rounded half to even; a real minus for what is given back."""
    if not amount:
        return "0"
    rounded = amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
    sign = MINUS if rounded < 0 else ""
    return f"{sign}{abs(rounded):,f}"


def dollars(amount: Decimal, currency: str) -> str:
    """Return an amount where its currency is named beside it: whole units from a hundred on."""
    # Two digits of what is less than a cent: a twin's bill is all of that size.
    return money(amount, 0) if abs(amount) >= 100 else cents(amount, currency)


def percent(amount: Decimal, of: Decimal) -> str:
    """Return a share; what is given back as a whole has no shares."""
    return f"{amount / of:.1%}".replace("-", MINUS) if of > 0 else DASH


def share(value: float | None) -> str:
    return DASH if value is None else f"{value:.0%}".replace("-", MINUS)


def change(after: Decimal, before: Decimal) -> str:
    """Return a change with its sign; from what was given back there is none in percent."""
    if before < 0:
        return DASH
    if not before:
        return "new" if after else DASH
    return f"{(after - before) / before:+.1%}".replace("-", MINUS)


def duration(seconds: float | None) -> str:
    """Return a time in the unit a person would use: 53 s, 6 min 12 s, 12.7 h."""
    if seconds is None:
        return DASH
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if seconds < 72 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"


def size(size_bytes: float | None) -> str:
    """Return a number of bytes in binary units, three digits of it."""
    if size_bytes is None:
        return DASH
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < KIB or unit == "TiB":
            break
        value /= KIB
    digits = 0 if unit == "B" or abs(value) >= 100 else 1
    return f"{value:,.{digits}f} {unit}".replace("-", MINUS)


def rate(bytes_per_s: float | None) -> str:
    return DASH if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def most(is_most: bool) -> str:  # noqa: FBT001 - a word, left out or not
    return "at most " if is_most else ""


def enumeration(things: list[str]) -> str:
    return (
        " and ".join([", ".join(things[:-1]), things[-1]]) if len(things) > 1 else "".join(things)
    )


def sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]


T = TypeVar("T")
TEXTS = tomllib.loads((resources.files(__package__) / "texts.toml").read_text(encoding="utf-8"))
# What moves a terminal's cursor, ends a line, or turns what follows around: a bill's tags are
# somebody else's words.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
# A tag of AWS's has 128 characters and a value of 256; what is longer drowns what is around it.
_LONG = re.compile(r"(\S{400})\S{100,}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what is read, and the exact value it stands for, by which it sorts."""

    text: str
    value: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `wide` ones are left out where there is no room."""

    title: str
    unit: str = ""
    is_text: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row, which others may point at by its key."""

    cells: tuple[Cell, ...]
    key: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table that sorts; `left_out` rows are in the table on disk alone."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    foot: tuple[Cell, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with its legend: labels, each with the page's name for its colour."""

    svg: str
    legend: tuple[tuple[str, str], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Evidence: what was found, drawn and listed, and how it was computed."""

    key: str
    title: str
    sentences: tuple[str, ...]
    plots: tuple[Plot, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    method: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do: what it saves a month, what it costs once, and the rows that say so."""

    title: str
    why: str
    how: str
    evidence: str  # a section's or a row's key
    usd_per_month: Decimal | None = None
    # Whether it may be less: somebody has to look first.
    at_most: bool = False
    # Of several ways to save the same money only one can be gone: what it excludes, by a name.
    way: str = ""
    usd_once: Decimal | None = None
    # Whether it is about Kafka's money, and not about everybody else's.
    is_kafkas: bool = True


@dataclass(frozen=True, slots=True)
class Total:
    """The figure on top, and what it is compared with."""

    text: str  # the headline's, rounded
    exact: str  # the whole bill's, to the last digit
    currency: str
    against: str = ""
    kafka: str = ""  # what of it is Kafka's; nothing where no line is known to be

    @property
    def headline(self) -> str:
        """Return what `text` rounds: Kafka's own where there is any, else the whole bill's."""
        return self.kafka or self.exact


@dataclass(frozen=True, slots=True)
class Document:
    """One report."""

    title: str
    label: str
    today: str
    total: Total
    badges: tuple[str, ...]
    story: tuple[str, ...]
    actions: tuple[Action, ...]
    sections: tuple[Section, ...]

    def section(self, key: str) -> Section | None:
        return next((section for section in self.sections if section.key == key), None)


def told(
    key: str,
    sentences: Iterable[str],
    tables: Iterable[ReportTable] = (),
    plots: Iterable[Plot] = (),
) -> Section:
    """Return a section under its title, with its method."""
    texts = TEXTS["sections"][key]
    method = " ".join(texts.get("method", ()))
    return Section(key, texts["title"], tuple(sentences), tuple(plots), tuple(tables), method)


def table(
    name: str,
    currency: str,
    rows: Sequence[T],
    cells: Callable[[T], tuple[Cell, ...]],
    *,
    key: Callable[[T], str] = lambda _: "",
    foot: tuple[Cell, ...] = (),
    most: int | None = None,
) -> ReportTable:
    """Return a table of rows under the columns of its name; those after `most` are left out."""
    texts = TEXTS["tables"][name]
    listed = tuple(Row(cells(row), key(row)) for row in rows[:most])
    return ReportTable(
        texts.get("title", ""),
        tuple(_column(*column, currency=currency) for column in texts["columns"]),
        listed,
        foot,
        len(rows) - len(listed),
    )


def _column(title: str, *more: str, currency: str) -> Column:
    unit = "".join(word for word in more if word not in {"text", "wide"}).format(currency)
    return Column(title, unit, "text" in more, "wide" in more)


def exact(amount: Decimal) -> str:
    return f"{plain(amount):f}"


def billed(amount: Decimal, places: int) -> Cell:
    """Return an amount that stands among others of as many places."""
    return Cell(money(amount, places), exact(amount))


def paid(amount: Decimal | None, currency: str) -> Cell:
    """Return an amount for itself: whole units from a hundred on; a dash where none is known."""
    return Cell(DASH) if amount is None else Cell(dollars(amount, currency), exact(amount))


def part(amount: Decimal, of: Decimal) -> Cell:
    """Return what share an amount is of another; it sorts by the amount."""
    return Cell(percent(amount, of), exact(amount))


def figure(said: str, value: float | None, note: str = "") -> Cell:
    """Return a measured value in words; one that is not known sorts apart."""
    return Cell(said, None if value is None else f"{value}", note)


def slug(kind: str, name: str) -> str:
    """Return a key that an address may end with."""
    words = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
    return f"{kind}-{words.strip('-')}"


def legible(document: Document) -> Document:
    """Return the document with a blank for every character that is not seen, long words cut."""
    made: Document = _legible(document)
    return made


def _legible(part: Any) -> Any:
    if isinstance(part, str):
        return _LONG.sub("\\1\N{HORIZONTAL ELLIPSIS}", _UNSEEN.sub(" ", part))
    if isinstance(part, tuple):
        return tuple(map(_legible, part))
    # A drawing is ours, and breaks its own lines.
    if not is_dataclass(part) or isinstance(part, type | Plot):
        return part
    return replace(part, **{each.name: _legible(getattr(part, each.name)) for each in fields(part)})
