"""Figures as they are read: money, shares, times, sizes, rates, each with its unit."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

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
