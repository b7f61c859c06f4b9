"""Makes the cells of a report's tables: what is read, and the exact value that it sorts by."""

from __future__ import annotations

from decimal import Decimal

from core.cost.pricing import plain
from spark.report.document import Cell
from spark.report.words import DASH, dollars, money, percent


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


def number(value: int) -> Cell:
    return figure(f"{value:,}", value)


def figure(said: str, value: float | None, note: str = "") -> Cell:
    """Return a measured value in words; one that is not known sorts apart."""
    return Cell(said, None if value is None else f"{value}", note)


def slug(kind: str, name: str) -> str:
    """Return a key that an address may end with."""
    words = "".join(letter if letter.isalnum() else "-" for letter in name.lower())
    return f"{kind}-{words.strip('-')}"
