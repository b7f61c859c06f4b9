"""Renders a document as one self-contained HTML page."""

from __future__ import annotations

import jinja2

from spark.report.document import Document
from spark.report.words import dollars


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
