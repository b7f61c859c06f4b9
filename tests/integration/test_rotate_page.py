"""The page of a rotation of a hundred brokers opens in a real browser, on a desk and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.rotate import plan_page
from tests import browser

CHROMIUM = browser.find()
BROKERS = 100


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
