"""The report's charts stand out from their paper, in light and in dark (WCAG's 1.4.11: 3 to 1)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from spark.report.plot import COLOURS

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
