"""The pages of a rotation of a hundred brokers, and of a fleet, open in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest

from cli.fleet.command import FleetReading, page
from cli.rotate import plan_page
from core.fleet import decide
from core.health.verdict import unhealthy
from tests import browser
from tests.unit.core.test_fleet import ALL_BEHIND, BAKED, FLEET, NOW, RUNS

CHROMIUM = browser.find()
BROKERS = 100
ILL = replace(ALL_BEHIND["log"], health=unhealthy("Partition <b>-0</b> has no leader."))
FACTS = {**ALL_BEHIND, "stage": BAKED, "shop": RUNS, "log": ILL}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "plan.html"
    nodes = [
        {
            "node_id": broker,
            "role": "broker",
            "zone": f"us-east-1{'abc'[broker % 3]}",
            "seconds": 280.0,
            "batch": broker % 3,
        }
        for broker in range(BROKERS)
    ]
    document = {"nodes": nodes, "seconds": 9000.0, "interval_seconds": None, "notes": ["Note."]}
    path.write_text(plan_page(document))
    return path


@browser.needed
def test_the_page_opens_without_a_complaint_and_has_a_bar_for_each_node(written: Path) -> None:
    assert CHROMIUM is not None
    seen = browser.look(CHROMIUM, written)
    assert seen.console == ()
    assert seen.dom.count('<i class="takes" style') == BROKERS


@browser.needed
@pytest.mark.parametrize(
    ("size", "dark"), [(browser.DESKTOP, False), (browser.DESKTOP, True), (browser.PHONE, False)]
)
def test_a_fleets_page_shows_every_cluster_and_what_stops_them(
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
