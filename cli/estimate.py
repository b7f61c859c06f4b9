"""`stillwater estimate SPEC`: a cluster's month at list price, as a table, as JSON or as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from html import escape
from importlib.resources import files
from string import Template

from rich import box
from rich.table import Table

from core.cluster.estimate import Answer, Estimate, EstimateLine, Usage, together
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


def answers_table(answers: Sequence[Answer], total: Decimal | None) -> Table:
    """Return what people ask of an estimate, with the change to the month."""
    shown = Table("question", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("USD a month", "change"):
        shown.add_column(name, justify="right")
    for each in answers:
        shown.add_row(each.question, money(each.usd), _change(each, total))
    return shown


def _change(answer: Answer, total: Decimal | None) -> str:
    if answer.usd is None or total is None or not answer.question.startswith("if "):
        return ""
    return f"{answer.usd - total:+,.2f}"


def compared(names: Sequence[str], estimates: Sequence[Estimate]) -> Table:
    """Return two estimates side by side, a row per component."""
    shown = Table(box=box.SIMPLE_HEAD, show_footer=True, padding=(0, 1, 0, 0))
    shown.add_column("component", "a month")
    totals = [money(each.total) for each in estimates]
    for name, footer in zip((*names, "difference"), (*totals, _difference(estimates)), strict=True):
        shown.add_column(name, footer, justify="right")
    for component, parts in _side_by_side(estimates):
        shown.add_row(component, *(money(each.total) for each in parts), _difference(parts))
    return shown


def _side_by_side(estimates: Sequence[Estimate]) -> list[tuple[str, list[Estimate]]]:
    """Return each component, and its part of each estimate."""
    found = [dict(component_lines(each)) for each in estimates]
    return [
        (name, [Estimate(name, tuple(each.get(name, ()))) for each in found])
        for name in dict.fromkeys(name for each in found for name in each)
    ]


def _difference(estimates: Sequence[Estimate]) -> str:
    """Return by how much the second costs more; unknown where a line has no price."""
    if any(line.usd is None for each in estimates for line in each.lines):
        return UNKNOWN
    one, other = (each.total or Decimal(0) for each in estimates)
    return f"{other - one:+,.2f}"


def page(
    names: Sequence[str], estimates: Sequence[Estimate], answers: Sequence[Answer], usage: Usage
) -> str:
    """Return one or two estimates as a page that loads nothing: bars by component, then lines."""
    sums = [
        f"<i></i>{escape(name)}: <b>{money(each.total)} USD</b>. {escape(each.unpriced)}"
        for name, each in zip(names, estimates, strict=True)
    ]
    rows = [
        (component, [each.total for each in parts]) for component, parts in _side_by_side(estimates)
    ]
    most = max((usd for _, each in rows for usd in each if usd is not None), default=Decimal(0))
    bars = (
        f"<tr><td>{escape(component)}</td><td>{''.join(_bar(usd, most) for usd in each)}</td>"
        f'<td class="usd">{"<br>".join(map(money, each))}</td></tr>'
        for component, each in rows
    )
    template = Template((files("cli") / "estimate.html").read_text("utf-8"))
    total = estimates[0].total
    return template.substitute(
        title=escape(" and ".join(names)),
        name=escape(names[0]),
        sums="<br>".join(sums),
        notes="<br>".join(map(escape, all_notes(estimates, usage))),
        bars="\n".join(bars),
        answers="\n".join(
            f'<tr><td>{escape(each.question)}</td><td class="usd">{money(each.usd)}</td>'
            f'<td class="usd">{_change(each, total)}</td></tr>'
            for each in answers
        ),
        lines="\n".join(map(_lines_section, names, estimates)),
    )


def _bar(usd: Decimal | None, most: Decimal) -> str:
    return f'<i style="width: {(usd or 0) / (most or 1):.1%}"></i>'


def _lines_section(name: str, estimate: Estimate) -> str:
    rows = (
        f"<tr><td>{escape(component)}</td><td>{escape(line.what)}</td>"
        f'<td class="usd">{quantity(line.quantity)}</td><td>{escape(line.unit)}</td>'
        f'<td class="usd">{each(line)}</td><td class="usd">{money(line.usd)}</td></tr>'
        for component, lines in component_lines(estimate)
        for line in lines
    )
    return f"<h2>{escape(name)}, line by line</h2>\n<table>\n{chr(10).join(rows)}\n</table>"


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


def all_notes(estimates: Sequence[Estimate], usage: Usage) -> list[str]:
    """Return the notes of every estimate, each once."""
    return list(dict.fromkeys(note for each in estimates for note in notes(each, usage)))


def as_json(estimates: Sequence[Estimate], answers: Sequence[Answer], usage: Usage) -> str:
    """Return an estimate for programs, and the one it is compared with.

    Amounts are strings, so that no digit is lost.
    """
    return json.dumps(
        {
            **_document(estimates[0]),
            "usage": {name: str(getattr(usage, name)) for name in Usage.__slots__},
            "answers": {each.name: _text(each.usd) for each in answers},
            "not_counted": NOT_COUNTED,
            "compared": None if len(estimates) == 1 else _document(estimates[1]),
        },
        indent=2,
    )


def _document(estimate: Estimate) -> dict[str, object]:
    days = estimate.prices_as_of
    return {
        "region": estimate.region,
        "currency": "USD",
        "total": _text(estimate.total),
        "unpriced": estimate.unpriced or None,
        "prices_as_of": (
            None if days is None else {"oldest": str(days[0]), "newest": str(days[1])}
        ),
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
    }


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
