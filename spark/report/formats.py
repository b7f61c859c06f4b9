"""The same report as a page, JSON, Markdown, a message for Slack, and lines for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from enum import StrEnum

import jinja2

from spark.report.document import Action, Document, ReportTable, Section, dollars, exact, most

# A Slack section holds 3,000 characters; a message 50 blocks.
SLACK_TEXT = 2900
NO_ACTION = "The report has no action this month."
_UNSAFE = re.compile(r"([\\`*_{}\[\]<>|#])")


class Format(StrEnum):
    """How a report is written."""

    HTML = "html"
    JSON = "json"
    MD = "md"
    SLACK = "slack"

    @property
    def file_name(self) -> str:
        return {"html": "index.html", "slack": "slack.json"}.get(self.value, f"report.{self.value}")


def write(document: Document, format_: Format) -> str:
    """Return the document in one format."""
    writers: Mapping[Format, Callable[[Document], str]] = {
        Format.HTML: as_html,
        Format.JSON: as_json,
        Format.MD: as_markdown,
        Format.SLACK: as_slack,
    }
    return writers[format_](document)


def as_html(document: Document) -> str:
    """Return the document as one self-contained page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spark.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template("report.html.j2")
    return template.render(document=document, dollars=dollars, exact=exact, no_action=NO_ACTION)


def as_json(document: Document) -> str:
    """Return everything but the drawings; exact values stand beside what is read."""
    content = asdict(document)
    for section in content["sections"]:
        del section["plots"]
    return json.dumps(content, indent=2, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return exact(value)
    raise TypeError(f"{value!r} has no place in a report.")


def as_markdown(document: Document) -> str:
    return "\n".join(_markdown(document)).rstrip() + "\n"


def _markdown(document: Document) -> Iterator[str]:
    total = document.total
    yield f"# {document.title}: {_safe(document.label)}"
    yield ""
    against = f" ({total.against})" if total.against else ""
    yield f"**{total.text} {total.currency}**{against}"
    yield ""
    for badge in document.badges:
        yield f"> {badge}"
        yield ""
    yield "## Actions"
    if not document.actions:
        yield NO_ACTION
    else:
        for number, action in enumerate(document.actions, 1):
            yield f"{number}. **{_safe(action.title)}**{_saves(action, total.currency)}: "
            yield f"   {_safe(action.why)}. How: {_safe(action.how)}."
    yield ""
    yield "## Summary"
    yield from (f"- {_safe(sentence)}" for sentence in document.story)
    yield ""
    for section in document.sections:
        yield from _markdown_section(section)


def _markdown_section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield from (f"- {_safe(sentence)}" for sentence in section.sentences)
    yield ""
    for table in section.tables:
        if table.title:
            yield f"### {table.title}"
        yield from _markdown_table(table)
        yield ""
    if section.method:
        yield f"How: {_safe(section.method)}"
        yield ""


def _markdown_table(table: ReportTable) -> Iterator[str]:
    titles = [
        f"{column.title} ({column.unit})" if column.unit else column.title
        for column in table.columns
    ]
    yield f"| {' | '.join(titles)} |"
    yield f"|{'|'.join('---' if column.is_text else '--:' for column in table.columns)}|"
    rows = [row.cells for row in table.rows] + ([table.foot] if table.foot else [])
    for cells in rows:
        said = [
            f"{_safe(cell.text)} ({_safe(cell.note)})" if cell.note else _safe(cell.text)
            for cell in cells
        ]
        yield f"| {' | '.join(said)} |"
    if table.left_out:
        yield ""
        yield f"The table of this report has {table.left_out:,} more rows."


def _safe(text: str) -> str:
    """Return text that Markdown shows as it is: a bill's words are somebody else's."""
    return _UNSAFE.sub(r"\\\1", text.replace("\n", " "))


def _saves(action: Action, currency: str) -> str:
    if not action.usd_per_month:
        return ""
    once = f", {dollars(action.usd_once, currency)} once" if action.usd_once else ""
    amount = f"{most(action.at_most)}{dollars(12 * action.usd_per_month, currency)}"
    return f" (saves {amount} {currency} a year{once})"


def as_slack(document: Document) -> str:
    """Return a chat.postMessage body: the total, the actions, the summary, and no tables."""
    total = document.total
    heading = f"{document.title}: {total.text} {total.currency}"
    story = "\n".join(f"\N{BULLET} {_slack_safe(each)}" for each in document.story)
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": heading[:150]}},
        _block(f"*{_slack_safe(document.label)}* {total.against}"),
    ]
    blocks += [
        _block(
            f"*{number}. {_slack_safe(action.title)}*{_saves(action, total.currency)}\n"
            f"{_slack_safe(action.why)}. _{_slack_safe(action.how)}._"
        )
        for number, action in enumerate(document.actions, 1)
    ]
    blocks += [] if document.actions else [_block(NO_ACTION)]
    blocks.append(_block(story))
    said = " \N{MIDDLE DOT} ".join([*document.badges, f"Report of {document.today}"])
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": said}]})
    return json.dumps({"text": heading, "blocks": blocks}, indent=2, ensure_ascii=False)


def summary(document: Document) -> Iterator[str]:
    """Yield the total, the actions and the summary as lines for a terminal."""
    total = document.total
    yield f"{document.title}, {document.label}: {total.text} {total.currency}"
    if total.against:
        yield total.against
    yield from document.badges
    for number, action in enumerate(document.actions, 1):
        yield f"{number}. {action.title}{_saves(action, total.currency)}: {action.why}."
    if not document.actions:
        yield NO_ACTION
    yield from document.story


def _block(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:SLACK_TEXT]}}


def _slack_safe(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
