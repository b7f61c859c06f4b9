"""`stillwater estimate SPEC`: a cluster's month at list price, as a table or as JSON."""

from __future__ import annotations

import json
from decimal import Decimal

from rich import box
from rich.table import Table

from core.cluster.estimate import Estimate, EstimateLine, Usage, together
from core.cost import pricing

UNKNOWN = "unknown"

NOT_COUNTED = (
    "bytes of clients and nodes through NAT and interface endpoints, EMR Serverless, tax, discounts"
)


def table(estimate: Estimate) -> Table:
    """Return the estimate, a row per line, a sum per component and the total."""
    shown = Table(box=box.SIMPLE_HEAD, show_footer=True, padding=(0, 1, 0, 0))
    shown.add_column("component", footer=f"a month{', at least' if estimate.unpriced else ''}")
    shown.add_column("what")
    for name in ("quantity", "unit", "USD each", "USD"):
        shown.add_column(name, justify="left" if name == "unit" else "right")
    shown.columns[-1].footer = money(estimate.total)
    for component, lines in component_lines(estimate):
        shown.add_row(component, "", "", "", "", money(together(lines)), style="bold")
        for line in lines:
            shown.add_row(
                "", line.what, quantity(line.quantity), line.unit, each(line), money(line.usd)
            )
    return shown


def notes(estimate: Estimate, usage: Usage) -> list[str]:
    """Return what an estimate assumes, leaves out, and how old its prices are."""
    days = estimate.prices_as_of
    priced = "none is known" if days is None else f"read {days[0]} to {days[1]}"
    produced, readers = pricing.plain(usage.produce_mib_per_s), pricing.plain(usage.readers)
    assumed = (
        f"{produced} MiB/s produced, each byte read {readers} x, all through the load balancer, "
        f"volumes {usage.filled:.0%} full"
    )
    return [
        *([estimate.unpriced] if estimate.unpriced else []),
        f"List prices of {estimate.region} in USD, {priced}, for 730 hours.",
        f"Assumed: {assumed}.",
        f"Also assumed: {pricing.plain(usage.log_gib_per_day)} GiB of control plane logs a day.",
        f"Not counted: {NOT_COUNTED}.",
    ]


def as_json(estimate: Estimate, usage: Usage) -> str:
    """Return the estimate for programs; amounts are strings, so that no digit is lost."""
    days = estimate.prices_as_of
    return json.dumps(
        {
            "region": estimate.region,
            "currency": "USD",
            "total": _text(estimate.total),
            "unpriced": estimate.unpriced or None,
            "prices_as_of": (
                None if days is None else {"oldest": str(days[0]), "newest": str(days[1])}
            ),
            "usage": {name: str(getattr(usage, name)) for name in Usage.__slots__},
            "not_counted": NOT_COUNTED,
            "lines": [
                {
                    "component": line.component,
                    "what": line.what,
                    "quantity": f"{pricing.plain(line.quantity)}",
                    "unit": line.unit,
                    "item": line.item,
                    "unit_usd": None if line.price is None else each(line),
                    "usd": _text(line.usd),
                    "source": None if line.price is None else line.price.source,
                    "as_of": None if line.price is None else str(line.price.as_of),
                }
                for line in estimate.lines
            ],
        },
        indent=2,
    )


def component_lines(estimate: Estimate) -> list[tuple[str, list[EstimateLine]]]:
    """Return the lines of each component, in the order of the first of each."""
    found: dict[str, list[EstimateLine]] = {}
    for line in estimate.lines:
        found.setdefault(line.component, []).append(line)
    return list(found.items())


def each(line: EstimateLine) -> str:
    """Return the price of one unit as it is read."""
    return UNKNOWN if line.price is None else f"{pricing.plain(line.price.usd):f}"


def money(usd: Decimal | None) -> str:
    return UNKNOWN if usd is None else f"{usd:,.2f}"


def _text(usd: Decimal | None) -> str | None:
    return None if usd is None else str(usd)


def quantity(number: Decimal) -> str:
    """Return a quantity as a bill shows it: thousands apart, at most three decimals."""
    return f"{pricing.plain(round(number, 3)):,f}"
