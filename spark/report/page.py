"""Renders a document as one self-contained HTML page, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jinja2

from spark.report import story as stories
from spark.report.document import Document
from spark.report.model import Report, Share
from spark.report.words import decimal_places, dollars, money


def write(report: Report, path: Path) -> Path:
    """Write the page of a bill and return where it is."""
    path.write_text(render(report), encoding="utf-8")
    return path


def render(report: Report) -> str:
    """Return the page of a bill: what it cost, the split, whose it is, what could not be read."""
    return of(stories.of_cost(report))


def of(document: Document) -> str:
    """Return the page of a document."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spark.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template("report.html.j2")
    return template.render(document=document, dollars=dollars)


def as_text(report: Report) -> str:
    """Return the components as a table for a terminal, 78 columns wide at most."""
    places = decimal_places(report.billed)
    rows = [_text_row(share, places) for share in report.components()]
    total = Share("total", report.rows, report.billed, report.amortised, {})
    heading = f"{'component':<20}{'rows':>10}{'billed':>18}{'amortised':>18}"
    lines = [*stories.sentences(report), "", heading, *rows, _text_row(total, places)]
    return "\n".join(lines)


def _text_row(share: Share, places: int) -> str:
    billed, amortised = money(share.billed, places), money(share.amortised, places)
    return f"{share.name:<20}{share.charges:>10,}{billed:>18}{amortised:>18}"


def summary(document: Document) -> Iterator[str]:
    """Yield the story and the things to do as lines for a terminal."""
    total = document.total
    yield f"{document.title}, {document.label}: {total.text} {total.currency}"
    yield from document.badges
    yield from document.story
    for number, action in enumerate(document.actions, 1):
        saves = ""
        if action.usd_per_month:
            most = "at most " if action.at_most else ""
            saves = f" (saves {most}{dollars(action.usd_per_month)} {total.currency} a month)"
        yield f"{number}. {action.title}{saves}: {action.why}."
