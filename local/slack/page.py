"""Draws a channel as a page: what the team would have read."""

from __future__ import annotations

import html
import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from local.slack.workspace import CHANNEL_NAME, Workspace

# <!date^1795168800^{date_short_pretty} {time_secs}|2026-11-20 10:00:00 UTC>
_MARKUP = re.compile(r"<([^<>]*)>")
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
_CODE = re.compile(r"`([^`\n]+)`")


def draw(workspace: Workspace) -> str:
    """Return the page of every thread in the channel."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
    )
    environment.filters["mrkdwn"] = mrkdwn
    page = environment.get_template("threads.html.j2")
    return page.render(channel=CHANNEL_NAME, threads=workspace.threads())


def mrkdwn(text: str) -> Markup:
    """Return Slack's markup as HTML: what was escaped for Slack stays text."""
    shown = []
    for position, part in enumerate(_MARKUP.split(text)):
        # Every second part stood in angle brackets; a date's last field is what others read.
        plain = part.rpartition("|")[2] if position % 2 else html.unescape(part)
        shown.append(html.escape(plain))
    marked = _BOLD.sub(r"<b>\1</b>", "".join(shown))
    marked = _CODE.sub(r"<code>\1</code>", marked)
    return Markup(marked.replace("\n", "<br>"))  # noqa: S704 - every part was escaped above
