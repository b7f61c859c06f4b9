"""A fleet's page opens in a real browser, in light and in dark, on a desk and on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.fleet.command import FleetReading, page
from core.fleet import decide
from core.health.verdict import unhealthy
from tests import browser
from tests.unit.core.test_fleet import ALL_BEHIND, BAKED, FLEET, NOW, RUNS

CHROMIUM = browser.find()
ILL = replace(ALL_BEHIND["log"], health=unhealthy("Partition <b>-0</b> has no leader."))
FACTS = {**ALL_BEHIND, "stage": BAKED, "shop": RUNS, "log": ILL}


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark"), [(browser.DESKTOP, False), (browser.DESKTOP, True), (browser.PHONE, False)]
)
def test_the_page_shows_every_cluster_and_what_stops_them(
    tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    assert CHROMIUM is not None
    written = tmp_path / "fleet.html"
    written.write_text(page(FleetReading(FLEET, FACTS, decide(FLEET, FACTS, NOW), NOW, 3.2)))
    seen = browser.look(CHROMIUM, written)
    assert seen.console == ()
    assert seen.dom.count("<tr") == 1 + len(FACTS)
    assert '<p class="verdict stopped">Wave rest stopped. log: it is unhealthy.' in seen.dom
    assert "&lt;b&gt;-0&lt;/b&gt;" in seen.dom
    picture = browser.photograph(CHROMIUM, written, tmp_path / "page.png", size=size, dark=dark)
    # An empty page of this size compresses to a few kilobytes.
    assert picture.stat().st_size > 30_000
