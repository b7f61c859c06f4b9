"""`stillwater prices check`: how old the price book is, and which rows a bill contradicts."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

from rich.console import Console

from core.cost import price_check, pricing
from core.cost.pricing import PriceBook
from core.errors import InvalidInput


def checked(
    book: PriceBook, tables: Path | None, console: Console, *, today: date, old_days: int
) -> bool:
    """Print what is wrong with a book; return whether anything is."""
    aged = price_check.old(book, today, old_days)
    by_day = Counter(price.as_of for price in aged)
    _say(console, f"{book.name}, {book.region}: {len(book.prices)} prices.")
    for day, number in sorted(by_day.items()):
        sources = sorted({price.source for price in aged if price.as_of == day})
        _say(
            console,
            f"{number} read on {day}, {(today - day).days} days ago: {'; '.join(sources)}.",
            style="yellow",
        )
    if not aged:
        _say(console, f"None was read more than {old_days} days ago.")
    if tables is None:
        return bool(aged)
    found = price_check.disagreements(book, _billed_rates(tables))
    for each in found:
        _say(console, each.sentence, style="yellow")
    if not found:
        _say(console, "No price that the bill shows disagrees with it.")
    return bool(aged or found)


def _billed_rates(root: Path) -> list[price_check.BilledRate]:
    """Return the rates of the usage table that a report left."""
    from cli import class_record  # noqa: PLC0415 - `prices check` alone starts no JVM
    from spark import tables  # noqa: PLC0415 - `prices check` alone starts no JVM
    from spark.session import local_session  # noqa: PLC0415
    from spark.transforms.rates import billed_rates  # noqa: PLC0415

    if not (root / tables.USAGE.name).is_dir():
        problem = (
            f"{root} holds no table {tables.USAGE.name}; name the folder of a report's tables."
        )
        raise InvalidInput([problem])
    with local_session(settings=class_record.settings()) as session:
        store = tables.ParquetStore(session, str(root.resolve()))
        return billed_rates(store.read(tables.USAGE))


def _say(console: Console, sentence: str, style: str | None = None) -> None:
    console.print(sentence, style=style, markup=False, highlight=False, soft_wrap=True)


def book_of(region: str, path: Path | None) -> PriceBook:
    return pricing.book(region, path or pricing.SHIPPED)
