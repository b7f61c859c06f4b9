"""Renders a survey as one page for whoever decides: what may happen, how often, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jinja2

from core.survey.finding import Weight
from core.words import time_said

if TYPE_CHECKING:
    from cli.survey.command import Survey

MEANING = {
    Weight.BROKER: "Data may be lost, or a broker killed while it works, by what AWS, EKS or "
    "somebody at a keyboard does on an ordinary day.",
    Weight.PRODUCER: "Applications that write to Kafka may stand still for minutes, or until a "
    "person comes.",
    Weight.EXPOSED: "Whoever reaches it may read and write.",
    Weight.UNKNOWN: "It could not be read, and is taken neither for good nor for bad.",
    Weight.ADVICE: "Nothing is broken; a plan should reckon with it.",
}


def render(done: Survey, now: float) -> str:
    """Return the page: self-contained HTML, light and dark, fit to be printed."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cli.survey"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    groups = [
        {
            "weight": weight.value,
            "mark": weight.name.lower(),
            "meaning": MEANING[weight],
            "findings": found,
        }
        for weight in Weight
        if (found := [each for each in done.findings if each.weight is weight])
    ]
    return environment.get_template("survey.html.j2").render(
        cluster=done.context,
        kafkas=done.kafkas,
        moment=time_said(now),
        verdict=_verdict(done),
        mark=groups[0]["mark"] if groups else "clear",
        groups=groups,
    )


def _verdict(done: Survey) -> str:
    weights = {each.weight for each in done.findings}
    if Weight.BROKER in weights:
        return "Not safely: a node that leaves today may take a broker, or its data, with it."
    if Weight.UNKNOWN in weights:
        return "Nobody can tell: a part of the cluster could not be read."
    if Weight.PRODUCER in weights:
        return "Without losing data, but applications may wait for minutes when a node leaves."
    if Weight.EXPOSED in weights:
        return "Yes, as far as can be read; but a listener is open to everybody who reaches it."
    return "Yes, as far as can be read from outside."
