"""`stillwater prices check`: how old the price book is, and which rows a bill contradicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console

from core.cost import price_list
from core.cost.price_list import Disagreement
from core.cost.pricing import Price, PriceBook
from core.errors import InvalidInput


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
        return bool(self.aged or self.disagreements)


def examine(book: PriceBook, tables: Path | None, today: date, old_days: int) -> CheckedPrices:
    """Hold a book against the calendar, and against the bill that a report left."""
    disagreeing = None
    if tables is not None:
        disagreeing = price_list.disagreements(book, _billed_rates(tables))
    return CheckedPrices(
        book, today, old_days, price_list.outdated_prices(book, today, old_days), disagreeing
    )


def show(checked: CheckedPrices, console: Console) -> None:
    """Print what is wrong with a book."""
    book, by_day = checked.book, Counter(price.as_of for price in checked.aged)
    _say(console, f"{book.name}, {book.region}: {len(book.prices)} prices.")
    for day, number in sorted(by_day.items()):
        sources = sorted({price.source for price in checked.aged if price.as_of == day})
        _say(
            console,
            f"{number} read on {day}, {(checked.today - day).days} days ago: {'; '.join(sources)}.",
            style="yellow",
        )
    if not checked.aged:
        _say(console, f"None was read more than {checked.old_days} days ago.")
    for each in checked.disagreements or ():
        _say(console, each.sentence, style="yellow")
    if checked.disagreements is not None and not checked.disagreements:
        _say(console, "No price that the bill shows disagrees with it.")


def as_json(checked: CheckedPrices) -> Mapping[str, object]:
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
