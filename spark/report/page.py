"""Renders a document as one self-contained HTML page, and its story as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import jinja2

from spark.report import story as stories
from spark.report.document import Document
from spark.report.model import Report
from spark.report.words import dollars


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
            amount = dollars(action.usd_per_month, total.currency)
            saves = f" (saves {most}{amount} {total.currency} a month)"
        yield f"{number}. {action.title}{saves}: {action.why}."
