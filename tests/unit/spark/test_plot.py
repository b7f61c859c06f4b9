"""The report's charts: colours stand out (WCAG 1.4.11), and a bill's words stay as they are."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from spark.report.plot import COLOURS, drawing

STYLE = (files("spark.report") / "templates" / "style.css").read_text()
LIGHT, DARK = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
LEAST = 3.0


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_colour_of_a_chart_stands_out_from_its_card(scheme: str) -> None:
    named = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", scheme))
    faint = {
        name: round(found, 2)
        for name in COLOURS
        if (found := contrast(named[name], named["--card"])) < LEAST
    }
    assert faint == {}


def test_a_dollar_in_an_owners_name_is_no_formula() -> None:
    # Read as a formula, the first would end the report, and the second lose its dollars.
    for owner in (r"team $\frac{", "$pay$"):
        with drawing("costs", 1.0) as made:
            made.axes.text(0, 0, owner)
        assert owner.replace("<", "&lt;") in made.svg
