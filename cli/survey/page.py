"""Renders a survey as one page for whoever decides: what may happen, how often, what to do."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from core.checks.finding import Finding, Weight
from core.checks.rights import UNREAD
from core.ground.words import time_said

if TYPE_CHECKING:
    from cli.survey.command import Survey

MEANING = {
    Weight.REFUSED: "AWS or Kubernetes would refuse it.",
    Weight.BROKER: (
        "An ordinary action of AWS, EKS or a person may lose data, or kill a broker while it works."
    ),
    Weight.PRODUCER: "Applications that write to Kafka may stand still for minutes, or until a "
    "person comes.",
    Weight.EXPOSED: "Any client that reaches it may read and write.",
    Weight.DRIFT: "It differs from the description.",
    Weight.UNKNOWN: "It could not be read, and is taken neither for good nor for bad.",
    Weight.ADVICE: "Nothing is broken; a plan should reckon with it.",
}


def render(done: Survey, now: float) -> str:
    """Return the page: self-contained HTML, light and dark, fit to be printed."""
    groups = [
        (weight, found)
        for weight in Weight
        if (found := [each for each in done.findings if each.weight is weight])
    ]
    template = Template((files("cli.survey") / "templates" / "survey.html").read_text("utf-8"))
    return template.substitute(
        cluster=escape(done.context),
        kafkas=escape(", ".join(done.kafkas) or "its Kafkas could not be read"),
        moment=time_said(now),
        verdict=_verdict(done),
        mark=groups[0][0].name.lower() if groups else "clear",
        counts="\n".join(
            f'<li class="{weight.name.lower()}"><b>{len(found)}</b>{weight}</li>'
            for weight, found in groups
        ),
        sections="\n".join(
            [*(_section(weight, found) for weight, found in groups), _not_looked_at()]
        ),
    )


def _section(weight: Weight, found: list[Finding]) -> str:
    articles = "\n".join(_article(each) for each in found)
    return (
        f"<section>\n<h2>{weight.capitalize()}</h2>\n"
        f'<p class="soft">{MEANING[weight]}</p>\n{articles}\n</section>'
    )


def _not_looked_at() -> str:
    rows = "\n".join(
        f"<tr><td>{escape(kind)}</td><td>{escape(name)}</td><td>{escape(how)}</td></tr>"
        for kind, fields in UNREAD.items()
        for name, how in fields.items()
    )
    return (
        f"<section>\n<h2>Not looked at</h2>\n"
        '<p class="soft">Fields that could keep a broker away, and are not judged.</p>'
        f"\n<table>\n{rows}\n</table>\n</section>"
    )


def _article(found: Finding) -> str:
    first, _, rest = found.evidence.partition(" ")
    evidence = f"{first if '.' in first else first[:1].upper() + first[1:]} {rest}"
    return (
        f'<article class="{found.weight.name.lower()}">\n<h3>{escape(found.subject)}</h3>\n'
        f"<p>{escape(evidence)}.</p>\n<p><b>To do:</b> {escape(found.remedy)}.</p>\n</article>"
    )


def _verdict(done: Survey) -> str:
    weights = {each.weight for each in done.findings}
    if Weight.BROKER in weights:
        return "Not safely: a node that leaves today may take a broker, or its data, with it."
    if Weight.UNKNOWN in weights:
        return "Unknown: a part of the cluster could not be read."
    if Weight.PRODUCER in weights:
        return "Without losing data, but applications may wait for minutes when a node leaves."
    if Weight.EXPOSED in weights:
        return "Yes, as far as can be read; but a listener is open to any client that reaches it."
    return "Yes, as far as can be read from outside."
