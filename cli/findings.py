"""Shows findings to people, the same way whichever command found them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from core.checks.finding import Finding, Weight

STYLES = {
    Weight.REFUSED: "red",
    Weight.BROKER: "red",
    Weight.PRODUCER: "red",
    Weight.EXPOSED: "yellow",
    Weight.DRIFT: "red",
    Weight.UNKNOWN: "yellow",
    Weight.ADVICE: "",
}


def show_findings(found: Sequence[Finding], console: Console) -> None:
    """Print each finding with its evidence and remedy on a line of its own, to be copied."""
    for each in found:
        console.print(Text(each.line, STYLES[each.weight]), soft_wrap=True)


def counted(found: Sequence[Finding]) -> str:
    """Return how many findings there are of each weight: 2 x a broker may die, 1 x unknown."""
    counts = {weight: sum(each.weight is weight for each in found) for weight in Weight}
    return ", ".join(f"{count} x {weight}" for weight, count in counts.items() if count)
