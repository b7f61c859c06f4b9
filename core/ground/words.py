"""Says a duration, a moment or many names in the words every page, message and reason uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


def span(seconds: float) -> str:
    """Return a duration in the two largest units that matter: 1 h 5 min, 2 min 3 s, 4 s."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (secs, "s")]
    first = next((place for place, (count, _) in enumerate(units) if count), len(units) - 1)
    said = [f"{count} {unit}" for count, unit in units[first : first + 2] if count]
    return " ".join(said) or "0 s"


def time_said(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"


def listing(names: Sequence[str], most: int = 5) -> str:
    """Return names, of many the first few: a, b, c and 12 more."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def id_list(node_ids: Iterable[int]) -> str:
    """Return ids as a sentence names them, `none` where there is none."""
    return ", ".join(str(n) for n in node_ids) or "none"
